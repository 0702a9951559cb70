"""Figures of vectors: points and arrows in a plane, a weighted sum, matrices, attention maps, sweeps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from utils.arguments import as_bool, as_number
from utils.plots.canvas import AXIS_COLOURS, CENTRED, INK, MUTED, PAGE, charts_of, in_course_style
from utils.plots.inputs import as_array, as_dict, as_names, check_size, one_line, visible

_COLOURS = [AXIS_COLOURS[axis] for axis in ("num_tokens", "batch_size", "emb_dim", "num_heads", "vocab_size")]
# So that no line depends on colour alone; of five colours and four styles, each of twelve lines has its own pair.
_STYLES = ("-o", "--s", ":^", "-.D")
Points = Mapping[str, Sequence[float]]  # name -> (x, y)


@in_course_style
def plot_plane(
    panels: Mapping[str, Points], arrows: bool = False, reach: float | None = None, xlabel: str = "", ylabel: str = ""
) -> Figure:
    """Return maps of named points, side by side on one scale; points that lie together share a label.

    Args:
        panels: title -> name -> (x, y), both finite; 100 points at most on all maps.
        arrows: draw each point as an arrow from the origin.
        reach: the axes run from −reach to reach; by default as far as the points.
    """
    arrows = as_bool("arrows", arrows)
    panels = as_dict("panels", panels, _points)
    check_size("panels", sum(map(len, panels.values())), "points", 100)
    furthest = max(abs(c) for points in panels.values() for point in points.values() for c in point)
    reach = 1.15 * furthest or 1.0 if reach is None else as_number("reach", reach, 1e-100, 1e100)
    fig, charts = charts_of(panels, 4.4, 4.2, xlabel, ylabel)
    for ax, points in charts:
        for point in points.values():
            if arrows:
                _arrow(ax, (0, 0), point, AXIS_COLOURS["emb_dim"])
            else:
                ax.plot(*point, "o", color=AXIS_COLOURS["emb_dim"], ms=6)
        for label, point in _labels(points, near=0.05 * reach):
            _label(ax, label, point, (5, 5))
        _square(ax, (-reach, reach), (-reach, reach))
    return fig


def _points(argument: str, points: Any) -> dict[str, tuple[float, float]]:
    """Return name -> (x, y), whatever library the coordinates are of."""
    points = as_dict(argument, points, as_array, "points", 100)
    for name, point in points.items():
        if len(point) != 2:
            raise ValueError(f"{argument}[{name!r}] must be (x, y), not {len(point)} numbers")
    return {name: tuple(point.tolist()) for name, point in points.items()}


def _labels(points: dict[str, tuple[float, float]], near: float) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield a label and its position for each group of points that lie near each other."""
    groups: list[list[str]] = []
    for name, point in points.items():
        group = next((g for g in groups if math.dist(points[g[0]], point) < near), None)
        groups.append([name]) if group is None else group.append(name)
    for names in groups:
        shown = one_line(", ".join(map(visible, names)), most=30)
        yield shown if len(names) <= 3 else f"{len(names)} of them", points[names[0]]


@in_course_style
def plot_weighted_sum(parts: Points, start: Points, xlabel: str, ylabel: str) -> Figure:
    """Return the parts of a weighted sum as arrows laid end to end, with the sum and what it started from.

    Args:
        parts: name -> (x, y), finite, each vector already times its weight; 100 at most.
        start: name -> (x, y) of vectors to compare the sum with, drawn dashed; there may be none.
    """
    parts, start = _points("parts", parts), _points("start", start) if start else {}
    fig, [(ax, _)] = charts_of({"": None}, 5.2, 4.6, xlabel, ylabel)
    places = np.cumsum([(0, 0), *parts.values()], axis=0)
    for index, (name, tail, head) in enumerate(zip(parts, places, places[1:])):
        _arrow(ax, tail, head, _COLOURS[index % 5])
        _label(ax, one_line(name, 24), (tail + head) / 2, (8, -3))
    _arrow(ax, (0, 0), places[-1], INK)
    _label(ax, "context vector", places[-1], (-6, 6), ha="right")
    for name, head in start.items():
        _arrow(ax, (0, 0), head, MUTED, style="--")
        _label(ax, f"{one_line(name, 24)} alone", head, (6, 0), color=MUTED)
    corners = np.array([*places, *start.values()])
    side = np.ptp(corners, axis=0).max() or 1.0
    left, low = corners.min(axis=0) - 0.1 * side
    _square(ax, (left, left + 1.4 * side), (low, low + 1.3 * side))
    return fig


def _arrow(ax: Axes, tail: Sequence[float], head: Sequence[float], colour: str, style: str = "-") -> None:
    shape = {"arrowstyle": "->", "color": colour, "lw": 2, "linestyle": style, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", head, tail, arrowprops=shape)


def _label(ax: Axes, words: str, point: Sequence[float], offset: tuple[int, int], **options: Any) -> None:
    ax.annotate(words, point, offset, textcoords="offset points", size=10, **{"color": INK} | options)


def _square(ax: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Set the limits, with one unit as long on both axes and the origin marked."""
    ax.set(xlim=x, ylim=y, aspect="equal")
    ax.axhline(0, color=MUTED, lw=0.6, zorder=0)
    ax.axvline(0, color=MUTED, lw=0.6, zorder=0)


@in_course_style
def plot_matrices(panels: Mapping[str, Tensor], xlabel: str, ylabel: str) -> Figure:
    """Return matrices as maps side by side, each on its own scale: light is small, dark is large.

    A score of −inf is as light as the smallest finite one; a cell that is nan is left white.
    All matrices together have at most 2,500,000 numbers.
    """
    fig, charts = charts_of(_matrices(panels), 4.0, 3.9, xlabel, ylabel)
    for ax, matrix in charts:
        known = matrix[np.isfinite(matrix)]
        lowest, highest = (known.min(), known.max()) if known.size else (0, 1)
        ax.imshow(np.clip(matrix, lowest, highest), cmap="Blues", vmin=lowest, vmax=highest)
        ax.spines[:].set_visible(True)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    return fig


def _matrices(panels: Any) -> dict[str, np.ndarray]:
    matrices = as_dict("panels", panels, partial(as_array, dims=2, most=2_500_000, finite=False))
    check_size("panels", sum(matrix.size for matrix in matrices.values()), "numbers", 2_500_000)
    return matrices


@in_course_style
def plot_attention(panels: Mapping[str, Tensor], queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Return attention maps side by side: one row per query, one column per key, colours always from 0 to 1.

    Args:
        panels: title -> attention weights, (num_tokens, num_tokens). Each cell shows its number as
            long as all maps together have at most 450 cells; 2,500,000 are the most that are drawn.
        queries, keys: a name for each row and each column; of many names only some are drawn.
    """
    panels = _matrices(panels)
    for weights in panels.values():
        queries = as_names("queries", queries, weights.shape[0])
        keys = as_names("keys", keys, weights.shape[1])
    numbered = sum(weights.size for weights in panels.values()) <= 450
    cells = min(0.5 * max(len(queries), len(keys)), 8.6 if numbered or len(panels) == 1 else 3.4)  # inches
    side = cells + 1.4 + 0.075 * max(0, max(map(len, [*queries, *keys])) - 10)
    fig, charts = charts_of(panels, side, side + 0.4, "key", "query")
    for ax, weights in charts:
        ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
        ax.spines[:].set_visible(True)
        for (row, column), weight in np.ndenumerate(weights) if numbered else ():
            # Black is readable (4.5 : 1) on the first 183 of the 256 blues, white on the others.
            ink = "white" if weight >= 183 / 256 else "black"
            ax.text(column, row, f"{weight:.2f}".lstrip("0"), size=8, color=ink, **CENTRED)
        most_names = max(10, 50 // len(panels))
        ax.set_xticks(*_some(keys, most_names), rotation=45, ha="right", size=9)
        ax.set_yticks(*_some(queries, most_names), size=9)
        ax.tick_params(length=0, colors=AXIS_COLOURS["num_tokens"])
    return fig


@in_course_style
def plot_bars(panels: Mapping[str, Sequence[float]], names: Sequence[str], ylabel: str) -> Figure:
    """Return bar charts side by side on one scale, from 0 to 1 or as far as the values go.

    Args:
        panels: title -> a value for each name, finite; 240 bars at most in all charts.
        names: a name for each bar; of many names only some are drawn.
    """
    panels = as_dict("panels", panels, partial(as_array, most=240))
    check_size("panels", sum(map(len, panels.values())), "bars", 240)
    for values in panels.values():
        names = as_names("names", names, len(values))
    longest = max(map(len, names))
    width = max(3.4, 0.3 * len(names), 0.08 * longest * len(names))
    upright = width > PAGE  # side by side, the names would not fit on a page
    fig, charts = charts_of(panels, min(width, PAGE), 2.8 + 0.08 * longest * upright, ylabel=ylabel)
    everything = np.concatenate([[0, 1], *panels.values()])
    for ax, values in charts:
        ax.bar(range(len(values)), values, color=AXIS_COLOURS["num_tokens"])
        ax.set_xticks(*_some(names, 40), size=9, rotation=90 if upright else 0)
        ax.set_ylim(everything.min(), everything.max())
    return fig


def _some(names: Sequence[str], most: int) -> tuple[range, Sequence[str]]:
    """Return the indices and the names of at most `most` of the names, at equal steps."""
    step = math.ceil(len(names) / most)
    return range(0, len(names), step), names[::step]


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
            chart, 20,000 values in all. A value that is nan or infinite leaves a gap.
        x: where the values are on the horizontal axis.
        log_x: whether the horizontal axis counts doublings; then all numbers in `x` are positive.
        log_y: titles of the panels whose vertical axis counts powers of ten; their values are positive.
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
            ax.plot(x, values, _STYLES[index % 4], color=_COLOURS[index % 5], ms=4, markevery=len(x) // 100 + 1)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if log_x:
            ax.set_xscale("log", base=2)
        if title in log_y:
            ax.set_yscale("log")
        ax.legend(ax.lines, map(one_line, lines), frameon=False, fontsize=9)
    return fig


def _check_positive(argument: str, values: np.ndarray, logarithmic: bool) -> None:
    if logarithmic and (values <= 0).any():
        raise ValueError(f"{argument} holds {values[values <= 0][0]}: on a logarithmic axis all numbers are positive")
