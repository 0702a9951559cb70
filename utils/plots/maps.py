"""Figures of matrices: each number a shade, each hidden cell hatched."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from utils.plots.canvas import AXIS_COLOURS, CENTRED, HATCHED, PAPER, CourseFigure, charts_of, in_course_style
from utils.plots.inputs import as_array, as_dict, as_list, as_mask, as_names, check_size, finite_range, some_of


@in_course_style
def plot_matrices(panels: Mapping[str, Tensor], xlabel: str, ylabel: str) -> Figure:
    """Return matrices as maps side by side, each on its own scale: a small number is faint, a large one strong.

    A score of −inf is hatched, +inf is as strong as the largest finite number; a cell that is nan is left empty.
    All matrices together have at most 2,500,000 numbers.
    """
    fig, charts = charts_of(_matrices(panels), 4.4, 3.9, xlabel, ylabel)
    for ax, matrix in charts:
        lowest, highest = finite_range(matrix)
        image = _map(ax, np.clip(matrix, lowest, highest), lowest, highest, matrix == -np.inf)
        fig.colorbar(image, cax=ax.inset_axes((1.04, 0, 0.04, 1))).outline.set_visible(False)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    _key(fig, "−inf")
    return fig


def _matrices(panels: Any) -> dict[str, np.ndarray]:
    matrices = as_dict("panels", panels, partial(as_array, dims=2, most=2_500_000, finite=False))
    check_size("panels", sum(matrix.size for matrix in matrices.values()), "numbers", 2_500_000)
    return matrices


def _map(ax: Axes, matrix: np.ndarray, lowest: float, highest: float, hidden: np.ndarray) -> AxesImage:
    """Draw a matrix in blues; its hidden cells are clear, and show the hatching behind it."""
    if hidden.any():
        rows, columns = matrix.shape
        ax.add_patch(Rectangle((-0.5, -0.5), columns, rows, zorder=-1, **HATCHED))
    clear = (~hidden).astype(float) if hidden.any() else None
    image = ax.imshow(matrix, "Blues", vmin=lowest, vmax=highest, alpha=clear)
    ax.spines[:].set_visible(True)
    return image


def _key(fig: Figure, words: str) -> None:
    """Say what the hatching means, where there is any."""
    hatched = [patch for ax in fig.axes for patch in ax.patches if patch.get_hatch()]
    if hatched:
        fig.legend(hatched[:1], [words], loc="outside lower right", frameon=False, fontsize=9)


@in_course_style
def plot_attention(
    panels: Mapping[str, Tensor],
    queries: Sequence[str],
    keys: Sequence[str],
    hidden: Tensor | Mapping[str, Tensor] | None = None,
    framed: Tensor | Mapping[str, Tensor] | None = None,
) -> Figure:
    """Return attention maps side by side: one row per query, one column per key, colours always from 0 to 1.

    Args:
        panels: title -> attention weights, (num_tokens, num_tokens). Each cell shows its number as
            long as all maps together have at most 450 cells; 2,500,000 are the most that are drawn.
        queries, keys: a name for each row and each column; of many names only some are drawn.
        hidden: True for each key that is hidden from a query, (num_tokens, num_tokens): that cell is
            hatched and shows no number. One mask for all maps, or title -> mask for some of them.
        framed: True for each cell that gets an orange frame; of the same form as `hidden`.
    """
    panels = _matrices(panels)
    for weights in panels.values():
        queries = as_names("queries", queries, weights.shape[0])
        keys = as_names("keys", keys, weights.shape[1])
    masks, frames = _masks("hidden", hidden, panels), _masks("framed", framed, panels)
    numbered = sum(weights.size for weights in panels.values()) <= 450
    cell = min(0.5, (8.6 if numbered or len(panels) == 1 else 3.4) / max(len(queries), len(keys)))  # inches, as below
    width, height = (max(cell * number, 0.9) + 1.4 for number in (len(keys), len(queries)))
    names = 0.075 * max(0, max(map(len, [*queries, *keys])) - 10)
    key = 0.4 if any(mask.any() for mask in masks) else 0  # for what the hatching means
    fig, charts = charts_of(panels, width + names, height + names + 0.4 + key, "key", "query")
    for (ax, weights), mask, frame in zip(charts, masks, frames):
        _map(ax, weights, 0, 1, mask)
        for row, column in np.argwhere(frame):
            look = {"fill": False, "ec": AXIS_COLOURS["batch_size"], "lw": 2.5, "zorder": 3}
            ax.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, **look))
        for (row, column), weight in np.ndenumerate(weights) if numbered else ():
            # Black is readable (4.5 : 1) on the first 183 of the 256 blues, white on the others.
            ink = "white" if weight >= 183 / 256 else "black"
            if not mask[row, column]:
                ax.text(column, row, f"{weight:.2f}".lstrip("0"), size=8, color=ink, **CENTRED)
        most_names = max(10, 50 // len(panels))
        ax.set_xticks(*some_of(keys, most_names), rotation=45, ha="right", size=9)
        ax.set_yticks(*some_of(queries, most_names), size=9)
        ax.tick_params(length=0, colors=AXIS_COLOURS["num_tokens"])
    _key(fig, "hidden from the query")
    return fig


def _masks(argument: str, given: Any, panels: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return a mask for each map, whether one is given for all, one for some of the titles, or None."""
    by_title = given if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(panels, given)
    if unknown := [title for title in by_title if title not in panels]:
        raise ValueError(f"{argument} has a mask for {unknown[0]!r}, but the titles are {list(panels)}")
    return [
        as_mask(argument, by_title[title], weights.shape) if title in by_title else np.zeros(weights.shape, bool)
        for title, weights in panels.items()
    ]


# For each mark of a verdict: what it means, the colour of its cell, and a sign, for whom colours are not enough.
_VERDICTS = {
    "✓": ("right", "#0072b2", ""),
    "✗": ("wrong", "#e69f00", "x"),
    "…": ("not attempted", "#dcdcdc", "."),
    " ": ("no file", PAPER, ""),
}


@in_course_style
def plot_verdicts(verdicts: Sequence[str], learners: Sequence[str], tasks: Sequence[str]) -> Figure:
    """Return a map of who has solved what: one row per learner, one column per task.

    Args:
        verdicts: for each learner one mark per task: ✓ right, ✗ wrong, … not attempted, or a space for no file.
        learners, tasks: a name for each row and each column; of many names only some are drawn.
    """
    rows = [as_list("verdicts", row) for row in as_list("verdicts", verdicts)]
    check_size("verdicts", len(rows), "rows", 10_000)
    learners, marks = as_names("learners", learners, len(rows)), list(_VERDICTS)
    if wrong := [row for row in rows if len(row) != len(rows[0]) or not set(row) <= {*marks}]:
        raise ValueError(f"verdicts has the row {wrong[0]!r}: each row is as long as the first, of the marks {marks}")
    tasks, table = (
        as_names("tasks", tasks, len(rows[0])),
        np.array([[marks.index(mark) for mark in row] for row in rows]),
    )
    cell = min(0.25, 60 / len(rows))  # inches high; wider cells keep the names of neighbours apart
    fig = CourseFigure(0.36 * len(tasks) + 0.09 * max(map(len, learners)) + 2, cell * len(rows) + 1)
    ax = fig.add_subplot()
    ax.imshow(table, ListedColormap([colour for _, colour, _ in _VERDICTS.values()]), vmin=0, vmax=3, aspect="auto")
    for index, (meaning, colour, sign) in enumerate(_VERDICTS.values()):
        ax.plot([], [], "s", ms=9, c=colour, mec="#8a8a8a", label=meaning)
        if sign:
            ax.plot(*np.argwhere(table == index).T[::-1], sign, ms=20 * cell, c="black")
    for column in range(1, len(tasks)):
        if tasks[column].partition(".")[0] != tasks[column - 1].partition(".")[0]:  # the next lesson
            ax.axvline(column - 0.5, c=PAPER, lw=4)
    ax.set_xticks(*some_of(tasks, len(tasks)), size=9)
    ax.set_yticks(*some_of(learners, 430), size=min(9, 60 * cell))
    ax.tick_params(length=0, top=True, labeltop=True)
    fig.legend(loc="outside right upper", frameon=False, fontsize=9)
    return fig
