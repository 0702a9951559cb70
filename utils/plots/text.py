"""Figures of texts: the route, tokens, merges, and which window covers which token."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from utils.arguments import as_integer
from utils.plots.canvas import (
    AXIS_COLOURS,
    CENTRED,
    INK,
    MUTED,
    PAGE,
    PAPER,
    TOKEN_FILLS,
    CourseFigure,
    bare_figure,
    in_course_style,
)
from utils.plots.inputs import as_dict, as_list, as_names, check_size, visible, wrapped

ROUTE = ("text", "IDs", "batch", "embeddings", "attention", "…", "logits", "text")


@in_course_style
def plot_route(station: str, through: str | None = None) -> Figure:
    """Return the strip of the whole route, text to text, with one station highlighted, or several.

    Args:
        station: one of `ROUTE`.
        through: the last station to highlight, where it occurs last in `ROUTE`; by default only
            `station` is highlighted, where it occurs first.

    Raises:
        ValueError: one is not a station, or `through` comes before `station`.
    """
    for name, value in (("station", station), ("through", station if through is None else through)):
        if value not in ROUTE:
            raise ValueError(f"{name} is {value!r}: the route has {ROUTE}")
    first = ROUTE.index(station)
    last = first if through is None else len(ROUTE) - 1 - ROUTE[::-1].index(through)
    if last < first:
        raise ValueError(f"through is {through!r}, which comes before station {station!r}")
    fig, ax = bare_figure(8.0, 0.6)
    left = 0.0
    for index, name in enumerate(ROUTE):
        here = first <= index <= last
        width = len(name) + 2.4
        fill = AXIS_COLOURS["num_tokens"] if here else "#ececec"
        ax.add_patch(
            FancyBboxPatch((left, -0.3), width, 0.6, boxstyle="round,pad=0.1,rounding_size=0.2", fc=fill, ec="none")
        )
        ax.text(left + width / 2, 0, name, size=10, color=PAPER if here else INK, **CENTRED)
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

    Raises:
        TypeError: an ID is not an integer.
        ValueError: `texts` is empty or too long, or the lengths differ.
    """
    rows = [row for index, text in enumerate(as_list("texts", texts)) for row in _token_rows(f"texts[{index}]", text)]
    check_size("texts", sum(map(len, rows)), "tokens", 250)
    check_size("texts", len(rows), "rows", 100)
    widest = max(left + width for row in rows for left, width, _, _, _ in row)
    fig, ax = bare_figure(max(8.0, 0.09 * widest), 0.95 * len(rows))
    for y, row in enumerate(rows):
        for left, width, label, token_id, fill in row:
            ax.add_patch(Rectangle((left, -y + 0.05), width - 0.15, 0.42, color=fill))
            ax.text(left + width / 2, -y + 0.25, label, family="monospace", color=INK, **CENTRED)
            ax.text(left + width / 2, -y - 0.15, token_id, size=9, color=MUTED, **CENTRED)
    ax.set(xlim=(-0.2, max(widest, 44)), ylim=(0.6 - len(rows), 0.6))
    _leave_out_of_layout(ax)
    return fig


def _token_rows(argument: str, text: Any) -> list[list[tuple[float, int, str, str, str]]]:
    """Return the rows of one text: for each token left edge and width in characters, label, ID and colour."""
    if len(text := as_list(argument, text)) != 2:
        raise ValueError(f"{argument} must be a pair: a list of pieces and a list of their IDs")
    pieces, ids = (as_list(argument, part) for part in text)
    if len(pieces) != len(ids):
        raise ValueError(f"{argument} has {len(pieces)} pieces and {len(ids)} IDs: the numbers must be equal")
    rows, left = [[]], 0
    for index, (piece, token_id) in enumerate(zip(pieces, ids)):
        label, token_id = visible(piece), visible(as_integer(f"an ID of {argument}", token_id))
        width = max(len(label), len(token_id)) + 1
        if left + width > PAGE / 0.09:
            rows.append([])
            left = 0
        rows[-1].append((left, width, label, token_id, TOKEN_FILLS[index % len(TOKEN_FILLS)]))
        left += width
    return rows


def _leave_out_of_layout(ax: Axes) -> None:
    """Spare the layout the texts, which lie within the axes' limits: measuring each is most of the time."""
    for text in ax.texts:
        text.set_in_layout(False)


@in_course_style
def plot_counts(values: Iterable[int], xlabel: str, ylabel: str) -> Figure:
    """Return a bar for each integer, as high as its proportion of the values, in percent.

    Where the integers are more than 60 apart, those that occur are drawn as lines.

    Raises:
        TypeError: a value is not an integer.
        ValueError: `values` is empty, or one is beyond ±10¹².
    """
    counts = Counter(as_integer("values", value, -(10**12), 10**12) for value in as_list("values", values))
    check_size("values", len(counts), "different integers", 100_000)
    first, last = min(counts), max(counts)
    fig = CourseFigure(7.0, 2.8)
    ax = fig.add_subplot()
    if last - first > 60:
        # Of lines that share a pixel only the highest is seen; to draw each would take seconds.
        tallest = {1000 * (number - first) // (last - first): number for number in sorted(counts, key=counts.get)}
        percent = [100 * counts[number] / counts.total() for number in tallest.values()]
        ax.vlines(list(tallest.values()), 0, percent, color=AXIS_COLOURS["num_tokens"])
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.ticklabel_format(useOffset=False, style="plain", axis="x")
    else:
        numbers = range(first, last + 1)
        percent = [100 * counts[number] / counts.total() for number in numbers]
        ax.bar(numbers, percent, color=AXIS_COLOURS["num_tokens"])
        ax.set_xticks(numbers[:: len(numbers) // 30 + 1])
    ax.set(xlabel=wrapped(xlabel, 7.0), ylabel=wrapped(ylabel, 2.8))
    ax.spines[["top", "right"]].set_visible(False)
    return fig


@in_course_style
def plot_merges(steps: Sequence[Sequence[bytes]]) -> Figure:
    """Return the merge tree of one pre-token: single bytes below, tokens above, one level per step.

    Args:
        steps: as `bpe_merge_steps` returns them, for a pre-token of at most 32 bytes.

    Raises:
        TypeError: a piece is not of type bytes.
        ValueError: `steps` is empty or too long, or a piece is empty.
    """
    steps = [as_list("steps", pieces) for pieces in as_list("steps", steps)]
    for piece in (piece for pieces in steps for piece in pieces):
        if not isinstance(piece, bytes):
            raise TypeError(f"steps must hold pieces of type bytes, not {piece!r}")
    check_size("steps", min((len(piece) for pieces in steps for piece in pieces), default=0), "bytes", 32)
    check_size("steps", max(sum(map(len, pieces)) for pieces in steps), "bytes", 32)
    check_size("steps", sum(map(len, steps)), "pieces", 550)
    labels = [[visible(piece.decode("utf-8", errors="backslashreplace")) for piece in pieces] for pieces in steps]
    width = max(0.09 * len(label) / len(piece) for row in zip(labels, steps) for label, piece in zip(*row))
    fig, ax = bare_figure(max(7.0, width * sum(map(len, steps[0]))), 0.52 * len(steps) + 0.3)
    before: dict[tuple[int, int], float] = {}
    for level, pieces in enumerate(steps):
        centres = {}
        start = 0
        for piece, label in zip(pieces, labels[level]):
            end = start + len(piece)
            centres[start, end] = (start + end) / 2
            new = (start, end) not in before
            for (s, e), x in before.items():
                if start <= s and e <= end:
                    link = [x, centres[start, end]], [level - 1 + 0.25, level - 0.25]
                    ax.add_line(Line2D(*link, color=MUTED, lw=1, zorder=0))
            fill = TOKEN_FILLS[1] if new and level else TOKEN_FILLS[0]
            corner, width = (start + 0.12, level - 0.22), end - start - 0.24
            ax.add_patch(FancyBboxPatch(corner, width, 0.44, boxstyle="round,pad=0.03", fc=fill, ec="none"))
            ax.text(centres[start, end], level, label, family="monospace", color=INK, **CENTRED)
            start = end
        before = centres
    ax.set(xlim=(-0.2, start + 0.2), ylim=(-0.5, len(steps) - 0.5))
    _leave_out_of_layout(ax)
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
        num_tokens: how many columns, from 1 to 40.
        labels: a name for each column; the positions when left out.

    Raises:
        TypeError: an ID is not an integer, or `panels` is not a dict.
        ValueError: an ID is not a position, or there are too many or too few of something.
    """
    num_tokens = as_integer("num_tokens", num_tokens, 1, 40)
    names = as_names("labels", range(num_tokens) if labels is None else labels, num_tokens)
    maps = [(title, _positions(windows, num_tokens)) for title, windows in as_dict("panels", panels).items()]
    check_size("panels", len(maps), "maps", 12)
    check_size("panels", 1 + sum(len(windows) for _, windows in maps), "windows", 41)
    # Names wider than their column are written vertically, and each map grows by their length.
    longest = 0.09 * max(map(len, names))
    upright = longest > 0.62 * min(1, 20 / num_tokens)
    heights = [len(windows) + 3.2 + upright * longest / 0.3 for _, windows in maps]
    width = max(5.0, 0.62 * min(num_tokens, 20) + 1.2)
    fig = CourseFigure(width, 0.3 * sum(heights) + 0.3)
    for ax, (title, windows) in zip(fig.subplots(len(maps), squeeze=False, height_ratios=heights)[:, 0], maps):
        _draw_windows(ax, windows, names, 90 if upright else 0)
        ax.set_title(wrapped(title, width), loc="left", size=10, color=INK, pad=10)
    return fig


def _positions(windows: Iterable[tuple[Any, Any]], num_tokens: int) -> list[tuple[list[int], list[int]]]:
    """Return windows of any kind as lists of integers, each of them a position."""
    found = []
    for window in as_list("the windows of a panel", windows):
        pair = [as_list("a window's IDs", ids) for ids in as_list("a window", window)]
        if len(pair) != 2 or not pair[1]:
            raise ValueError("panels must hold windows of (input_ids, target_ids), and both of at least one ID")
        found.append(tuple([as_integer("a window's ID", i, 0, num_tokens - 1) for i in ids] for ids in pair))
    return found


def _draw_windows(ax: Axes, windows: list[tuple[list[int], list[int]]], names: list[str], rotation: int) -> None:
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
