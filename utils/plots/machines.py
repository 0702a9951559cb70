"""What training takes, and how it is divided between two devices: stacked bars, and a model drawn on two devices."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from torch import nn

from utils.arguments import as_integer
from utils.plots.boxes import FILLS
from utils.plots.canvas import (
    CENTRED,
    INK,
    LINE_COLOURS,
    MUTED,
    PAPER,
    CourseFigure,
    bare_axes,
    draw_way,
    fit_to_inches,
    in_course_style,
)
from utils.plots.inputs import as_array, as_dict, as_names, check_size, one_line

# So that no part depends on colour alone.
HATCHES = ("", "//", "..", "xx", "--", "\\\\")
# Inches: a device, the space between the two, from one picture to the next, and from one box to the next.
DEVICE, BETWEEN, PICTURE, ROW = 1.55, 0.16, 3.6, 0.34


@in_course_style
def plot_stacks(parts: Mapping[str, Sequence[float]], names: Sequence[str], ylabel: str, xlabel: str = "") -> Figure:
    """Return stacked bars: one bar per name, with the sum written above it.

    Args:
        parts: name of a part -> its size in each bar, not negative; from bottom to top, 6 parts at most.
        names: what is under the bars; 12 at most.
    """
    parts = as_dict("parts", parts, as_array)
    check_size("parts", len(parts), "parts", len(HATCHES))
    for part, sizes in parts.items():
        names = as_names("names", names, len(sizes))
        if (sizes < 0).any():
            raise ValueError(f"parts[{part!r}] holds {sizes.min()}: a size cannot be negative")
    check_size("names", len(names), "bars", 12)
    fig = CourseFigure(6.4, 3.2)
    ax = fig.add_subplot(xlabel=one_line(xlabel, 60), ylabel=one_line(ylabel, 40))
    top = np.zeros(len(names))
    for (part, sizes), hatch, colour in zip(parts.items(), HATCHES, [*LINE_COLOURS, MUTED]):
        ax.bar(range(len(names)), sizes, 0.6, top, label=one_line(part, 40), color=colour, hatch=hatch, ec=PAPER, lw=0)
        top = top + sizes
    room = 0.1 * max(top.max(), 1e-9)
    for index, total in enumerate(top):
        ax.text(index, total + room / 9, f"{total:,.1f}", size=9, color=INK, ha="center", va="bottom")
    ax.set_xticks(range(len(names)), names)
    ax.set_ylim(0, top.max() + room)
    handles, labels = ax.get_legend_handles_labels()
    fig.legend(handles[::-1], labels[::-1], loc="outside right upper", frameon=False, fontsize=9)
    return fig


@in_course_style
def plot_parallel(model: nn.Module, batch_size: int, num_tokens: int) -> Figure:
    """Return three ways to divide a training step of a GPT between two devices, and what each way sends.

    The boxes are the model's parts with the number of parameters that the device holds: data parallel gives each
    device all of them, tensor parallel half of each matrix, pipeline parallel some of the parts whole.

    Args:
        model: a module with embedding, blocks (two or more, eight at most), final_norm and out_head, as GPTModel has.
        batch_size: rows of the batch of a step, two or more.
        num_tokens: tokens of each row.
    """
    names = "embedding", "blocks", "final_norm", "out_head"
    if not isinstance(model, nn.Module) or not all(hasattr(model, name) for name in names):
        raise TypeError(f"model must be a module with {', '.join(names)}, not {type(model).__name__}")
    check_size("model.blocks", len(model.blocks), "blocks", 8)
    batch_size = as_integer("batch_size", batch_size, at_least=2)
    num_tokens = as_integer("num_tokens", num_tokens, at_least=1)
    blocks = {f"blocks[{index}]": block for index, block in enumerate(model.blocks)}
    layers = {"embedding": model.embedding, **blocks, "final_norm": model.final_norm, "out_head": model.out_head}
    whole = {name: sum(p.numel() for p in layer.parameters()) for name, layer in layers.items()}
    halves = {f"½ {name}" if half < whole[name] else name: half for name, half in _halves(layers).items()}
    cut = 1 + (len(blocks) + 1) // 2  # the embedding, then the first half of the blocks
    stages = [dict(list(whole.items())[:cut]), dict(list(whole.items())[cut:])]
    numbers = sum(p.numel() for p in model.parameters())
    flow = batch_size * num_tokens * model.final_norm.weight.numel()
    some, others, every = f"rows 0 to {batch_size // 2 - 1}", f"rows {batch_size // 2} to {batch_size - 1}", "all rows"
    pictures = (
        ("Data parallel", (whole, whole), (some, others), f"sent once per step: {numbers:,} gradients"),
        ("Tensor parallel", (halves, halves), (every, every), f"sent four times per block and step: {flow:,} numbers"),
        ("Pipeline parallel", stages, (every, "what device 0 sends"), f"sent forward, and back: {flow:,} numbers each"),
    )
    _, ax = bare_axes(1, 1)
    bottom = min(_draw_pair(ax, PICTURE * index, *picture) for index, picture in enumerate(pictures))
    fit_to_inches(ax, (-0.1, 2 * PICTURE + 2 * DEVICE + BETWEEN + 0.1), (bottom - 0.1, 0.2))
    return ax.get_figure()


def _halves(layers: Mapping[str, nn.Module]) -> dict[str, int]:
    """Return how many parameters a device holds of each layer, if each matrix is cut in two.

    With the columns of `widen` goes its bias; every other vector is on both devices, and so are the position vectors.
    """
    halves = {}
    for name, layer in layers.items():
        cut = [
            (parameter.dim() == 2 and not path.startswith("position_embedding")) or path.endswith("widen.bias")
            for path, parameter in layer.named_parameters()
        ]
        halves[name] = sum(p.numel() // (1 + half) for half, p in zip(cut, layer.parameters()))
    return halves


def _draw_pair(
    ax: Axes, left: float, title: str, held: Sequence[Mapping[str, int]], rows: Sequence[str], sent: str
) -> float:
    """Draw two devices with what each holds and its part of the batch, and what they send; return where it ends."""
    most = max(map(len, held))
    height = 0.62 + ROW * most
    bottom = -0.2 - height
    ax.text(left + DEVICE + BETWEEN / 2, 0, title, size=10, weight="bold", color=INK, **CENTRED)
    for device, (layers, batch) in enumerate(zip(held, rows)):
        x, y = left + device * (DEVICE + BETWEEN), -0.2
        _draw_rounded(ax, (x, y - height), DEVICE, height, fc=PAPER, ec=MUTED, lw=1)
        ax.text(x + DEVICE / 2, y - 0.16, f"device {device}", size=9, color=INK, **CENTRED)
        ax.text(x + DEVICE / 2, y - 0.37, batch, size=8, color=MUTED, **CENTRED)
        for row, (name, count) in enumerate(layers.items()):
            top = y - 0.55 - ROW * row
            fill = FILLS["attention" if "block" in name else "norm" if "norm" in name else "table"]
            _draw_rounded(ax, (x + 0.06, top - ROW + 0.06), DEVICE - 0.12, ROW - 0.06, fc=fill, ec="none")
            middle = top - ROW / 2 + 0.03
            ax.text(x + 0.1, middle, name, size=7.5, family="monospace", color=INK, va="center", in_layout=False)
            ax.text(x + DEVICE - 0.1, middle, f"{count:,}", size=7.5, color=INK, ha="right", va="center")
    way = [(left + DEVICE / 2, bottom), (left + DEVICE / 2, bottom - 0.16)]
    right = left + DEVICE * 1.5 + BETWEEN
    draw_way(ax, [*way, (right, bottom - 0.16), (right, bottom)], arrowstyle="<->")
    ax.text(left + DEVICE + BETWEEN / 2, bottom - 0.32, sent, size=8, color=INK, **CENTRED)
    return bottom - 0.42


def _draw_rounded(ax: Axes, corner: tuple[float, float], width: float, height: float, **look) -> None:
    ax.add_patch(FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=0.06", **look))
