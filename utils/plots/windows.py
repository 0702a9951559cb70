"""Figures of windows: what predicts what, and which window covers which token."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from utils.arguments import as_integer
from utils.plots.canvas import (
    AXIS_COLOURS,
    CENTRED,
    INK,
    MUTED,
    PAGE,
    TOKEN_FILLS,
    CourseFigure,
    bare_axes,
    in_course_style,
)
from utils.plots.inputs import as_dict, as_list, as_names, check_size, one_line, visible


@in_course_style
def plot_predictions(inputs: Sequence[Any], targets: Sequence[Any]) -> Figure:
    """Return the predictions of one window: each is made from the inputs so far, and has one target.

    Args:
        inputs, targets: a piece of text or a number per token; as many targets as inputs, 16 at most.
    """
    inputs, targets = as_list("inputs", inputs), as_list("targets", targets)
    check_size("inputs", len(inputs), "tokens", 16)
    if len(targets) != len(inputs):
        raise ValueError(f"targets has {len(targets)} tokens and inputs {len(inputs)}: the numbers must be equal")
    size = 10 if len(inputs) <= 8 else 8
    for most in range(40, 0, -1):  # as much of each token as a page takes
        pairs = [[one_line(visible(token), most) for token in pair] for pair in zip(inputs, targets)]
        widths = [0.0085 * size * max(map(len, pair)) + 0.02 * size for pair in pairs]
        if sum(widths) < PAGE - 0.7:
            break
    edges = [0, *accumulate(widths)]
    blue, count = AXIS_COLOURS["num_tokens"], len(pairs)
    fig, ax = bare_axes(edges[-1] + 0.8, 0.22 * count + 1.3)
    bottom = -0.22 * count - 0.95
    for index, ((token, target), left, right) in enumerate(zip(pairs, edges, edges[1:])):
        # The longest context is on top, so that no arrow crosses another's context.
        middle, y = (left + right) / 2, -0.3 - 0.22 * (count - index)
        ax.add_patch(Rectangle((left + 0.03, -0.2), right - left - 0.06, 0.4, color=blue))
        ax.add_patch(Rectangle((left + 0.04, bottom), right - left - 0.08, 0.38, fill=False, ec=blue, lw=1.6))
        ax.add_patch(Rectangle((0.03, y - 0.06), right - 0.06, 0.12, color=TOKEN_FILLS[index % len(TOKEN_FILLS)]))
        ax.text(middle, 0, token, size=size, family="monospace", color="white", **CENTRED)
        ax.text(middle, bottom + 0.19, target, size=size, family="monospace", color=blue, **CENTRED)
        shape = {"arrowstyle": "->", "color": INK, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (middle, bottom + 0.4), (middle, y), arrowprops=shape)
        ax.plot(middle, y, "o", color=INK, ms=4)
    for words, y in (("input", 0), ("context", -0.41 - 0.11 * count), ("target", bottom + 0.19)):
        ax.text(-0.1, y, words, size=9, color=MUTED, ha="right", va="center")
    ax.set(xlim=(-0.7, edges[-1] + 0.02), ylim=(bottom - 0.05, 0.25))
    return fig


@in_course_style
def plot_windows(
    panels: Mapping[str, Iterable[tuple[Tensor, Tensor]]], num_tokens: int, labels: Sequence[str] | None = None
) -> Figure:
    """Return maps of which tokens each window covers: one row per window, one column per token.

    Filled: the token is an input of that window. Framed: it is a target there. So a window shows
    its inputs and one token more. The line under each map counts in how many windows each token
    is an input.

    Args:
        panels: title -> windows of (input_ids, target_ids) whose IDs are the tokens' positions
            0..num_tokens − 1, as `TokenWindows(range(num_tokens), …)` returns them; at most 40
            windows in all.
        num_tokens: how many columns, 40 at most.
        labels: a name for each column; by default the positions.
    """
    num_tokens = as_integer("num_tokens", num_tokens, 1, 40)
    names = as_names("labels", range(num_tokens) if labels is None else labels, num_tokens)
    maps = as_dict("panels", panels, partial(_positions, num_tokens=num_tokens))
    check_size("panels", 1 + sum(map(len, maps.values())), "windows", 41)
    longest = 0.075 * max(map(len, names)) + 0.06  # inches
    column = min(max(0.62, longest), 9.4 / num_tokens)
    upright = longest > column  # names wider than their column are written vertically, and not in the boxes
    heights = [len(windows) + 1.4 for windows in maps.values()]
    above = 0.68 + upright * longest
    width = max(5.0, column * num_tokens + 1.2)
    fig = CourseFigure(width, 0.3 * sum(heights) + above * len(maps) + 0.3)
    axes = fig.subplots(len(maps), squeeze=False, height_ratios=heights)[:, 0]
    for ax, (title, windows) in zip(axes, maps.items()):
        _draw_windows(ax, windows, names, upright)
        ax.set_xlabel("position" if labels is None else "token", size=9, color=AXIS_COLOURS["num_tokens"])
        ax.set_title(one_line(title, int(14 * width)), loc="left", size=10, color=INK, pad=10)
    looks = {"color": AXIS_COLOURS["num_tokens"]}, {"fill": False, "ec": INK, "lw": 1.4}
    handles = [Rectangle((0, 0), 1, 1, **look) for look in looks]
    fig.legend(handles, ["input", "target"], loc="outside lower right", ncols=2, frameon=False, fontsize=9)
    return fig


def _positions(argument: str, windows: Any, num_tokens: int) -> list[list[list[int]]]:
    """Return windows of any kind as lists of integers, each of them a position."""
    found = []
    for window in as_list(argument, windows):
        pair = [as_list(argument, ids) for ids in as_list(argument, window)]
        if len(pair) != 2 or not pair[1]:
            raise ValueError(f"{argument} must hold windows of (input_ids, target_ids), and both of at least one ID")
        found.append([[as_integer(f"an ID of {argument}", i, 0, num_tokens - 1) for i in ids] for ids in pair])
    return found


def _draw_windows(ax: Axes, windows: list[list[list[int]]], names: list[str], upright: bool) -> None:
    blue, num_tokens, below = AXIS_COLOURS["num_tokens"], len(names), len(windows) + 0.1
    as_input = Counter(i for input_ids, _ in windows for i in input_ids)
    seen = as_input | Counter(i for _, target_ids in windows for i in target_ids)
    for row, (input_ids, target_ids) in enumerate(windows):
        for i in input_ids:
            ax.add_patch(Rectangle((i - 0.44, row - 0.34), 0.88, 0.68, color=blue))
        for i in target_ids:
            ax.add_patch(Rectangle((i - 0.5, row - 0.41), 1, 0.82, fill=False, ec=INK, lw=1.4))
        for i in () if upright else {*input_ids, *target_ids}:
            ax.text(i, row, names[i], size=8, color="white" if i in input_ids else blue, **CENTRED)
    ax.axhline(below - 0.5, color="#bfbfbf", lw=0.8)
    for i in range(num_tokens):
        count = str(as_input[i]) if seen[i] else "–"
        ax.text(i, below, count, size=9, color=INK, **CENTRED)
    ax.set(xlim=(-0.6, num_tokens - 0.4), ylim=(below + 0.6, -0.7))
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xticks(range(num_tokens), names, size=9, color=blue, rotation=90 if upright else 0)
    rows = [f"window {i}" for i in range(len(windows))]
    ax.set_yticks([*range(len(windows)), below], [*rows, "times an input"], size=9)
    ax.tick_params(length=0)
    for label, is_row in zip(ax.get_yticklabels(), [*rows, ""]):
        label.set_color(AXIS_COLOURS["batch_size"] if is_row else MUTED)
    ax.spines[:].set_visible(False)
