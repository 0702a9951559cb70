"""Figures of texts: the route, tokens, merges, and which window covers which token."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from utils.arguments import as_integer
from utils.plots.canvas import AXIS_COLOURS, CENTRED, INK, MUTED, TOKEN_FILLS, CourseFigure, bare_axes, in_course_style
from utils.plots.inputs import as_dict, as_list, as_names, check_size, one_line, visible

ROUTE = ("text", "IDs", "batch", "embeddings", "attention", "…", "logits", "text")


@in_course_style
def plot_route(station: str, through: str | None = None) -> Figure:
    """Return the strip of the whole route, text to text, with one station highlighted, or several.

    Args:
        station: one of `ROUTE`.
        through: the last station to highlight, where it occurs last in `ROUTE`; by default only
            `station` is highlighted, where it occurs first.
    """
    for name, value in (("station", station), ("through", station if through is None else through)):
        if value not in ROUTE:
            raise ValueError(f"{name} is {value!r}: the route has {ROUTE}")
    first = ROUTE.index(station)
    last = first if through is None else len(ROUTE) - 1 - ROUTE[::-1].index(through)
    if last < first:
        raise ValueError(f"through is {through!r}, which comes before station {station!r}")
    fig, ax = bare_axes(8.0, 0.6)
    left = 0.0
    for index, name in enumerate(ROUTE):
        here = first <= index <= last
        fill, ink = (AXIS_COLOURS["num_tokens"], "white") if here else ("#ececec", INK)
        width = len(name) + 2.4
        shape = "round,pad=0.1,rounding_size=0.2"
        ax.add_patch(FancyBboxPatch((left, -0.3), width, 0.6, boxstyle=shape, fc=fill, ec="none"))
        ax.text(left + width / 2, 0, name, size=10, color=ink, **CENTRED)
        if index < len(ROUTE) - 1:
            ax.text(left + width + 1.2, 0, "→", size=11, color=MUTED, **CENTRED)
        left += width + 2.4
    ax.set(xlim=(-0.5, left - 1.9), ylim=(-0.6, 0.6))
    return fig


@in_course_style
def plot_tokens(texts: Sequence[tuple[Sequence[str], Sequence[int]]]) -> Figure:
    """Return texts as rows of coloured tokens over their IDs; a long text continues on the next row.

    Args:
        texts: for each text its pieces and their IDs, of equal length; 250 tokens at most. A
            space is drawn as ␣, a line end as ↵, a character that cannot be drawn as its escape.
    """
    texts = [_pieces_and_ids(f"texts[{index}]", text) for index, text in enumerate(as_list("texts", texts))]
    check_size("texts", sum(len(pieces) for pieces, _ in texts), "tokens", 250)
    fig, ax = bare_axes(8.0, 1.0)
    y, widest = 0, 44  # one row is 1 high, one character 1 wide
    for pieces, ids in texts:
        left = 0
        for piece, token_id, fill in zip(pieces, ids, cycle(TOKEN_FILLS)):
            label, number = visible(piece), one_line(token_id)
            width = max(len(label), len(number)) + 1
            if left + width > 120:  # the page is full
                left, y = 0, y - 1
            ax.add_patch(Rectangle((left, y + 0.05), width - 0.15, 0.42, color=fill))
            ax.text(left + width / 2, y + 0.25, label, family="monospace", color=INK, **CENTRED)
            ax.text(left + width / 2, y - 0.15, number, size=9, color=MUTED, **CENTRED)
            left += width
            widest = max(widest, left)
        y -= 1
    fig.set_size_inches(max(8.0, 0.09 * widest), -0.95 * y)
    ax.set(xlim=(-0.2, widest), ylim=(y + 0.6, 0.6))
    return fig


def _pieces_and_ids(argument: str, text: Any) -> tuple[list, list[int]]:
    if len(text := as_list(argument, text)) != 2:
        raise ValueError(f"{argument} must be a pair: a list of pieces and a list of their IDs")
    pieces, ids = (as_list(argument, part) for part in text)
    if len(pieces) != len(ids):
        raise ValueError(f"{argument} has {len(pieces)} pieces and {len(ids)} IDs: the numbers must be equal")
    check_size(argument, len(pieces), "tokens", 250)
    return pieces, [as_integer(f"an ID of {argument}", token_id) for token_id in ids]


@in_course_style
def plot_counts(values: Iterable[int], xlabel: str, ylabel: str) -> Figure:
    """Return a bar for each integer, as high as its proportion of the values, in percent.

    Where the integers are more than 60 apart, those that occur are drawn as lines.
    """
    counts = Counter(as_integer("values", value, -(10**12), 10**12) for value in as_list("values", values))
    check_size("values", len(counts), "different integers", 5000)
    fig = CourseFigure(7.0, 2.8)
    ax = fig.add_subplot(xlabel=one_line(xlabel, 98), ylabel=one_line(ylabel))
    numbers = range(min(counts), max(counts) + 1)
    if len(numbers) > 61:
        ax.vlines(list(counts), 0, [100 * n / counts.total() for n in counts.values()], AXIS_COLOURS["num_tokens"])
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.ticklabel_format(useOffset=False, style="plain", axis="x")
    else:
        percent = [100 * counts[number] / counts.total() for number in numbers]
        ax.bar(numbers, percent, color=AXIS_COLOURS["num_tokens"])
        ax.set_xticks(numbers[:: len(numbers) // 30 + 1])
    return fig


@in_course_style
def plot_merges(steps: Sequence[Sequence[bytes]]) -> Figure:
    """Return the merge tree of one pre-token: single bytes below, tokens above, one level per step.

    Args:
        steps: as `bpe_merge_steps` returns them, for a pre-token of at most 32 bytes.
    """
    steps = [as_list("steps", pieces) for pieces in as_list("steps", steps)]
    wrong = [piece for piece in chain(*steps) if not isinstance(piece, bytes) or not piece]
    if wrong:
        raise TypeError(f"steps must hold pieces of type bytes, none of them empty, not {wrong[0]!r}")
    check_size("steps", sum(map(len, steps)), "pieces", 550)
    check_size("steps", max(len(b"".join(pieces)) for pieces in steps), "bytes", 32)
    num_bytes = len(b"".join(steps[0]))
    fig, ax = bare_axes(7.0, 1.0)
    before, room = [], 0.0
    for level, pieces in enumerate(steps):
        ends = list(accumulate(map(len, pieces)))
        spans = list(zip([0, *ends], ends))
        for (start, end), piece in zip(spans, pieces):
            for s, e in before:
                if start <= s and e <= end:
                    link = [(s + e) / 2, (start + end) / 2], [level - 1 + 0.25, level - 0.25]
                    ax.add_line(Line2D(*link, color=MUTED, lw=1, zorder=0))
            fill = TOKEN_FILLS[1] if level and (start, end) not in before else TOKEN_FILLS[0]
            corner, width = (start + 0.12, level - 0.22), end - start - 0.24
            ax.add_patch(FancyBboxPatch(corner, width, 0.44, boxstyle="round,pad=0.03", fc=fill, ec="none"))
            label = visible(piece.decode("utf-8", errors="backslashreplace"))
            ax.text((start + end) / 2, level, label, family="monospace", color=INK, **CENTRED)
            room = max(room, 0.09 * len(label) / len(piece))
        before = spans
    fig.set_size_inches(max(7.0, room * num_bytes), 0.52 * len(steps) + 0.3)
    ax.set(xlim=(-0.2, num_bytes + 0.2), ylim=(-0.5, len(steps) - 0.5))
    return fig


@in_course_style
def plot_windows(
    panels: Mapping[str, Iterable[tuple[Tensor, Tensor]]], num_tokens: int, labels: Sequence[str] | None = None
) -> Figure:
    """Return maps of which tokens each window covers: one row per window, one column per token.

    Filled: the token is an input of that window. Outlined: it is only the last target there.
    The line under each map counts in how many windows each token is an input.

    Args:
        panels: title -> windows of (input_ids, target_ids) whose IDs are the tokens' positions
            0..num_tokens − 1, as `TokenWindows(range(num_tokens), …)` returns them; at most 40
            windows in all.
        num_tokens: how many columns, 40 at most.
        labels: a name for each column; the positions when left out.
    """
    num_tokens = as_integer("num_tokens", num_tokens, 1, 40)
    names = as_names("labels", range(num_tokens) if labels is None else labels, num_tokens)
    maps = as_dict("panels", panels, partial(_positions, num_tokens=num_tokens))
    check_size("panels", 1 + sum(map(len, maps.values())), "windows", 41)
    # Names wider than their column are written vertically, and each map grows by their length.
    longest = 0.09 * max(map(len, names))
    upright = longest > 0.62 * min(1, 20 / num_tokens)
    heights = [len(windows) + 3.2 + upright * longest / 0.3 for windows in maps.values()]
    width = max(5.0, 0.62 * min(num_tokens, 20) + 1.2)
    fig = CourseFigure(width, 0.3 * sum(heights) + 0.3)
    axes = fig.subplots(len(maps), squeeze=False, height_ratios=heights)[:, 0]
    for ax, (title, windows) in zip(axes, maps.items()):
        _draw_windows(ax, windows, names, 90 if upright else 0)
        ax.set_title(one_line(title, int(14 * width)), loc="left", size=10, color=INK, pad=10)
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


def _draw_windows(ax: Axes, windows: list[list[list[int]]], names: list[str], rotation: int) -> None:
    blue, num_tokens = AXIS_COLOURS["num_tokens"], len(names)
    as_input = Counter(i for input_ids, _ in windows for i in input_ids)
    seen = as_input | Counter(i for _, target_ids in windows for i in target_ids)
    for row, (input_ids, target_ids) in enumerate(windows):
        for i in input_ids:
            ax.add_patch(Rectangle((i - 0.46, row - 0.4), 0.92, 0.8, color=blue))
        ax.add_patch(Rectangle((target_ids[-1] - 0.42, row - 0.36), 0.84, 0.72, fill=False, ec=blue, lw=1.6))
    for i in range(num_tokens):
        count = str(as_input[i]) if seen[i] else "–"
        ax.text(i, len(windows) + 0.15, count, size=9, color=INK, **CENTRED)
    ax.text(-0.7, len(windows) + 0.15, "times an input", ha="right", va="center", size=9, color=MUTED)
    ax.set(xlim=(-0.6, num_tokens - 0.4), ylim=(len(windows) + 0.6, -0.6))
    ax.set_xticks(range(num_tokens), names, size=9, color=blue, rotation=rotation)
    ax.set_yticks(range(len(windows)), [f"window {i}" for i in range(len(windows))], size=9)
    ax.tick_params(length=0)
    ax.tick_params(axis="y", colors=AXIS_COLOURS["batch_size"])
    ax.spines[:].set_visible(False)
