"""Figures of vectors: points and arrows in a plane, and a weighted sum."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from utils.arguments import as_bool, as_number
from utils.plots.canvas import (
    AXIS_COLOURS,
    INK,
    LINE_COLOURS,
    MARKERS,
    MUTED,
    charts_of,
    in_course_style,
)
from utils.plots.inputs import as_array, as_dict, as_list, check_size, one_line, visible

Points = Mapping[str, Sequence[float]]  # name -> (x, y)


@in_course_style
def plot_plane(
    panels: Mapping[str, Points],
    arrows: bool = False,
    reach: float | None = None,
    xlabel: str = "",
    ylabel: str = "",
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """Return maps of named points, side by side on one scale; points that lie together share a label.

    Args:
        panels: title -> name -> (x, y), both finite; 100 points at most on all maps.
        arrows: draw each point as an arrow from the origin.
        reach: the axes run from −reach to reach; by default as far as the points.
        groups: group -> the names of its points: a colour and a marker per group, and a legend;
            points in no group are grey. Five groups at most.
    """
    arrows = as_bool("arrows", arrows)
    panels = as_dict("panels", panels, _points)
    check_size("panels", sum(map(len, panels.values())), "points", 100)
    furthest = max(abs(c) for points in panels.values() for point in points.values() for c in point)
    reach = 1.15 * furthest or 1.0 if reach is None else as_number("reach", reach, 1e-100, 1e100)
    looks = _looks(groups, set().union(*panels.values())) if groups is not None else {}
    rest = (MUTED if looks else AXIS_COLOURS["emb_dim"], "o")
    fig, charts = charts_of(panels, 4.4, 4.2, xlabel, ylabel)
    for ax, points in charts:
        for name, point in points.items():
            colour, marker = looks.get(name, rest)
            if arrows:
                _arrow(ax, (0, 0), point, colour)
            else:
                ax.plot(*point, marker, color=colour, ms=7)
        labels, at = zip(*_labels(points, near=0.05 * reach))
        lines = np.array([((0, 0) if arrows else point, point) for point in points.values()])
        spots = _free_spots(labels, np.array([at, at]).swapaxes(0, 1), lines, scale=1.6 / reach)
        for label, point, spot in zip(labels, at, spots):
            ax.annotate(label, point, spot[:2], size=10, color=INK, ha="center", va="center")
        _square(ax, (-reach, reach), (-reach, reach))
    if looks:
        looks_of = [("-", "") if arrows else ("", marker) for marker in MARKERS]
        handles = [Line2D([], [], color=c, ls=line, marker=marker) for c, (line, marker) in zip(LINE_COLOURS, looks_of)]
        fig.legend(handles, map(one_line, groups), loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    return fig


def _looks(groups: Any, known: set) -> dict[Any, tuple[str, str]]:
    """Return name -> (colour, marker) for the points of each group."""
    groups = as_dict("groups", groups, as_list, "groups", 5)
    looks = {}
    for names, *look in zip(groups.values(), LINE_COLOURS, MARKERS):
        for name in names:
            if name in looks or name not in known:
                raise ValueError(f"groups has {name!r} {'twice' if name in looks else ', which is not a point'}")
            looks[name] = tuple(look)
    return looks


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
        yield shown if len(names) <= 3 else f"{len(names)} points", points[names[0]]


@in_course_style
def plot_weighted_sum(parts: Points, start: Points, xlabel: str, ylabel: str) -> Figure:
    """Return the parts of a weighted sum as arrows laid end to end, with the sum and vectors to compare it with.

    Args:
        parts: name -> (x, y), finite, each vector already times its weight; 24 at most.
        start: name -> (x, y) of vectors to compare the sum with, drawn dashed; there may be none.
    """
    parts, start = _points("parts", parts), _points("start", start) if start else {}
    check_size("parts", len(parts) + len(start), "arrows", 24)
    ends = np.cumsum([(0, 0), *parts.values()], axis=0)
    colours = [INK, *(LINE_COLOURS[index % 5] for index in range(len(parts))), *[MUTED] * len(start)]
    names = ["context vector", *(one_line(n, 24) for n in parts), *(f"{one_line(n, 24)} alone" for n in start)]
    arrows = np.array([(ends[0], ends[-1]), *pairwise(ends), *((ends[0], head) for head in start.values())])
    scale = 4.4 / (np.ptp(arrows, axis=(0, 1)).max() or 1.0)  # inches per unit
    spots = _free_spots(names, arrows, arrows, scale)
    halves = np.array([_half(name) for name in names]) / scale
    corners = np.array([*ends, *arrows[:, 1], *(spots[:, :2] - halves), *(spots[:, :2] + halves)])
    low, high = corners.min(axis=0) - 0.1 / scale, corners.max(axis=0) + 0.1 / scale
    fig, [(ax, _)] = charts_of({"": None}, *np.maximum((high - low) * scale + 0.8, 3.4), xlabel, ylabel)
    _square(ax, (low[0], high[0]), (low[1], high[1]))
    for axis, inches in zip((ax.xaxis, ax.yaxis), (high - low) * scale):
        axis.set_major_locator(MaxNLocator(1 + int(inches / 0.6)))
    for index, (name, colour, (tail, head), (x, y, angle)) in enumerate(zip(names, colours, arrows, spots)):
        # The sum is drawn first and wider: it ends where the last part ends.
        look = {"linestyle": "--"} if index > len(parts) else {} if index else {"lw": 3.5, "mutation_scale": 26}
        _arrow(ax, tail, head, colour, scale, **look)
        ax.text(x, y, name, size=10, color=colour, ha="center", va="center", rotation=angle)
    return fig


def _half(words: str) -> tuple[float, float]:
    """Return half of the width and the height of words, in inches."""
    return 0.042 * len(words) + 0.03, 0.09


def _free_spots(names: Sequence[str], arrows: np.ndarray, lines: np.ndarray, scale: float) -> np.ndarray:
    """Return (x, y, angle) for each name: close to its arrow, and on no line, no axis and no other name.

    Args:
        arrows, lines: (number, 2, 2), the tail and the head of each; a point is an arrow of length 0.
        scale: inches per unit.
    """
    far = np.abs(lines).max() * np.array([[[-1, 0], [1, 0]], [[0, -1], [0, 1]]])
    lines = np.concatenate([lines, far]) * scale
    taken = (lines[:, :1] + np.linspace(0, 1, 50)[:, None] * (lines[:, 1:] - lines[:, :1])).reshape(-1, 2)
    directions = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    around = np.stack([np.cos(directions), np.sin(directions)], axis=1)
    spots = []
    for name, (tail, head) in zip(names, arrows * scale):
        half = np.array(_half(name))
        along = tail + np.array([0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.9, 1])[:, None] * (head - tail)
        along = along[:1] if (tail == head).all() else along
        slope = (math.atan2(*(head - tail)[::-1]) + math.pi / 2) % math.pi - math.pi / 2
        for angle, steps in ((0, (1, 1.3)), (slope, (1, 1.3)), (0, (1.7, 2.2, 3))):
            rotation = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
            offsets = np.array(steps)[:, None, None] * around * (half + 0.07) @ rotation
            candidates = (along[:, None] + offsets[:, None]).reshape(-1, 2)
            gaps = (np.abs((candidates[:, None] - taken) @ rotation.T) - half).max(axis=2).min(axis=1)
            if (gaps > 0).any():
                break
        best = candidates[np.argmax(gaps > 0) if (gaps > 0).any() else gaps.argmax()]
        spots.append((*best / scale, math.degrees(angle)))
        grid = np.stack(np.meshgrid(np.linspace(-half[0], half[0], 12), (-half[1], 0, half[1])), axis=-1)
        taken = np.concatenate([taken, best + grid.reshape(-1, 2) @ rotation])
    return np.array(spots)


def _arrow(ax: Axes, tail: Any, head: Any, colour: str, scale: float = math.inf, **look: Any) -> None:
    """Draw an arrow; where a unit is `scale` inches long, one shorter than an arrow's head is a dot."""
    if scale * math.dist(tail, head) < 0.1:
        ax.plot(*head, "o", color=colour, ms=4)
        return
    shape = {"arrowstyle": "->", "mutation_scale": 14, "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", head, tail, arrowprops=shape | look)


def _square(ax: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Set the limits, with one unit as long on both axes and the origin marked."""
    ax.set(xlim=x, ylim=y, aspect="equal")
    ax.axhline(0, color=MUTED, lw=0.6, zorder=0)
    ax.axvline(0, color=MUTED, lw=0.6, zorder=0)
