"""What all figures share: the colours, the paper, and how a figure is shown with its description."""

import base64
import io
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import matplotlib
from IPython import get_ipython
from IPython.display import display
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from torch import Tensor

from utils.plots.inputs import spelt

# One colour per kind of axis, throughout the course (Okabe and Ito's colours, told apart by the colour-blind).
AXIS_COLOURS = {
    "batch_size": "#b25900",
    "num_tokens": "#0072b2",
    "emb_dim": "#00795a",
    "num_heads": "#a8487f",
    "vocab_size": "#7a6a00",
}
INK, MUTED, PAPER = "#1a1a1a", "#595959", "#ffffff"
# Neighbouring tokens take turns; dark ink is readable on each.
TOKEN_FILLS = ("#cfe6f5", "#ffe3b8", "#cdeee0", "#f6d7e8", "#f4eeb0")
CENTRED = {"ha": "center", "va": "center"}
PAGE = 10.8  # inches: a wider figure would be shrunk by the page it is shown on
DPI = 144  # sharp on fine screens, which show 96 pixels per inch as 144 or more


def show(fig: Figure, alt: str) -> None:
    """Display a figure with its description.

    The output holds the PNG and the alt text, as its text/plain and as the image's metadata, so
    that a screen reader, a reader of the notebook's text and the tests all have the same words.
    Outside a notebook only the words are shown.

    Args:
        fig: a Matplotlib figure; one of your own keeps its style.
        alt: what the picture shows, in words.

    Raises:
        TypeError: `fig` is not a figure, or `alt` is not a string.
        ValueError: `alt` is empty.
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
    png = as_png(fig)
    inches = fig.get_size_inches()
    if not isinstance(fig, CourseFigure):  # settings may crop it: bytes 16 to 23 of any PNG are its true size
        inches = [int.from_bytes(png[start : start + 4], "big") / DPI for start in (16, 20)]
    width, height = (round(inch * 96) for inch in inches)
    display(
        {"image/png": base64.b64encode(png).decode("ascii"), "text/plain": alt},
        metadata={"image/png": {"alt": alt, "width": width, "height": height}},
        raw=True,
    )


def as_png(fig: Figure) -> bytes:
    """Return the figure as a PNG, sharp on fine screens too."""
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=DPI)
    return png.getvalue()


def shape_ledger(**tensors: tuple[Tensor, str]) -> None:
    """Print a table of tensors: name, shape, meaning of each axis.

    Args:
        **tensors: for each name a tensor and its axes, such as (batch, "batch_size, num_tokens").

    Raises:
        TypeError: one is not a tensor, or its axes are not a string.
        ValueError: a tensor has more or fewer axes than are named.

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
    """A figure that is drawn with Matplotlib's own settings, whatever the user's are.

    Not pyplot's: nothing global is kept, and a notebook does not draw it a second time.
    """

    def __init__(self, width: float, height: float):
        super().__init__(figsize=(width, height), layout="constrained", facecolor=PAPER)

    def draw(self, renderer: Any) -> None:
        with style.context("default"):
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        with style.context("default"):
            super().savefig(*args, **options)


def in_course_style(plot: Callable[..., Figure]) -> Callable[..., Figure]:
    """Have a function make its figure with Matplotlib's own settings, and all words drawn as they are."""

    @wraps(plot)
    def styled(*args: Any, **options: Any) -> Figure:
        with style.context("default"):
            with matplotlib.rc_context({"text.parse_math": False}):  # a dollar sign in a token starts no formula
                fig = plot(*args, **options)
            for text in fig.findobj(Text):  # this also makes the ticks, outside: 10² on an axis is a formula
                text.set_text(spelt(text.get_text(), text.get_fontfamily()[0]))
        return fig

    return styled


def bare_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one bare pair of axes."""
    fig = CourseFigure(width, height)
    ax = fig.add_subplot()
    ax.set_axis_off()
    return fig, ax
