"""A transformer block and a whole GPT as diagrams, drawn from the modules: their names, shapes and parameters."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from utils.arguments import as_integer
from utils.plots.boxes import (
    GREEN,
    LEFT,
    RIGHT,
    STREAM,
    draw_box,
    draw_down,
    draw_fork,
    draw_frame,
    draw_stream,
    draw_sum,
    write,
    write_shape,
)
from utils.plots.canvas import CENTRED, INK, MUTED, bare_axes, draw_way, fit_to_inches, in_course_style
from utils.plots.inputs import one_line

LAYERS = "norm1", "attention", "norm2", "feed_forward"
EACH, BETWEEN = "each token on its own", "information moves between tokens"


@in_course_style
def plot_block(block: nn.Module, emb_dim: int) -> Figure:
    """Return a transformer block from top to bottom: the residual stream is straight, the layers are beside it.

    Args:
        block: a module with norm1, attention, norm2 and feed_forward, as TransformerBlock has.
        emb_dim: how many entries a token's vector has.
    """
    norm1, attention, norm2, feed_forward = _parts("block", block, *LAYERS)
    emb_dim = as_integer("emb_dim", emb_dim, 1)
    first = next((layer for layer in block.modules() if isinstance(layer, nn.Linear)), None)
    if first is not None and first.in_features != emb_dim:
        raise ValueError(f"emb_dim is {emb_dim}, but the block is for vectors of {first.in_features} entries")
    dropout = "dropout" if any(isinstance(layer, nn.Dropout) for layer in block.children()) else ""
    _, ax = bare_axes(1, 1)
    write_shape(ax, 0, "x", emb_dim)
    for top, norm, layer, (norm_name, name), where in (
        (-0.3, norm1, attention, LAYERS[:2], _heads(attention) + BETWEEN),
        (-1.75, norm2, feed_forward, LAYERS[2:], EACH),
    ):
        draw_fork(ax, draw_box(ax, top, norm_name, _count(norm), "norm", f"{type(norm).__name__}, {EACH}"))
        draw_down(ax, top - 0.42)
        draw_sum(ax, draw_box(ax, top - 0.63, name, _count(layer), name, _layers(layer), where), dropout)
    draw_stream(ax, -0.12, -3.12)
    write_shape(ax, -3.24, "x", emb_dim)
    return _finished(ax, -3.24, RIGHT + 0.1, block)


@in_course_style
def plot_gpt(model: nn.Module) -> Figure:
    """Return a whole GPT from top to bottom, IDs to logits: the residual stream is straight, the layers are beside it.

    The first block is drawn with its layers, the others as one; dropout is left out.

    Args:
        model: a module with the parts of GPTModel.
    """
    paths = "embedding.token_embedding", "embedding.position_embedding", "blocks.0", "final_norm", "out_head"
    tokens, positions, _, final_norm, out_head = _parts("model", model, *paths)
    tied = out_head.weight is tokens.weight
    (vocab_size, emb_dim), context_length = tokens.weight.shape, len(positions.weight)
    _, ax = bare_axes(1, 1)
    write_shape(ax, 0, "input_ids")
    draw_down(ax, -0.1)
    words = f"{vocab_size:,} vectors of {emb_dim:,} numbers: one per token ID"
    start = draw_box(ax, -0.31, "token_embedding", _count(tokens), "table", words)
    ax.plot([LEFT, STREAM], [start, start], color=GREEN, lw=3)
    words = f"{context_length:,} vectors of {emb_dim:,} numbers: one per position"
    draw_sum(ax, draw_box(ax, -0.83, "position_embedding", _count(positions), "table", words))
    top = _draw_blocks(ax, -1.38, model.blocks) - 0.1
    write(ax, STREAM + 0.12, top, f"x (batch_size, num_tokens, {emb_dim})")
    end = draw_box(ax, top - 0.18, "final_norm", _count(final_norm), "norm", f"{type(final_norm).__name__}, {EACH}")
    draw_stream(ax, start, end)
    draw_way(ax, [(STREAM, end), (LEFT, end)], color=GREEN, lw=3)
    draw_down(ax, top - 0.6)
    count, kind = ("no parameters of its own", "table") if tied else (_count(out_head), "norm")
    words = f"a score per token of the vocabulary: {_layers(out_head)}"
    head = draw_box(ax, top - 0.81, "out_head", count, kind, words)
    if tied:
        side = RIGHT + 0.15
        draw_way(ax, [(RIGHT, head), (side, head), (side, start), (RIGHT, start)], arrowstyle="<->", linestyle="--")
        ax.text(side + 0.13, (head + start) / 2, "tied: the same table", size=8, color=INK, rotation=270, **CENTRED)
    draw_down(ax, top - 1.23)
    write_shape(ax, top - 1.54, "logits", vocab_size)
    return _finished(ax, top - 1.8, RIGHT + (0.4 if tied else 0.16), model)


def _parts(argument: str, module: Any, *paths: str) -> list[nn.Module]:
    """Return the parts of a module; TypeError if it has others."""
    try:
        return [module.get_submodule(path) for path in paths]
    except AttributeError:
        kind = type(module).__name__
        raise TypeError(f"{argument} must be a module with {', '.join(paths)}, not {kind}") from None


def _count(*modules: nn.Module) -> str:
    """Return how many parameters modules have, those of a shared table counted once."""
    return f"{sum(p.numel() for p in nn.ModuleList(modules).parameters()):,} parameters"


def _layers(module: nn.Module) -> str:
    """Return a module's layers in words: linear layers of one shape together, the others by their kind."""
    layers: dict[str, list[str]] = {}
    for name, layer in [("", module), *module.named_children()]:
        if isinstance(layer, nn.Linear):
            layers.setdefault(f"{layer.in_features:,} → {layer.out_features:,}", []).append(name)
        elif name and not isinstance(layer, nn.Dropout):
            layers.setdefault("", []).append(type(layer).__name__)
    return one_line(", ".join(f"{', '.join(names)} {shape}".strip() for shape, names in layers.items()), 56)


def _heads(attention: nn.Module) -> str:
    """Return how many heads an attention has, in words, or nothing where it does not say so."""
    head_dim, projection = getattr(attention, "head_dim", None), getattr(attention, "W_query", None)
    if head_dim is None or not isinstance(projection, nn.Linear):
        return ""
    heads = projection.out_features // head_dim
    return f"{heads} head{'s' * (heads > 1)}: "


def _draw_blocks(ax: Axes, top: float, blocks: nn.ModuleList) -> float:
    """Draw the first block with its layers, the others as one, and return where they end."""
    norm1, attention, norm2, feed_forward = _parts("model.blocks[0]", blocks[0], *LAYERS)
    draw_frame(ax, top, 1.32, "blocks[0]", _count(blocks[0]))
    for y, norm, layer, names, where in (
        (top - 0.27, norm1, attention, LAYERS[:2], _heads(attention) + BETWEEN),
        (top - 0.8, norm2, feed_forward, LAYERS[2:], EACH),
    ):
        middle = draw_box(ax, y, ", ".join(names), _count(norm, layer), names[1], where)
        draw_fork(ax, middle + 0.12)
        draw_sum(ax, middle - 0.1)
    if others := list(blocks[1:]):
        names, whose = ("blocks[1]", "its") if len(others) == 1 else (f"blocks[1] to blocks[{len(others)}]", "their")
        draw_frame(ax, top - 1.42, 0.44, names, _count(*others))
        words = f"{len(others)} more, with weights of {whose} own"
        ax.text(LEFT + 0.08, top - 1.73, words, size=8, color=MUTED, va="center")
        top -= 0.54
    return top - 1.42


def _finished(ax: Axes, bottom: float, right: float, module: nn.Module) -> Figure:
    """Say how many parameters there are in all, and return the figure with the right size."""
    ax.text(RIGHT, bottom, f"{_count(module)} in all", size=8, color=INK, ha="right", va="center")
    fit_to_inches(ax, (STREAM - 0.4, right), (bottom - 0.15, 0.15))
    return ax.get_figure()
