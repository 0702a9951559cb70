"""The pieces of the diagrams of models: boxes for layers beside a straight residual stream."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyBboxPatch

from utils.plots.canvas import AXIS_COLOURS, CENTRED, INK, MUTED, PAPER, TOKEN_FILLS, draw_way

STREAM, LEFT, MIDDLE, RIGHT = 0.6, 1.5, 3.25, 5.0  # inches, as all lengths here: where the stream and the boxes are
GREEN = AXIS_COLOURS["emb_dim"]
FILLS = dict(zip(("attention", "feed_forward", "table"), TOKEN_FILLS), norm="#ececec")


def draw_box(ax: Axes, top: float, name: str, count: str, kind: str, *lines: str) -> float:
    """Draw a layer below `top`: its name, how many parameters it has, and words. Return the height of its middle."""
    height = 0.26 + 0.16 * len(lines)
    _draw_rounded(ax, (LEFT, top - height), RIGHT - LEFT, height, fc=FILLS[kind], ec="none")
    write(ax, LEFT + 0.08, top - 0.14, name, count)
    for index, line in enumerate(lines):
        ax.text(LEFT + 0.08, top - 0.31 - 0.16 * index, line, size=8, color=MUTED, va="center")
    return top - height / 2


def draw_frame(ax: Axes, top: float, height: float, name: str, count: str) -> None:
    """Draw a block's frame, which the residual stream goes through."""
    left = STREAM - 0.3
    _draw_rounded(ax, (left, top - height), RIGHT + 0.06 - left, height, fc=PAPER, ec=MUTED, lw=1, zorder=0.5)
    write(ax, LEFT + 0.08, top - 0.14, name, count)


def _draw_rounded(ax: Axes, corner: tuple[float, float], width: float, height: float, **look: Any) -> None:
    ax.add_patch(FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=0.06", **look))


def draw_stream(ax: Axes, top: float, bottom: float) -> None:
    """Draw the residual stream, a straight line that every layer is beside."""
    ax.plot([STREAM, STREAM], [top, bottom], color=GREEN, lw=3, zorder=1, solid_capstyle="butt")
    words = {"rotation": 90, "size": 8, "color": GREEN}
    ax.text(STREAM - 0.19, (top + bottom) / 2, "residual stream", **words, **CENTRED)


def draw_fork(ax: Axes, y: float) -> None:
    """Draw what a layer gets: a copy of the stream."""
    ax.plot(STREAM, y, "o", color=GREEN, ms=5)
    draw_way(ax, [(STREAM, y), (LEFT - 0.02, y)])


def draw_sum(ax: Axes, y: float, words: str = "") -> None:
    """Draw what a layer gives: it is added to the stream."""
    draw_way(ax, [(LEFT, y), (STREAM + 0.1, y)])
    ax.add_patch(Circle((STREAM, y), 0.1, fc=PAPER, ec=GREEN, lw=2, zorder=2))
    ax.text(STREAM, y - 0.005, "+", size=11, color=INK, zorder=3, **CENTRED)
    ax.text((STREAM + LEFT) / 2 + 0.07, y + 0.09, words, size=8, color=MUTED, **CENTRED)


def draw_down(ax: Axes, y: float) -> None:
    """Draw the arrow from one box down to the next."""
    draw_way(ax, [(MIDDLE, y), (MIDDLE, y - 0.19)])


def write(ax: Axes, x: float, y: float, name: str, count: str = "") -> None:
    """Write a name as code, and at the right how many parameters it has."""
    ax.text(x, y, name, size=9, family="monospace", color=INK, va="center")
    ax.text(RIGHT - 0.08, y, count, size=8, color=INK, ha="right", va="center")


def write_shape(ax: Axes, y: float, name: str, *last_axis: int) -> None:
    """Write the name and the shape of what flows."""
    shape = ", ".join(["batch_size", "num_tokens", *map(str, last_axis)])
    x, ha = (STREAM - 0.2, "left") if name == "x" else (MIDDLE, "center")  # x is the stream itself
    ax.text(x, y, f"{name} ({shape})", size=9, family="monospace", color=INK, ha=ha, va="center")
