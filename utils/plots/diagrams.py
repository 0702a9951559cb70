"""The flow of attention as a diagram, drawn from the tensors themselves."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from utils.plots.canvas import (
    HATCHED,
    INK,
    MUTED,
    PAPER,
    bare_axes,
    colour_of,
    draw_way,
    fit_to_inches,
    in_course_style,
)
from utils.plots.inputs import as_array, finite_range

WIDTH, GAP = 5.5, 0.62  # inches, as all lengths here; a gap between two rows has an arrow and its words
LEFT, MIDDLE, RIGHT, CHAIN = 1.22, 2.92, 4.62, 2.07  # the centres of boxes side by side, and of the rows below them
NARROW = CHAIN - 1.25, CHAIN + 2.3  # left and right of a figure as wide as a phone: matrices, none beside another


class _Box(NamedTuple):
    row: int
    centre: float
    columns: str  # the last axis; the one before is num_tokens, and before that come batch_size and num_heads
    sources: str  # what it is made from: names, and after a bar what is used where the first is not drawn
    operation: str
    meaning: str


_BOXES = {
    "inputs": _Box(0, MIDDLE, "d_in", "", "", ""),
    "queries": _Box(1, LEFT, "head_dim", "inputs", "@ W_query", ""),
    "keys": _Box(1, MIDDLE, "head_dim", "inputs", "@ W_key", ""),
    "values": _Box(1, RIGHT, "head_dim", "inputs", "@ W_value", ""),
    "attn_scores": _Box(2, CHAIN, "keys", "queries|inputs keys|inputs", "{0} @ {1}.T", "one score per pair of tokens"),
    "masked_scores": _Box(3, CHAIN, "keys", "attn_scores", "−inf where hidden", "so that its weight becomes 0"),
    "attn_weights": _Box(4, CHAIN, "keys", "masked_scores|attn_scores", "softmax per row", "each row adds up to 1"),
    "dropped_weights": _Box(5, CHAIN, "keys", "attn_weights", "dropout", "some become 0, the others grow"),
    "context_vectors": _Box(
        6, CHAIN, "d_out", "dropped_weights|attn_weights values|inputs", "{0} @ {1}", "weighted sums of the {1}"
    ),
    "merged": _Box(7, CHAIN, "d_out", "context_vectors", "join the heads", "their vectors side by side"),
    "outputs": _Box(8, CHAIN, "d_out", "merged|context_vectors", "out_proj", "a linear layer mixes the heads"),
}
Edges = tuple[float, float, float, float]  # of a box: its centre, its bottom, its right, its top


@in_course_style
def plot_flow(**tensors: Tensor) -> Figure:
    """Return the flow of attention from top to bottom: a box per tensor, an arrow per operation.

    A box shows the tensor's name, its shape, the names of its axes and, where it is a matrix of
    at most 12 × 12, its numbers as shades: a small one is faint, a large one strong, −inf is hatched.

    Args:
        **tensors: any of inputs, queries, keys, values, attn_scores, masked_scores, attn_weights,
            dropped_weights, context_vectors (per head, if there are heads), merged, outputs, each
            with the axes (batch_size,) (num_heads,) and two of its own.
    """
    known = f"the diagram has {', '.join(_BOXES)}"
    if not tensors:
        raise ValueError(f"tensors is empty: {known}")
    for name, tensor in tensors.items():
        if name not in _BOXES:
            raise ValueError(f"{name} is not in the diagram: {known}")
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(tensor).__name__}")
    tensors = {name: tensors[name] for name in _BOXES if name in tensors}
    axes, sources = _axes_of(tensors), {name: _sources_of(name, tensors) for name in tensors}
    rows = {name: _BOXES[name].row for name in tensors}
    unit = 0.9 / max(max(1, *tensor.shape[-2:]) for tensor in tensors.values())

    fig, ax = bare_axes(WIDTH, 1.0)
    edges: dict[str, Edges] = {}
    for name, tensor in tensors.items():
        above = [edges[other][1] for other in edges if rows[other] < rows[name]]
        top = min(above) - (GAP if sources[name] else 0.2) if above else 0.0
        centre = _BOXES[name].centre if 1 in rows.values() else CHAIN
        edges[name] = _draw_box(ax, name, tensor, axes[name], centre, top, unit)
        if sources[name]:
            _draw_arrows(ax, name, sources[name], edges, top, axes)
    floor = min(bottom for _, bottom, _, _ in edges.values())
    left, right = NARROW if 1 not in rows.values() and max(map(len, axes.values())) == 2 else (0, WIDTH)
    fit_to_inches(ax, (left, right), (floor - 0.1, 0.1))
    return fig


def _sources_of(name: str, tensors: dict[str, Tensor]) -> list[str]:
    """Return what a tensor is made from, or nothing where none of it is drawn; ValueError where a part is missing."""
    choices = [choice.split("|") for choice in _BOXES[name].sources.split()]
    found = [next((source for source in choice if source in tensors), "") for choice in choices]
    if any(found) and (not all(found) or len({"queries", "keys"} & {*found}) == 1 < len(found)):
        raise ValueError(f"{name} is made from {' and '.join(' or '.join(choice) for choice in choices)}: give both")
    return found if all(found) else []


def _axes_of(tensors: dict[str, Tensor]) -> dict[str, list[str]]:
    """Return the names of the axes of each tensor; ValueError where one name has two sizes."""
    axes, sizes = {}, {}
    batched = tensors.get("inputs", max(tensors.values(), key=Tensor.dim)).dim() > 2
    for name, tensor in tensors.items():
        heads, columns = tensor.dim() - 2 - batched, _BOXES[name].columns
        if heads not in ((0,) if name in ("inputs", "merged", "outputs") else (0, 1)):
            raise ValueError(f"{name} has {tensor.dim()} axes, the shape {tuple(tensor.shape)}: it cannot be drawn")
        if columns == "keys":
            own = ["num_tokens (queries)", "num_tokens (keys)"]
        elif name == "context_vectors" and "inputs" in tensors and "values" not in tensors:
            own = ["num_tokens", "d_in"]
        else:
            own = ["num_tokens", "head_dim" if heads else columns]
        axes[name] = ["batch_size"] * batched + ["num_heads"] * heads + own
        for axis, size in zip(axes[name], tensor.shape):
            first, expected = sizes.setdefault(axis.split()[0], (name, size))
            if size != expected:
                raise ValueError(f"{axis} is {size} in {name}, but {expected} in {first}")
    return axes


def _draw_box(ax: Axes, name: str, tensor: Tensor, axes: list[str], centre: float, top: float, unit: float) -> Edges:
    """Draw a tensor below `top`, its words first, and return the edges of its box."""

    def name_axis(axis: str, x: float, y: float, ha: str = "center", va: str = "top") -> None:
        ax.text(x, y, axis, size=8, color=colour_of(axis.split()[0]), ha=ha, va=va)

    title = f"{name} {tuple(tensor.shape)}"
    if len(title) > 18 and _BOXES[name].centre != CHAIN:  # it would reach the next box
        title = title.replace(" ", "\n", 1)
    ax.text(centre, top, title, size=10, family="monospace", color=INK, ha="center", va="top", linespacing=1.1)
    *leading, rows, columns = axes
    top -= 0.2 + 0.17 * title.count("\n")
    for axis, side in zip(leading, ("center",) if len(leading) == 1 else ("right", "left")):
        name_axis(axis, centre + {"right": -0.05, "center": 0, "left": 0.05}[side], top, ha=side)
    top -= 0.15 * bool(leading)
    name_axis(columns, centre, top)
    sheet = 0.05 * len(leading)  # the sheets behind the first stand for the leading axes
    height, width = (min(max(size * unit, 0.3), 0.8) for size in tensor.shape[-2:])
    top -= 0.17 + sheet
    left, bottom = centre - width / 2, top - height
    for shift in np.arange(len(leading), -1, -1) * 0.05:
        ax.add_patch(Rectangle((left + shift, bottom + shift), width, height, fc=PAPER, ec=INK, lw=1))
    if tensor.dim() == 2 and max(tensor.shape) <= 12:
        _draw_numbers(ax, as_array(name, tensor, dims=2, finite=False), (left, left + width, bottom, top))
    name_axis(rows.replace(" ", "\n"), left - 0.06, (top + bottom) / 2, ha="right", va="center")
    return centre, bottom, left + width + sheet, top


def _draw_numbers(ax: Axes, numbers: np.ndarray, extent: Edges) -> None:
    hidden = numbers == -np.inf
    low, high = finite_range(numbers)
    left, right, bottom, top = extent
    if hidden.any():
        ax.add_patch(Rectangle((left, bottom), right - left, top - bottom, zorder=1.5, **HATCHED))
    scale = {"vmin": low, "vmax": high + (high - low) / 2}  # without the darkest blues, which would hide the frame
    look = {"alpha": (~hidden).astype(float), "extent": extent, "aspect": "auto", "zorder": 2}
    ax.imshow(np.clip(numbers, low, high), "Blues", **scale, **look)
    ax.add_patch(Rectangle((left, bottom), right - left, top - bottom, fill=False, ec=INK, lw=1, zorder=3))


def _draw_arrows(
    ax: Axes, name: str, sources: list[str], edges: dict[str, Edges], top: float, axes: dict[str, list[str]]
) -> None:
    """Draw what goes into a box: down from a row above, or past the side of the rows between; and say how."""
    (centre, bottom, right, ceiling), box = edges[name], _BOXES[name]
    middle = (bottom + ceiling) / 2
    for source in sources:
        x, y, side, source_top = edges[source]
        if name == "context_vectors" and source == sources[1]:
            start = [(side, (y + source_top) / 2)] if source == "inputs" else [(x, y)]
            beside = NARROW[1] - 0.1 if source == "inputs" and len(axes[name]) == 2 else RIGHT
            way = [*start, (beside, start[0][1]), (beside, middle), (right + 0.04, middle)]
            ax.text(beside - 0.1, middle + 0.05, source, size=8.5, family="monospace", color=INK, ha="right")
        else:
            way = [(x, y), (x, top + GAP - 0.14), (centre, top + GAP - 0.14), (centre, top + 0.03)]
        draw_way(ax, way)
    operation = box.operation.format(*sources)
    if len(axes[name]) > 2:
        operation = operation.replace(".T", ".transpose(-2, -1)")
    if name == "attn_weights" and "keys" in axes:
        operation = f"÷ √{axes['keys'][-1]}, {operation}"
    height = 0.31 if box.meaning else 0.22
    ax.text(centre + 0.12, top + height, operation, size=8.5, family="monospace", color=INK, va="center")
    ax.text(centre + 0.12, top + 0.14, box.meaning.format(*sources), size=8, color=MUTED, va="center")
