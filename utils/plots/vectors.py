"""Figures of vectors: points and arrows in a plane, a weighted sum, matrices, attention maps, sweeps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from utils.arguments import as_bool, as_number
from utils.plots.canvas import AXIS_COLOURS, CENTRED, INK, MUTED, PAGE, CourseFigure, in_course_style
from utils.plots.inputs import as_array, as_dict, as_names, check_size, one_line, visible, wrapped

# Line styles and markers differ as well as colours, so that no line depends on colour alone.
_COLOURS = (AXIS_COLOURS["num_tokens"], AXIS_COLOURS["batch_size"], AXIS_COLOURS["emb_dim"], AXIS_COLOURS["num_heads"])
_STYLES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D")
_MOST_NAMES = 100  # beyond it, names of points hide each other


@in_course_style
def plot_plane(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    arrows: bool = False,
    reach: float | None = None,
    xlabel: str = "",
    ylabel: str = "",
) -> Figure:
    """Return maps of named points, side by side on one scale; points that lie together share a label.

    Args:
        panels: title -> name -> (x, y); more than 100 points on a map are drawn without their names.
        arrows: draw each point as an arrow from the origin; 100 on all maps at most.
        reach: the axes run from −reach to reach; by default as far as the points.
        xlabel, ylabel: what the two directions are.

    Raises:
        TypeError: a coordinate is not a number, or `arrows` is not a bool.
        ValueError: a point is not (x, y), or not finite; `reach` is not positive; too many arrows.
    """
    arrows = as_bool("arrows", arrows)
    panels = {title: _points(f"panels[{title!r}]", panel) for title, panel in as_dict("panels", panels).items()}
    coordinates = [abs(c) for points in panels.values() for point in points.values() for c in point]
    if arrows and coordinates:
        check_size("panels", len(coordinates) // 2, "arrows", _MOST_NAMES)
    reach = 1.15 * max(coordinates, default=0) or 1.0 if reach is None else as_number("reach", reach, at_most=1e100)
    if reach <= 0:
        raise ValueError(f"reach must be more than 0, not {reach}")
    fig, charts = _charts(panels, 4.4, 4.2, xlabel, ylabel)
    for ax, points in charts:
        if arrows:
            for point in points.values():
                _arrow(ax, (0, 0), point, AXIS_COLOURS["emb_dim"])
        named = len(points) <= _MOST_NAMES
        for x, y in [] if arrows else points.values() if named else [zip(*points.values())]:
            ax.plot(x, y, "o", color=AXIS_COLOURS["emb_dim"], ms=6)
        for label, point in _labels(points, near=0.05 * reach) if named else ():
            ax.annotate(label, point, (5, 5), textcoords="offset points", color=INK, size=10)
        _square(ax, (-reach, reach), (-reach, reach))
    return fig


def _points(argument: str, points: Any) -> dict[str, tuple[float, float]]:
    """Return name -> (x, y), whatever library the coordinates are of."""
    found = {}
    for name, point in as_dict(argument, points).items():
        coordinates = as_array(f"{argument}[{name!r}]", point, dims=1).tolist()
        if len(coordinates) != 2:
            raise ValueError(f"{argument}[{name!r}] must be (x, y), not {len(coordinates)} numbers")
        found[name] = tuple(coordinates)
    return found


def _labels(points: Mapping[str, Sequence[float]], near: float) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield a label and its position for each group of points that lie near each other."""
    groups: list[list[str]] = []
    for name, point in points.items():
        group = next((g for g in groups if math.dist(points[g[0]], point) < near), None)
        groups.append([name]) if group is None else group.append(name)
    for names in groups:
        shown = one_line(", ".join(visible(name, "sans-serif") for name in names), most=30)
        yield shown if len(names) <= 3 else f"{len(names)} of them", points[names[0]]


@in_course_style
def plot_weighted_sum(
    parts: Mapping[str, Sequence[float]], start: Mapping[str, Sequence[float]], xlabel: str, ylabel: str
) -> Figure:
    """Return the parts of a weighted sum as arrows laid end to end, with the sum and what it started from.

    Args:
        parts: name -> (x, y), each vector already times its weight; 60 at most.
        start: name -> (x, y) of vectors to compare the sum with, drawn dashed; 20 at most.
        xlabel, ylabel: what the two directions are.

    Raises:
        TypeError: a coordinate is not a number.
        ValueError: a vector is not (x, y), or not finite; there are none, or too many.
    """
    parts, start = _points("parts", parts), _points("start", start)
    check_size("parts", len(parts), "vectors", 60)
    check_size("start", len(start) or 1, "vectors", 20)
    fig, [(ax, _)] = _charts({"": None}, 5.2, 4.6, xlabel, ylabel)
    x = y = 0.0
    corners = [(0.0, 0.0), *start.values()]
    for index, (name, (dx, dy)) in enumerate(parts.items()):
        _arrow(ax, (x, y), (x + dx, y + dy), _COLOURS[index % len(_COLOURS)])
        middle = (x + dx / 2, y + dy / 2)
        ax.annotate(one_line(name, most=24), middle, (8, -3), textcoords="offset points", color=INK, size=10)
        x, y = x + dx, y + dy
        corners.append((x, y))
    _arrow(ax, (0, 0), (x, y), INK)
    ax.annotate("context vector", (x, y), (-6, 6), textcoords="offset points", ha="right", color=INK, size=10)
    for name, (dx, dy) in start.items():
        _arrow(ax, (0, 0), (dx, dy), MUTED, style="--")
        label = f"{one_line(name, most=24)} alone"
        ax.annotate(label, (dx, dy), (6, 0), textcoords="offset points", color=MUTED, size=10)
    side = max(max(values) - min(values) for values in zip(*corners)) or 1.0
    left, low = (min(values) - 0.1 * side for values in zip(*corners))
    _square(ax, (left, left + 1.4 * side), (low, low + 1.3 * side))
    return fig


@in_course_style
def plot_matrices(panels: Mapping[str, Tensor], xlabel: str, ylabel: str) -> Figure:
    """Return matrices as maps side by side, each on its own scale: light is small, dark is large.

    A score of −inf is as light as the smallest finite one; a cell that is nan is left white.

    Raises:
        TypeError: a matrix holds something else than numbers.
        ValueError: one is empty or does not have two dimensions; all have more than 5,000,000 numbers.
    """
    matrices = _matrices(panels)
    fig, charts = _charts(matrices, 4.0, 3.9, xlabel, ylabel)
    for ax, matrix in charts:
        known = matrix[np.isfinite(matrix)]
        lowest, highest = (known.min(), known.max()) if known.size else (0, 1)
        # A strip, such as a few long vectors, fills its chart: with square cells it would be a line.
        strip = max(matrix.shape) > 8 * min(matrix.shape)
        shown = np.clip(matrix, lowest, highest)
        ax.imshow(shown, cmap="Blues", vmin=lowest, vmax=highest, aspect="auto" if strip else "equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    return fig


def _matrices(panels: Any) -> dict[str, np.ndarray]:
    matrices = {
        title: as_array(f"panels[{title!r}]", matrix, dims=2, finite=False)
        for title, matrix in as_dict("panels", panels).items()
    }
    for title, matrix in matrices.items():
        check_size(f"panels[{title!r}]", matrix.size, "numbers", 5_000_000)
    return matrices


@in_course_style
def plot_attention(panels: Mapping[str, Tensor], queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Return attention maps side by side: one row per query, one column per key, colours always from 0 to 1.

    Args:
        panels: title -> attention weights, (num_tokens, num_tokens). Each cell shows its number as
            long as all maps together have at most 450 cells.
        queries, keys: a name for each row and each column; of many names only some are drawn.

    Raises:
        TypeError: a weight is not a number.
        ValueError: a map does not have two dimensions, or as many rows and columns as there are names.
    """
    panels = _matrices(panels)
    for weights in panels.values():
        queries = as_names("queries", queries, weights.shape[0])
        keys = as_names("keys", keys, weights.shape[1])
    numbered = sum(weights.size for weights in panels.values()) <= 450
    cells = min(0.5 * max(len(queries), len(keys)), 8.6 if numbered or len(panels) == 1 else 3.4)  # inches
    side = cells + 1.4 + 0.075 * max(0, max(map(len, [*queries, *keys]), default=0) - 10)
    most_names = max(10, 50 // (len(panels) or 1))
    fig, charts = _charts(panels, side, side + 0.4, "key", "query", page=10)
    for ax, weights in charts:
        ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
        for (row, column), weight in np.ndenumerate(weights) if numbered else ():
            # Left out of the layout: a number lies in its cell, and measuring each takes long.
            number = f"{weight:.2f}".lstrip("0")
            ax.text(column, row, number, size=8, color=_ink_on(weight), in_layout=False, **CENTRED)
        ax.set_xticks(*_some(keys, most_names), rotation=45, ha="right", size=9)
        ax.set_yticks(*_some(queries, most_names), size=9)
        ax.tick_params(length=0, colors=AXIS_COLOURS["num_tokens"])
    return fig


@in_course_style
def plot_bars(panels: Mapping[str, Sequence[float]], names: Sequence[str], ylabel: str) -> Figure:
    """Return bar charts side by side on one scale, from 0 to 1 or as far as the values go.

    Args:
        panels: title -> a value for each name.
        names: a name for each bar, up to 100,000; of many names only some are drawn.
        ylabel: what the values are.

    Raises:
        TypeError: a value is not a number.
        ValueError: a value is not finite; there are more or fewer values than names.
    """
    panels = {
        title: as_array(f"panels[{title!r}]", values, dims=1) for title, values in as_dict("panels", panels).items()
    }
    for values in panels.values():
        check_size("names", len(values), "bars", 100_000)
        names = as_names("names", names, len(values))
    longest = max(map(len, names), default=0)
    width = max(3.4, 0.3 * len(names), 0.08 * longest * len(names))
    upright = width > PAGE  # side by side, the names would not fit on a page
    if upright:
        width = min(max(3.4, 0.3 * len(names)), PAGE)
    fig, charts = _charts(panels, width, 2.8 + (0.08 * longest if upright else 0), "", ylabel)
    everything = np.concatenate([[0, 1], *panels.values()])
    for ax, values in charts:
        if len(values) <= _MOST_NAMES:
            ax.bar(range(len(values)), values, color=AXIS_COLOURS["num_tokens"])
        else:  # one outline instead of the bars; where bars share a pixel, the longest up and down
            starts = np.arange(0, len(values), len(values) // 1000 + 1)
            for furthest in (np.maximum, np.minimum):
                edges = np.append(starts, len(values)) - 0.5
                ax.stairs(furthest.reduceat(values, starts), edges, fill=True, color=AXIS_COLOURS["num_tokens"])
        ax.set_xticks(*_some(names, 40), size=9, rotation=90 if upright else 0)
        ax.set_ylim(everything.min(), everything.max())
        ax.spines[["top", "right"]].set_visible(False)
    return fig


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
        panels: title -> name of a line -> its values, one for each of `x`; 12 lines at most per chart.
            A value that is nan or infinite leaves a gap.
        x: where the values are on the horizontal axis.
        xlabel: what `x` is.
        log_x: whether the horizontal axis counts doublings.
        log_y: titles of the panels whose vertical axis counts powers of ten.
        same_y: whether all panels have one vertical scale.

    Raises:
        TypeError: a value is not a number; `log_x` or `same_y` is not a bool.
        ValueError: a line has more or fewer values than `x`; a logarithmic axis gets a number that
            is not positive; `log_y` names a panel that does not exist.
    """
    log_x, same_y = as_bool("log_x", log_x), as_bool("same_y", same_y)
    panels = {title: as_dict(f"panels[{title!r}]", lines) for title, lines in as_dict("panels", panels).items()}
    if isinstance(log_y, str) or not set(log_y) <= set(panels):
        raise ValueError(f"log_y must be a list of titles of panels, {list(panels)}, not {log_y!r}")
    x = as_array("x", x, dims=1)
    check_size("x", len(x), "numbers", 100_000)
    _check_positive("x", x, log_x)
    fig, charts = _charts(panels, 3.6, 3.2, xlabel, "", sharey=same_y)
    for (ax, lines), title in zip(charts, panels):
        check_size(f"panels[{title!r}]", len(lines), "lines", 12)
        for index, (name, values) in enumerate(lines.items()):
            argument = f"panels[{title!r}][{name!r}]"
            values = as_array(argument, values, dims=1, finite=False)
            if len(values) != len(x):
                raise ValueError(f"{argument} has {len(values)} values for {len(x)} numbers in x")
            _check_positive(argument, values, title in log_y)
            # The fifth line has the first colour again, but the second style.
            style, marker = _STYLES[(index + index // 4) % 4], _MARKERS[(index + index // 4) % 4]
            ax.plot(x, values, ls=style, marker=marker if len(x) <= 100 else "", color=_COLOURS[index % 4], ms=4)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if log_x:
            ax.set_xscale("log", base=2)
        if title in log_y:
            ax.set_yscale("log")
        _legend(ax, lines)
        ax.spines[["top", "right"]].set_visible(False)
    return fig


def _charts(
    panels: Mapping[str, Any],
    width: float,
    height: float,
    xlabel: str,
    ylabel: str,
    page: float = PAGE,
    **options: Any,
) -> tuple[Figure, list[tuple[Axes, Any]]]:
    """Return a figure of one chart per panel, titled and labelled, as many side by side as a page takes."""
    check_size("panels", len(panels), "charts", 12)
    columns = min(len(panels), int(page / width) or 1)
    rows = math.ceil(len(panels) / columns)
    fig = CourseFigure(width * columns, height * rows)
    axes = fig.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    for ax, title in zip(axes.flat, panels):
        ax.set_title(wrapped(title, width), size=10, color=INK)
        ax.set(xlabel=wrapped(xlabel, width), ylabel=wrapped(ylabel, height))
    return fig, list(zip(axes.flat, panels.values()))


def _legend(ax: Axes, names: Mapping[str, Any]) -> None:
    """Name the lines. Matplotlib leaves out a label that begins with "_", so each gets its words afterwards."""
    points = sum(len(line.get_xdata()) for line in ax.lines)
    best = "best" if points <= 1000 else "upper right"  # the search for the best corner looks at every point
    legend = ax.legend(ax.lines, map(str, range(len(names))), frameon=False, fontsize=9, loc=best)
    for text, name in zip(legend.get_texts(), names):
        text.set_text(one_line(name))


def _some(names: Sequence[str], most: int) -> tuple[range, Sequence[str]]:
    """Return the indices and the names of at most `most` of the names, at equal steps."""
    step = math.ceil(len(names) / most)
    return range(0, len(names), step), names[::step]


def _ink_on(weight: float) -> str:
    """Return black or white, whichever is readable (at least 4.5 : 1) on a weight's cell."""
    if math.isnan(weight):
        return "black"
    # WCAG's relative luminance:
    linear = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colormaps["Blues"](float(weight))[:3]
    )
    return "black" if sum(part * c for part, c in zip((0.2126, 0.7152, 0.0722), linear)) >= 0.179 else "white"


def _check_positive(argument: str, values: np.ndarray, logarithmic: bool) -> None:
    if logarithmic and (values <= 0).any():
        raise ValueError(f"{argument} holds {values[values <= 0][0]}: on a logarithmic axis all numbers are positive")


def _arrow(ax: Axes, tail: Sequence[float], head: Sequence[float], colour: str, style: str = "-") -> None:
    shape = {"arrowstyle": "->", "color": colour, "lw": 2, "linestyle": style, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", head, tail, arrowprops=shape)


def _square(ax: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Set the limits, with one unit as long on both axes and the origin marked."""
    ax.set(xlim=x, ylim=y, aspect="equal")
    ax.axhline(0, color=MUTED, lw=0.6, zorder=0)
    ax.axvline(0, color=MUTED, lw=0.6, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
