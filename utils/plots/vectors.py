"""Figures of vectors: points and arrows in a plane, a weighted sum, matrices, attention maps, sweeps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from utils.plots.canvas import AXIS_COLOURS, INK, MUTED, finished, new_figure, numbers, visible

# Line styles and markers differ as well as colours, so that no line depends on colour alone.
_COLOURS = (AXIS_COLOURS["num_tokens"], AXIS_COLOURS["batch_size"], AXIS_COLOURS["emb_dim"], AXIS_COLOURS["num_heads"])
_STYLES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D")


def plot_plane(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    arrows: bool = False,
    reach: float | None = None,
    xlabel: str = "",
    ylabel: str = "",
) -> Figure:
    """Return maps of named points, side by side on one scale; points that lie together share a label.

    Args:
        panels: title -> name -> (x, y).
        arrows: draw each point as an arrow from the origin.
        reach: the axes run from −reach to reach; by default as far as the points.
        xlabel, ylabel: what the two directions are.
    """
    panels = {title: {name: numbers(point) for name, point in points.items()} for title, points in panels.items()}
    reach = reach or 1.15 * max(abs(c) for points in panels.values() for point in points.values() for c in point) or 1.0
    fig = new_figure(4.4 * len(panels), 4.2)
    for ax, points in _titled(fig, panels):
        for x, y in points.values():
            if arrows:
                _arrow(ax, (0, 0), (x, y), AXIS_COLOURS["emb_dim"])
            else:
                ax.plot(x, y, "o", color=AXIS_COLOURS["emb_dim"], ms=6)
        for label, point in _labels(points, near=0.05 * reach):
            ax.annotate(label, point, (5, 5), textcoords="offset points", color=INK, size=10)
        _square(ax, (-reach, reach), (-reach, reach))
        ax.set(xlabel=xlabel, ylabel=ylabel)
    return finished(fig)


def _labels(points: Mapping[str, Sequence[float]], near: float) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield a label and its place for each group of points that lie near each other."""
    groups: list[list[str]] = []
    for name, point in points.items():
        group = next((g for g in groups if math.dist(points[g[0]], point) < near), None)
        groups.append([name]) if group is None else group.append(name)
    for names in groups:
        shown = ", ".join(visible(name) for name in names)
        yield shown if len(names) <= 3 else f"{len(names)} of them", points[names[0]]


def plot_weighted_sum(
    parts: Mapping[str, Sequence[float]], start: Mapping[str, Sequence[float]], xlabel: str, ylabel: str
) -> Figure:
    """Return the parts of a weighted sum as arrows laid end to end, with the sum and what it started from.

    Args:
        parts: name -> (x, y), each vector already times its weight.
        start: name -> (x, y) of vectors to compare the sum with, drawn dashed.
        xlabel, ylabel: what the two directions are.
    """
    parts, start = ({name: numbers(point) for name, point in group.items()} for group in (parts, start))
    fig = new_figure(5.2, 4.6)
    ax = fig.add_subplot()
    x = y = 0.0
    corners = [(0.0, 0.0), *start.values()]
    for place, (name, (dx, dy)) in enumerate(parts.items()):
        _arrow(ax, (x, y), (x + dx, y + dy), _COLOURS[place % len(_COLOURS)])
        ax.annotate(name, (x + dx / 2, y + dy / 2), (8, -3), textcoords="offset points", color=INK, size=10)
        x, y = x + dx, y + dy
        corners.append((x, y))
    _arrow(ax, (0, 0), (x, y), INK)
    ax.annotate("context vector", (x, y), (-6, 6), textcoords="offset points", ha="right", color=INK, size=10)
    for name, (dx, dy) in start.items():
        _arrow(ax, (0, 0), (dx, dy), MUTED, style="--")
        ax.annotate(f"{name} alone", (dx, dy), (6, 0), textcoords="offset points", color=MUTED, size=10)
    side = max(max(values) - min(values) for values in zip(*corners)) or 1.0
    left, low = (min(values) - 0.1 * side for values in zip(*corners))
    _square(ax, (left, left + 1.4 * side), (low, low + 1.3 * side))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return finished(fig)


def plot_matrices(panels: Mapping[str, Tensor], xlabel: str, ylabel: str) -> Figure:
    """Return matrices as maps side by side, each on its own scale: light is small, dark is large."""
    fig = new_figure(4.0 * len(panels), 3.9)
    for ax, matrix in _titled(fig, panels):
        ax.imshow(numbers(matrix), cmap="Blues")
        ax.set(xlabel=xlabel, ylabel=ylabel)
    return finished(fig)


def plot_attention(panels: Mapping[str, Tensor], queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Return attention maps side by side: a row a query, a column a key, colours always from 0 to 1.

    Args:
        panels: title -> attention weights, (num_tokens, num_tokens).
        queries, keys: a name for each row and each column.
    """
    blues = colormaps["Blues"]
    side = 0.5 * max(len(queries), len(keys)) + 1.4
    abreast = len(panels) * side <= 10  # inches; wider maps stand one above the other
    rows, columns = (1, len(panels)) if abreast else (len(panels), 1)
    fig = new_figure(side * columns, (side + 0.4) * rows)
    for ax, weights in _titled(fig, panels, rows, columns):
        weights = numbers(weights)
        _check_names("queries", queries, len(weights))
        _check_names("keys", keys, len(weights[0]))
        ax.imshow(weights, cmap=blues, vmin=0, vmax=1)
        for i, row in enumerate(weights):
            for j, weight in enumerate(row):
                light = math.isnan(weight) or _luminance(blues(float(weight))) >= 0.179
                ink = "black" if light else "white"  # at least 4.5 : 1 on each cell
                ax.text(j, i, f"{weight:.2f}".lstrip("0"), ha="center", va="center", size=8, color=ink)
        ax.set_xticks(range(len(keys)), keys, rotation=45, ha="right", size=9, parse_math=False)
        ax.set_yticks(range(len(queries)), queries, size=9, parse_math=False)
        ax.tick_params(length=0, colors=AXIS_COLOURS["num_tokens"])
        ax.set(xlabel="key", ylabel="query")
    return finished(fig)


def plot_bars(panels: Mapping[str, Sequence[float]], names: Sequence[str], ylabel: str) -> Figure:
    """Return bar charts side by side on one scale from 0 to 1, a bar for each name."""
    longest = max((len(str(name)) for name in names), default=0)
    fig = new_figure(max(3.4, 0.3 * len(names), 0.08 * longest * len(names)) * len(panels), 2.8)
    for ax, values in _titled(fig, panels):
        _check_names("names", names, len(values))
        ax.bar(range(len(names)), numbers(values), color=AXIS_COLOURS["num_tokens"])
        ax.set_xticks(range(len(names)), names, size=9, parse_math=False)
        ax.set(ylim=(0, 1), ylabel=ylabel)
        ax.spines[["top", "right"]].set_visible(False)
    return finished(fig)


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
        panels: title -> name of a line -> its values, one for each of `x`.
        x: the places of the values.
        xlabel: what `x` is.
        log_x: whether the horizontal axis counts doublings.
        log_y: titles of the panels whose vertical axis counts powers of ten.
        same_y: whether all panels have one vertical scale.
    """
    fig = new_figure(3.6 * len(panels), 3.2)
    for ax, lines in _titled(fig, panels, sharey=same_y):
        for place, (name, values) in enumerate(lines.items()):
            style = {"ls": _STYLES[place % 4], "marker": _MARKERS[place % 4], "color": _COLOURS[place % 4]}
            ax.plot(numbers(x), numbers(values), ms=4, label=name, **style)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if log_x:
            ax.set_xscale("log", base=2)
        if ax.get_title() in log_y:
            ax.set_yscale("log")
        ax.set_xlabel(xlabel)
        ax.legend(frameon=False, fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    return finished(fig)


def _titled(
    fig: Figure, panels: Mapping[str, Any], rows: int = 1, columns: int | None = None, **options: Any
) -> Iterator[tuple[Axes, Any]]:
    """Yield a titled pair of axes and what goes on it, for each panel; side by side unless told otherwise."""
    axes = fig.subplots(rows, columns or len(panels), squeeze=False, **options)
    for ax, (title, panel) in zip(axes.flat, panels.items()):
        ax.set_title(title, size=10, color=INK)
        yield ax, panel


def _luminance(colour: Sequence[float]) -> float:
    """Return how light a colour is, from 0 to 1 (WCAG's relative luminance)."""
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear))


def _check_names(argument: str, names: Sequence[str], count: int) -> None:
    if len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names for {count} rows, columns or bars")


def _arrow(ax: Axes, tail: Sequence[float], head: Sequence[float], colour: str, style: str = "-") -> None:
    shape = {"arrowstyle": "->", "color": colour, "lw": 2, "linestyle": style, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", head, tail, arrowprops=shape)


def _square(ax: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Set the limits, with one unit as long on both axes and the origin marked."""
    ax.set(xlim=x, ylim=y, aspect="equal")
    ax.axhline(0, color=MUTED, lw=0.6, zorder=0)
    ax.axvline(0, color=MUTED, lw=0.6, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
