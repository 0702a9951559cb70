"""How multi-head attention splits vectors among its heads and joins them again, drawn from the vectors themselves."""

from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from utils.arguments import as_integer
from utils.plots.canvas import (
    AXIS_COLOURS,
    CENTRED,
    INK,
    PAPER,
    TOKEN_FILLS,
    bare_axes,
    colour_of,
    draw_way,
    fit_to_inches,
    in_course_style,
)
from utils.plots.inputs import as_array, check_size

WIDTH, LEFT = 5.5, 1.6  # inches, as all lengths here; left of the cells are words
CELL, ROW = 0.38, 0.22  # the width of a cell, at most, and its height
GAP, BETWEEN = 0.18, 0.75  # between two heads, and for the arrows between two rows of parts


@in_course_style
def plot_heads(vectors: Tensor, num_heads: int) -> Figure:
    """Return the split of vectors among the heads, a colour per head, and the join that undoes it.

    A cell shows its number where the cell is wide enough.

    Args:
        vectors: (num_tokens, d_out), such as all queries; at most 8 tokens of 32 entries.
        num_heads: 8 at most; must divide d_out.
    """
    numbers = as_array("vectors", vectors, dims=2)
    num_tokens, d_out = numbers.shape
    check_size("vectors", num_tokens, "tokens", 8)
    check_size("vectors", d_out, "entries per token", 32)
    num_heads = as_integer("num_heads", num_heads, 1, 8)
    if d_out % num_heads:
        raise ValueError(f"num_heads is {num_heads}, which does not divide the {d_out} entries of each of the vectors")
    cell = min(CELL, (WIDTH - 0.1 - LEFT - GAP * (num_heads - 1)) / d_out)
    apart = [LEFT + head * (cell * d_out / num_heads + GAP) for head in range(num_heads)]  # where each head starts
    together = [left + GAP * (num_heads - 1) / 2 - GAP * head for head, left in enumerate(apart)]
    words = _words_of(numbers)
    if max(map(len, words.flat)) * 0.067 >= cell - 0.04:  # too long for a cell
        words = np.full_like(words, "")
    heads = np.split(words, num_heads, axis=1)

    fig, ax = bare_axes(WIDTH, 1.0)
    middle = cell * d_out / num_heads / 2  # of a head's cells
    stages = (
        (together, "vectors", (num_tokens, d_out), "num_tokens d_out"),
        (apart, "heads", (num_heads, num_tokens, d_out // num_heads), "num_heads num_tokens head_dim"),
        (together, "joined", (num_tokens, d_out), "num_tokens d_out"),
    )
    top, before = 0.0, None
    for (lefts, name, shape, axes), operation in zip(stages, ("", "split: one part per head", "join: side by side")):
        if before:
            for start, end in zip(before, lefts):
                stop = top - BETWEEN + (0.24 if name == "heads" else 0.06)
                draw_way(ax, [(start + middle, top - 0.04), (end + middle, stop)])
            ax.text(0.1, top - BETWEEN / 2, operation, size=9, color=INK, va="center")
            top -= BETWEEN
        _write_shape(ax, top - ROW * num_tokens / 2, name, shape, axes.split())
        for head, (left, part, fill) in enumerate(zip(lefts, heads, cycle(TOKEN_FILLS))):
            if name == "heads":
                ax.text(left + middle, top + 0.11, f"head {head}", size=8, color=AXIS_COLOURS["num_heads"], **CENTRED)
            _draw_cells(ax, part, (left, top), cell, fill)
        for row in range(num_tokens):
            look = {"size": 8, "color": AXIS_COLOURS["num_tokens"], "ha": "right", "va": "center"}
            ax.text(lefts[0] - 0.06, top - ROW * (row + 0.5), f"token {row}", **look)
        top, before = top - ROW * num_tokens, lefts
    fit_to_inches(ax, (0, apart[-1] + 2 * middle + 0.1), (top - 0.15, 0.15))
    return fig


def _words_of(numbers: np.ndarray) -> np.ndarray:
    """Return the numbers as words: as they are where all of them are integers, else with one decimal place."""
    places = 0 if (numbers == numbers.round()).all() else 1
    return np.array([[f"{entry:.{places}f}".replace("-", "−") for entry in row] for row in numbers])


def _draw_cells(ax: Axes, words: np.ndarray, corner: tuple[float, float], cell: float, fill: str) -> None:
    """Draw the cells of one part of the vectors, below and to the right of a corner."""
    left, top = corner
    for (row, column), word in np.ndenumerate(words):
        x, y = left + cell * column, top - ROW * (row + 1)
        ax.add_patch(Rectangle((x, y), cell, ROW, fc=fill, ec=PAPER, lw=1))
        ax.text(x + cell / 2, y + ROW / 2, word, size=8, family="monospace", color=INK, **CENTRED)


def _write_shape(ax: Axes, middle: float, name: str, shape: tuple[int, ...], axes: list[str]) -> None:
    """Write a tensor's name, its shape and the names of its axes, one below the other."""
    lines = [
        (name, INK),
        (str(shape), INK),
        *((axis, colour_of(axis)) for axis in axes),
    ]
    for index, (line, colour) in enumerate(lines):
        look = {"size": 10, "family": "monospace"} if index < 2 else {"size": 8}
        ax.text(0.1, middle + 0.16 * ((len(lines) - 1) / 2 - index), line, color=colour, va="center", **look)
