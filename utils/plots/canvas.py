"""What all figures share: the colours, the paper, and how a figure is shown with its description."""

import base64
import io
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import matplotlib
from IPython import get_ipython
from IPython.display import display
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path
from torch import Tensor

from utils.plots.inputs import one_line

# One colour per kind of axis, throughout the course (Okabe and Ito's colours, told apart by the colour-blind).
AXIS_COLOURS = {
    "batch_size": "#b25900",
    "num_tokens": "#0072b2",
    "emb_dim": "#00795a",
    "num_heads": "#a8487f",
    "vocab_size": "#7a6a00",
}
LINE_COLOURS = [AXIS_COLOURS[axis] for axis in ("num_tokens", "batch_size", "emb_dim", "num_heads", "vocab_size")]
# So that no line depends on colour alone; of five colours and four styles, each of twelve lines has its own pair.
MARKERS = "os^Dv"
LINE_STYLES = ("-o", "--s", ":^", "-.D")
INK, MUTED, PAPER = "#1a1a1a", "#595959", "#ffffff"
# Neighbouring tokens have different fills; dark ink is readable on each.
TOKEN_FILLS = ("#cfe6f5", "#ffe3b8", "#cdeee0", "#f6d7e8", "#f4eeb0")
# The layout is spared the words in the middle of things: measuring each would take most of the time.
CENTRED = {"ha": "center", "va": "center", "in_layout": False}
# A hidden cell is hatched, so that it is told apart from a small number.
HATCHED = {"fill": False, "hatch": "/////", "ec": "#9a9a9a", "lw": 0}
PAGE = 10.8  # inches: a wider figure would be shrunk by the page it is shown on
# A dollar sign in a token starts no formula.
_SETTINGS = {"text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False}
DPI = 144  # sharp on fine screens, which show 96 pixels per inch as 144 or more


def show(fig: Figure, alt: str) -> None:
    """Display a figure with its description.

    The output holds the PNG and the alt text, as its text/plain and as the image's metadata, so
    that a screen reader, a reader of the notebook's text and the tests all have the same words.
    Outside a notebook only the words are shown.

    Args:
        fig: a Matplotlib figure; one of your own keeps its style.
        alt: what the picture shows, in words.
    """
    if not isinstance(fig, Figure):
        raise TypeError(f"fig must be a Matplotlib figure, not {type(fig).__name__}")
    if not isinstance(alt, str):
        raise TypeError(f"alt must be a string, not {type(alt).__name__}")
    if not alt.strip():
        raise ValueError("alt is empty: say in words what the picture shows")
    if "matplotlib.pyplot" in sys.modules:  # a learner's own pyplot figure would be shown twice
        sys.modules["matplotlib.pyplot"].close(fig)
    if get_ipython() is None:
        print(alt)
        return
    width, height = (round(inch * 96) for inch in fig.get_size_inches())
    display(
        {"image/png": base64.b64encode(as_png(fig)).decode("ascii"), "text/plain": alt},
        metadata={"image/png": {"alt": alt, "width": width, "height": height}},
        raw=True,
    )


def as_png(fig: Figure, dpi: int = DPI) -> bytes:
    """Return the figure as a PNG; with the usual pixels per inch it is sharp on fine screens too."""
    png = io.BytesIO()
    with matplotlib.rc_context({"savefig.bbox": None}):  # cropped, it would not have the size of the figure
        fig.savefig(png, format="png", dpi=dpi, pil_kwargs={"optimize": True})
    return png.getvalue()


def shape_ledger(**tensors: tuple[Tensor, str]) -> None:
    """Print a table of tensors: name, shape, meaning of each axis.

    Args:
        **tensors: for each name a tensor and its axes, such as (batch, "batch_size, num_tokens").

    >>> import torch
    >>> shape_ledger(batch=(torch.zeros(2, 4), "batch_size, num_tokens"))
    tensor  shape   axes
    batch   (2, 4)  batch_size, num_tokens
    """
    rows = [("tensor", "shape", "axes")]
    for name, (tensor, axes) in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(tensor).__name__}")
        if not isinstance(axes, str):
            raise TypeError(f"the axes of {name} must be a string, not {type(axes).__name__}")
        if len([axis for axis in axes.split(",") if axis.strip()]) != tensor.dim():
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but its axes are given as {axes!r}")
        rows.append((name, str(tuple(tensor.shape)), axes))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, shape, axes in rows:
        print(f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {axes}".rstrip())


class CourseFigure(Figure):
    """A figure drawn with Matplotlib's own settings; unknown to pyplot, so that no notebook draws it twice."""

    def __init__(self, width: float, height: float):
        super().__init__(figsize=(width, height), layout="constrained", facecolor=PAPER)
        self.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # no word sits on the edge of the paper

    draw = style.context("default")(Figure.draw)
    savefig = style.context("default")(Figure.savefig)


def in_course_style(plot: Callable[..., Figure]) -> Callable[..., Figure]:
    """Have a function make its figure with Matplotlib's own settings, and all words drawn as they are."""

    @wraps(plot)
    @style.context("default")
    def styled(*args: Any, **options: Any) -> Figure:
        with matplotlib.rc_context(_SETTINGS):
            fig = plot(*args, **options)
        fig.findobj()  # this makes the ticks in time, and outside: 10² on an axis is a formula
        return fig

    return styled


def charts_of(
    panels: Mapping[str, Any], width: float, height: float, xlabel: str = "", ylabel: str = "", **options: Any
) -> tuple[Figure, list[tuple[Axes, Any]]]:
    """Return a figure of one chart per panel, titled and labelled, as many side by side as a page takes."""
    columns = min(len(panels), int(PAGE / width) or 1)
    rows = math.ceil(len(panels) / columns)
    fig = CourseFigure(width * columns, height * rows)
    axes = fig.subplots(rows, columns, squeeze=False, **options).ravel()
    for ax in axes[len(panels) :]:
        ax.remove()
    for ax, title in zip(axes, panels):
        ax.set_title(one_line(title, int(14 * width)), size=10, color=INK)
        ax.set(xlabel=one_line(xlabel, int(14 * width)), ylabel=one_line(ylabel, int(14 * height)))
    return fig, list(zip(axes, panels.values()))


def bare_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes, without lines, ticks or labels."""
    fig = CourseFigure(width, height)
    ax = fig.add_subplot()
    ax.set_axis_off()
    return fig, ax


def fit_to_inches(ax: Axes, width: tuple[float, float], height: tuple[float, float]) -> None:
    """Fill the figure with its axes, from left to right and from bottom to top, one unit an inch."""
    fig = ax.get_figure()
    fig.set_layout_engine("none")
    fig.set_size_inches(width[1] - width[0], height[1] - height[0])
    ax.set(position=(0, 0, 1, 1), xlim=width, ylim=height)


def colour_of(axis: str) -> str:
    """Return the colour of an axis by its name; d_in, d_out and head_dim count a vector's entries, as emb_dim does."""
    return AXIS_COLOURS.get(axis, AXIS_COLOURS["emb_dim"])


def draw_way(ax: Axes, way: Sequence[tuple[float, float]], **look: Any) -> None:
    """Draw an arrow along corners."""
    shape = {"arrowstyle": "->", "mutation_scale": 12, "color": MUTED, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.add_patch(FancyArrowPatch(path=Path(way), joinstyle="miter", **shape | look))
