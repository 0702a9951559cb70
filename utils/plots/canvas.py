"""What all figures share: the colours, the paper, and how a figure is shown with its description."""

import base64
import io
import sys
from collections.abc import Iterable
from typing import Any

from IPython import get_ipython
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

# One colour an axis kind, all course long (Okabe and Ito's colours, told apart by the colour-blind).
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


def show(fig: Figure, alt: str) -> None:
    """Display a figure with its description.

    The output holds the PNG and the alt text, as its text/plain and as the image's metadata, so
    that a screen reader, a reader of the notebook's text and the tests all have the same words.
    Outside a notebook the words are all that is shown.

    Args:
        fig: a Matplotlib figure.
        alt: what the picture shows, in words.

    Raises:
        TypeError: `fig` is no figure, or `alt` no string.
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
    width, height = (round(inches * 96) for inches in fig.get_size_inches())
    display(
        {"image/png": base64.b64encode(as_png(fig)).decode("ascii"), "text/plain": alt},
        metadata={"image/png": {"alt": alt, "width": width, "height": height}},
        raw=True,
    )


def as_png(fig: Figure) -> bytes:
    """Return the figure as a PNG, sharp on fine screens too."""
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=144, facecolor=PAPER)
    return png.getvalue()


def shape_ledger(**tensors: tuple[Tensor, str]) -> None:
    """Print a table of tensors: name, shape, meaning of each axis.

    Args:
        **tensors: for each name a tensor and its axes, such as (batch, "batch_size, num_tokens").

    Raises:
        TypeError: one is no tensor.
        ValueError: the axes named are not as many as the tensor has.

    >>> import torch
    >>> shape_ledger(batch=(torch.zeros(2, 4), "batch_size, num_tokens"))
    tensor  shape   axes
    batch   (2, 4)  batch_size, num_tokens
    """
    rows = [("tensor", "shape", "axes")]
    for name, (tensor, axes) in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(tensor).__name__}")
        if len([axis for axis in axes.split(",") if axis.strip()]) != tensor.dim():
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but its axes are given as {axes!r}")
        rows.append((name, str(tuple(tensor.shape)), axes))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, shape, axes in rows:
        print(f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {axes}".rstrip())


def numbers(data: Any) -> Any:
    """Return a number or nested numbers of any library as plain Python ones."""
    if isinstance(data, Tensor):
        data = data.detach()
    if hasattr(data, "tolist"):
        return data.tolist()
    return [numbers(item) for item in data] if isinstance(data, Iterable) else float(data)


def new_figure(width: float, height: float) -> Figure:
    # Not pyplot's figure: nothing global is touched, and nothing is drawn a second time.
    return Figure(figsize=(width, height), layout="constrained", facecolor=PAPER)


def bare_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one bare pair of axes."""
    fig = new_figure(width, height)
    ax = fig.add_subplot()
    ax.set_axis_off()
    return fig, ax


def finished(fig: Figure) -> Figure:
    """Return the figure with all words read as they are: a dollar sign in a token starts no formula."""
    for ax in fig.axes:
        legend = ax.get_legend()
        for text in (*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label, *(legend.get_texts() if legend else ())):
            text.set_parse_math(False)
    return fig


def visible(piece: str) -> str:
    """Return a piece of text with its blanks made visible and what has no glyph spelt out."""
    signs = {" ": "␣", "\n": "↵"}
    return "".join(signs.get(c) or (c if c.isprintable() else c.encode("unicode_escape").decode()) for c in piece)
