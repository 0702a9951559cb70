"""Figures of the course: computed from data, described in words, readable in light and dark."""

import base64
import io
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
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
ROUTE = ("text", "IDs", "batch", "embeddings", "attention", "…", "logits", "text")
_DPI = 144


def show(fig: Figure, alt: str) -> None:
    """Display a figure with its description.

    The output holds the PNG and the alt text, as its text/plain and as the image's metadata, so
    that a screen reader, a reader of the notebook's text and the tests all have the same words.

    Args:
        fig: a Matplotlib figure.
        alt: what the picture shows, in words.

    Raises:
        ValueError: `alt` is empty.
    """
    if not alt or not alt.strip():
        raise ValueError("alt is empty: say in words what the picture shows")
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=_DPI, facecolor=PAPER)
    if "matplotlib.pyplot" in sys.modules:  # a learner's own pyplot figure would be shown twice
        sys.modules["matplotlib.pyplot"].close(fig)
    width, height = (round(inches * 96) for inches in fig.get_size_inches())
    display(
        {"image/png": base64.b64encode(png.getvalue()).decode("ascii"), "text/plain": alt},
        metadata={"image/png": {"alt": alt, "width": width, "height": height}},
        raw=True,
    )


def shape_ledger(**tensors: tuple[Tensor, str]) -> None:
    """Print a table of tensors: name, shape, meaning of each axis.

    Args:
        **tensors: for each name a tensor and its axes, such as (batch, "batch_size, num_tokens").

    Raises:
        ValueError: the axes named are not as many as the tensor has.

    >>> import torch
    >>> shape_ledger(batch=(torch.zeros(2, 4), "batch_size, num_tokens"))
    tensor  shape   axes
    batch   (2, 4)  batch_size, num_tokens
    """
    rows = [("tensor", "shape", "axes")]
    for name, (tensor, axes) in tensors.items():
        if len([axis for axis in axes.split(",") if axis.strip()]) != tensor.dim():
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but its axes are given as {axes!r}")
        rows.append((name, str(tuple(tensor.shape)), axes))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, shape, axes in rows:
        print(f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {axes}".rstrip())


def plot_route(station: str) -> Figure:
    """Return the strip of the whole route, text to text, with one station lit.

    Args:
        station: one of `ROUTE`.
    """
    if station not in ROUTE:
        raise ValueError(f"station is {station!r}: the route has {ROUTE}")
    lit = ROUTE.index(station)
    fig, ax = _blank(8.0, 0.6)
    left = 0.0
    for place, name in enumerate(ROUTE):
        here = place == lit
        width = len(name) + 2.4
        fill = AXIS_COLOURS["num_tokens"] if here else "#ececec"
        ax.add_patch(
            FancyBboxPatch((left, -0.3), width, 0.6, boxstyle="round,pad=0.1,rounding_size=0.2", fc=fill, ec="none")
        )
        ax.text(left + width / 2, 0, name, ha="center", va="center", size=10, color=PAPER if here else INK)
        if place < len(ROUTE) - 1:
            ax.text(left + width + 1.2, 0, "→", ha="center", va="center", size=11, color=MUTED)
        left += width + 2.4
    ax.set(xlim=(-0.5, left - 1.9), ylim=(-0.6, 0.6))
    return fig


def plot_tokens(texts: Sequence[tuple[Sequence[str], Sequence[int]]]) -> Figure:
    """Return texts as rows of coloured tokens over their IDs.

    Args:
        texts: for each text its pieces and their IDs, of equal length. A blank is drawn as ␣, a
            line end as ↵.
    """
    fig, ax = _blank(8.0, 0.95 * len(texts))
    widest = 0.0
    for row, (pieces, ids) in enumerate(texts):
        left = 0.0
        for place, (piece, token_id) in enumerate(zip(pieces, ids, strict=True)):
            label = piece.replace(" ", "␣").replace("\n", "↵")
            width = max(len(label), len(str(token_id))) + 1
            ax.add_patch(
                Rectangle((left, -row + 0.05), width - 0.15, 0.42, color=TOKEN_FILLS[place % len(TOKEN_FILLS)])
            )
            ax.text(left + width / 2, -row + 0.25, label, ha="center", va="center", family="monospace", color=INK)
            ax.text(left + width / 2, -row - 0.15, str(token_id), ha="center", va="center", size=9, color=MUTED)
            left += width
        widest = max(widest, left)
    ax.set(xlim=(-0.2, max(widest, 44)), ylim=(0.6 - len(texts), 0.6))
    return fig


def plot_counts(values: Iterable[int], xlabel: str, ylabel: str) -> Figure:
    """Return a bar for each whole number, as high as its share of the values, in percent."""
    counts = Counter(values)
    total = counts.total()
    fig = _figure(7.0, 2.8)
    ax = fig.add_subplot()
    numbers = range(min(counts), max(counts) + 1)
    ax.bar(numbers, [100 * counts[number] / total for number in numbers], color=AXIS_COLOURS["num_tokens"])
    ax.set(xlabel=xlabel, ylabel=ylabel, xticks=list(numbers))
    ax.spines[["top", "right"]].set_visible(False)
    return fig


def plot_merges(steps: Sequence[Sequence[bytes]]) -> Figure:
    """Return the merge tree of one pre-token: single bytes below, tokens above, a level a step.

    Args:
        steps: as `bpe_merge_steps` gives them.
    """
    fig, ax = _blank(7.0, 0.52 * len(steps) + 0.3)
    before: dict[tuple[int, int], float] = {}
    for level, pieces in enumerate(steps):
        centres = {}
        start = 0
        for piece in pieces:
            end = start + len(piece)
            centres[start, end] = (start + end) / 2
            new = (start, end) not in before
            for (s, e), x in before.items():
                if start <= s and e <= end:
                    ax.plot([x, centres[start, end]], [level - 1 + 0.25, level - 0.25], color=MUTED, lw=1, zorder=0)
            fill = TOKEN_FILLS[1] if new and level else TOKEN_FILLS[0]
            ax.add_patch(
                FancyBboxPatch(
                    (start + 0.12, level - 0.22),
                    end - start - 0.24,
                    0.44,
                    boxstyle="round,pad=0.03",
                    fc=fill,
                    ec="none",
                )
            )
            label = piece.decode("utf-8", errors="backslashreplace").replace(" ", "␣")
            ax.text(centres[start, end], level, label, ha="center", va="center", family="monospace", color=INK)
            start = end
        before = centres
    ax.set(xlim=(-0.2, start + 0.2), ylim=(-0.5, len(steps) - 0.5))
    return fig


def plot_coverage(
    panels: Mapping[str, Iterable[tuple[Tensor, Tensor]]], num_tokens: int, labels: Sequence[str] | None = None
) -> Figure:
    """Return maps of which tokens each window covers: a row a window, a column a token.

    Filled: the token is an input of that window. Outlined: it is only the last target there.
    The line under each map counts in how many windows each token is an input.

    Args:
        panels: title -> windows of (input_ids, target_ids) whose IDs are the tokens' places
            0..num_tokens − 1, as `TokenWindows(range(num_tokens), …)` gives them.
        num_tokens: how many columns.
        labels: a name for each column; the places when left out.
    """
    panels = {title: list(windows) for title, windows in panels.items()}
    heights = [len(windows) + 3.2 for windows in panels.values()]
    fig = _figure(max(5.0, 0.62 * num_tokens + 1.2), 0.3 * sum(heights) + 0.3)
    for ax, (title, windows) in zip(
        fig.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0], panels.items()
    ):
        _draw_coverage(ax, windows, num_tokens, labels or range(num_tokens))
        ax.set_title(title, loc="left", size=10, color=INK, pad=10)
    return fig


def _draw_coverage(ax: Axes, windows: list[tuple[Tensor, Tensor]], num_tokens: int, labels: Sequence) -> None:
    blue = AXIS_COLOURS["num_tokens"]
    as_input = Counter(int(place) for input_ids, _ in windows for place in input_ids)
    seen = as_input | Counter(int(place) for _, target_ids in windows for place in target_ids)
    for row, (input_ids, target_ids) in enumerate(windows):
        for place in input_ids.tolist():
            ax.add_patch(Rectangle((place - 0.46, row - 0.4), 0.92, 0.8, color=blue))
        ax.add_patch(Rectangle((int(target_ids[-1]) - 0.42, row - 0.36), 0.84, 0.72, fill=False, ec=blue, lw=1.6))
    for place in range(num_tokens):
        count = str(as_input[place]) if seen[place] else "–"
        ax.text(place, len(windows) + 0.15, count, ha="center", va="center", size=9, color=INK)
    ax.text(-0.7, len(windows) + 0.15, "times an input", ha="right", va="center", size=9, color=MUTED)
    ax.set(xlim=(-0.6, num_tokens - 0.4), ylim=(len(windows) + 0.6, -0.6))
    ax.set_xticks(range(num_tokens), labels, size=9, color=blue)
    ax.set_yticks(range(len(windows)), [f"window {i}" for i in range(len(windows))], size=9)
    ax.tick_params(length=0)
    ax.tick_params(axis="y", colors=AXIS_COLOURS["batch_size"])
    ax.spines[:].set_visible(False)


def _figure(width: float, height: float) -> Figure:
    # Not pyplot's figure: nothing global is touched, and nothing is drawn a second time.
    return Figure(figsize=(width, height), layout="constrained", facecolor=PAPER)


def _blank(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one bare pair of axes."""
    fig = _figure(width, height)
    ax = fig.add_subplot()
    ax.set_axis_off()
    return fig, ax
