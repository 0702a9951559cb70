"""Figures with a horizontal and a vertical axis: counts, bars, lines."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from utils.arguments import as_bool, as_integer
from utils.plots.canvas import (
    AXIS_COLOURS,
    INK,
    LINE_COLOURS,
    LINE_STYLES,
    PAGE,
    CourseFigure,
    charts_of,
    in_course_style,
)
from utils.plots.inputs import as_array, as_dict, as_list, as_names, check_size, finite_range, one_line, some_of


@in_course_style
def plot_counts(values: Iterable[int], xlabel: str, ylabel: str) -> Figure:
    """Return a bar for each integer, as high as its proportion of the values, in percent.

    Where the smallest and the largest are more than 60 apart, those that occur are drawn as lines.
    """
    counts = Counter(as_integer("values", value, -(10**12), 10**12) for value in as_list("values", values))
    check_size("values", len(counts), "different integers", 5000)
    fig = CourseFigure(7.0, 2.8)
    ax = fig.add_subplot(xlabel=one_line(xlabel, 98), ylabel=one_line(ylabel))
    numbers = range(min(counts), max(counts) + 1)
    if len(numbers) > 61:
        ax.vlines(list(counts), 0, [100 * n / counts.total() for n in counts.values()], AXIS_COLOURS["num_tokens"])
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.ticklabel_format(useOffset=False, style="plain", axis="x")
    else:
        percent = [100 * counts[number] / counts.total() for number in numbers]
        ax.bar(numbers, percent, color=AXIS_COLOURS["num_tokens"])
        ax.set_xticks(numbers[:: len(numbers) // 30 + 1])
    return fig


@in_course_style
def plot_bars(panels: Mapping[str, Sequence[float]], names: Sequence[str], ylabel: str, xlabel: str = "") -> Figure:
    """Return bar charts side by side on one scale, from 0 to 1 or as far as the values go.

    Where a chart has at most 12 bars, each value is written at its bar, rounded: 0.0034, 0.21, 124.

    Args:
        panels: title -> a value for each name, finite; 240 bars at most in all charts.
        names: a name for each bar; of many names only some are drawn. Long names are upright.
    """
    panels = as_dict("panels", panels, partial(as_array, most=240))
    check_size("panels", sum(map(len, panels.values())), "bars", 240)
    for values in panels.values():
        names = as_names("names", names, len(values))
    everything, numbered = np.concatenate([[0, 1], *panels.values()]), len(names) <= 12
    low, high = everything.min(), everything.max()
    room = 0.1 * (high - low) * numbered
    longest = 0.08 * max(map(len, names))  # inches, as all lengths here
    upright = longest * len(names) > 4.2  # side by side, the names would make a chart too wide for a phone
    number = 0.066 * max(len(_two_digits(value)) for value in everything) + 0.02 if numbered else 0
    bar = max(0.3, number, 0 if upright else longest)
    width, height = max(3.4, bar * len(names) / 0.9 + 0.85), 2.8 + longest * upright
    fig, charts = charts_of(panels, min(width, PAGE), height, xlabel, ylabel)
    for ax, values in charts:
        bars = ax.bar(range(len(values)), values, color=AXIS_COLOURS["num_tokens"])
        ax.set_xticks(*some_of(names, 40), size=9, rotation=90 if upright else 0)
        ax.set_ylim(low - room * (low < 0), high + room)
        if numbered:
            ax.bar_label(bars, map(_two_digits, values), padding=1, size=8, color=INK)
    return fig


def _two_digits(value: float) -> str:
    """Return a number with two digits, or with all that it has before the point."""
    words = f"{value:.2g}" if abs(value) < 10 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.1e}"
    return words.replace("-", "−")


@in_course_style
def plot_lines(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    x: Sequence[float],
    xlabel: str,
    log_x: bool = False,
    log_y: Sequence[str] = (),
    same_y: bool = False,
) -> Figure:
    """Return line charts side by side, with one horizontal axis.

    Args:
        panels: title -> name of a line -> its values, one for each of `x`; 12 lines at most per
            chart, 20,000 values in all. A value that is nan or infinite leaves a gap. A linear vertical
            axis starts at 0 where no value is negative and the largest is more than twice the
            smallest, so that half looks like half.
        x: where the values are on the horizontal axis.
        log_x: whether the horizontal axis counts doublings; then all numbers in `x` must be positive.
        log_y: titles of the panels whose vertical axis counts powers of ten; their values must be positive.
        same_y: whether all panels have one vertical scale.
    """
    log_x, same_y = as_bool("log_x", log_x), as_bool("same_y", same_y)
    values_of = partial(as_array, most=20_000, finite=False)
    panels = as_dict("panels", panels, partial(as_dict, parse=values_of, things="lines"))
    if isinstance(log_y, str) or not set(log_y) <= set(panels):
        raise ValueError(f"log_y must be a list of titles of panels, {list(panels)}, not {log_y!r}")
    x = as_array("x", x, most=20_000)
    check_size("panels", len(x) * sum(map(len, panels.values())), "values", 20_000)
    _check_positive("x", x, log_x)
    fig, charts = charts_of(panels, 3.6, 3.2, xlabel, sharey=same_y)
    for (ax, lines), title in zip(charts, panels):
        for index, (name, values) in enumerate(lines.items()):
            argument = f"panels[{title!r}][{name!r}]"
            if len(values) != len(x):
                raise ValueError(f"{argument} has {len(values)} values for {len(x)} numbers in x")
            _check_positive(argument, values, title in log_y)
            ax.plot(x, values, LINE_STYLES[index % 4], color=LINE_COLOURS[index % 5], ms=4, markevery=len(x) // 100 + 1)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if log_x:
            ax.set_xscale("log", base=2)
        lowest, highest = finite_range(np.concatenate([*lines.values()]))
        if title in log_y:
            ax.set_yscale("log")
        elif 0 <= lowest < highest / 2:
            ax.set_ylim(bottom=0)
        ax.legend(ax.lines, map(one_line, lines), frameon=False, fontsize=9)
    return fig


def _check_positive(argument: str, values: np.ndarray, logarithmic: bool) -> None:
    if logarithmic and (values <= 0).any():
        raise ValueError(f"{argument} holds {values[values <= 0][0]}: on a logarithmic axis all numbers are positive")
