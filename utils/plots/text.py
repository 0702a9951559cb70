"""Figures of texts: the route, tokens and merges."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, cycle
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle

from utils.arguments import as_integer
from utils.plots.canvas import (
    AXIS_COLOURS,
    CENTRED,
    INK,
    MUTED,
    TOKEN_FILLS,
    bare_axes,
    draw_way,
    fit_to_inches,
    in_course_style,
)
from utils.plots.inputs import as_list, check_size, one_line, visible

# A station for each lesson, from lesson 0 or 1 (text) to lesson 10 (new text).
ROUTE = ("text", "IDs", "batch", "embeddings", "attention", "Q, K, V", "mask", "dropout", "heads", "GPT", "new text")


@in_course_style
def plot_route(station: str, through: str | None = None) -> Figure:
    """Return the whole route, text to new text, as two rows of stations, with one highlighted, or several.

    Args:
        station: one of `ROUTE`.
        through: the last station to highlight; by default only `station` is highlighted.
    """
    for name, value in (("station", station), ("through", station if through is None else through)):
        if value not in ROUTE:
            raise ValueError(f"{name} is {value!r}: the route has {ROUTE}")
    first, last = ROUTE.index(station), ROUTE.index(station if through is None else through)
    if last < first:
        raise ValueError(f"through is {through!r}, which comes before station {station!r}")
    fig, ax = bare_axes(1.0, 1.0)
    rows, right, height, below = (ROUTE[:5], ROUTE[5:]), 5.35, 0.3, 0.62  # inches
    for row, names in enumerate(rows):
        widths = [0.08 * len(name) + 0.2 for name in names]
        gap, left, y = (right - sum(widths)) / (len(names) - 1), 0.0, -below * row
        for name, width in zip(names, widths):
            here = first <= ROUTE.index(name) <= last
            fill, ink = (AXIS_COLOURS["num_tokens"], "white") if here else ("#ececec", INK)
            shape = "round,pad=0,rounding_size=0.08"
            ax.add_patch(FancyBboxPatch((left, y - height / 2), width, height, boxstyle=shape, fc=fill, ec="none"))
            ax.text(left + width / 2, y, name, size=10, color=ink, **CENTRED)
            if name not in (names[-1], ROUTE[-1]):
                draw_way(ax, [(left + width + 0.05, y), (left + width + gap - 0.05, y)])
            left += width + gap
        if row == 0:  # from the end of this row to the start of the next
            start, end = right - widths[-1] / 2, 0.04 * len(rows[1][0]) + 0.1
            middle = y - below / 2
            draw_way(
                ax, [(start, y - height / 2), (start, middle), (end, middle), (end, y - below + height / 2 + 0.02)]
            )
    fit_to_inches(ax, (-0.1, right + 0.1), (-below - 0.25, 0.25))
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
    y, widest = 0, 1  # one row is 1 high, one character 1 wide
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
    fig.set_size_inches(max(0.09 * widest, min(8.0, 0.18 * widest)), -0.95 * y)  # room to breathe where there is some
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
def plot_merges(steps: Sequence[Sequence[bytes]], ranks: Mapping[bytes, int] | None = None) -> Figure:
    """Return the merge tree of one pre-token: single bytes below, tokens above, one level per step.

    Args:
        steps: as `bpe_merge_steps` returns them, for a pre-token of at most 32 bytes.
        ranks: piece -> its rank, which is written beside the step that makes the piece.
    """
    if ranks is not None and not isinstance(ranks, Mapping):
        raise TypeError(f"ranks must be a dict, not {type(ranks).__name__}")
    steps = [as_list("steps", pieces) for pieces in as_list("steps", steps)]
    wrong = [piece for piece in chain(*steps) if not isinstance(piece, bytes) or not piece]
    if wrong:
        raise TypeError(f"steps must hold pieces of type bytes, none of them empty, not {wrong[0]!r}")
    check_size("steps", sum(map(len, steps)), "pieces", 550)
    check_size("steps", max(len(b"".join(pieces)) for pieces in steps), "bytes", 32)
    num_bytes = len(b"".join(steps[0]))
    fig, ax = bare_axes(7.0, 1.0)
    before, room, aside = [], 0.0, 0.0
    for level, pieces in enumerate(steps):
        ends = list(accumulate(map(len, pieces)))
        spans = list(zip([0, *ends], ends))
        merged = [piece for span, piece in zip(spans, pieces) if level and span not in before]
        if ranks is not None and merged:
            if missing := [piece for piece in merged if piece not in ranks]:
                raise ValueError(f"ranks has no {missing[0]!r}, which steps[{level}] merges")
            found = dict.fromkeys(as_integer(f"ranks[{piece!r}]", ranks[piece]) for piece in merged)
            words = f"rank {', '.join(map(str, found))}"
            ax.text(num_bytes + 0.3, level, words, size=9, color=MUTED, va="center")
            aside = max(aside, 0.07 * len(words) + 0.3)
        for (start, end), piece in zip(spans, pieces):
            for s, e in before:
                if start <= s and e <= end:
                    link = [(s + e) / 2, (start + end) / 2], [level - 1 + 0.25, level - 0.25]
                    ax.add_line(Line2D(*link, color=MUTED, lw=1, zorder=0))
            fill = TOKEN_FILLS[1 if level and (start, end) not in before else 0]
            corner, width = (start + 0.12, level - 0.22), end - start - 0.24
            ax.add_patch(FancyBboxPatch(corner, width, 0.44, boxstyle="round,pad=0.03", fc=fill, ec="none"))
            label = visible(piece.decode("utf-8", errors="backslashreplace"))
            ax.text((start + end) / 2, level, label, family="monospace", color=INK, **CENTRED)
            room = max(room, 0.09 * len(label) / len(piece))
        before = spans
    width = max(7.0, room * num_bytes)
    fig.set_size_inches(width + aside, 0.52 * len(steps) + 0.3)
    ax.set(xlim=(-0.2, num_bytes * (1 + aside / width) + 0.2), ylim=(-0.5, len(steps) - 0.5))
    return fig
