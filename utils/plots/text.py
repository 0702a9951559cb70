"""Figures of texts: the route, tokens, merges, and which window covers which token."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from utils.arguments import as_integer
from utils.plots.canvas import AXIS_COLOURS, INK, MUTED, PAPER, TOKEN_FILLS, bare_figure, finished, new_figure, visible

_CENTRED = {"ha": "center", "va": "center"}
ROUTE = ("text", "IDs", "batch", "embeddings", "attention", "…", "logits", "text")


def plot_route(station: str, through: str | None = None) -> Figure:
    """Return the strip of the whole route, text to text, with one station highlighted, or several.

    Args:
        station: one of `ROUTE`.
        through: the last station to be highlighted, at its last place in `ROUTE`; by default only
            `station` is, at its first.
    """
    for name, value in (("station", station), ("through", through or station)):
        if value not in ROUTE:
            raise ValueError(f"{name} is {value!r}: the route has {ROUTE}")
    first = ROUTE.index(station)
    last = first if through is None else len(ROUTE) - 1 - ROUTE[::-1].index(through)
    if last < first:
        raise ValueError(f"through is {through!r}, which comes before station {station!r}")
    fig, ax = bare_figure(8.0, 0.6)
    left = 0.0
    for place, name in enumerate(ROUTE):
        here = first <= place <= last
        width = len(name) + 2.4
        fill = AXIS_COLOURS["num_tokens"] if here else "#ececec"
        ax.add_patch(
            FancyBboxPatch((left, -0.3), width, 0.6, boxstyle="round,pad=0.1,rounding_size=0.2", fc=fill, ec="none")
        )
        ax.text(left + width / 2, 0, name, size=10, color=PAPER if here else INK, **_CENTRED)
        if place < len(ROUTE) - 1:
            ax.text(left + width + 1.2, 0, "→", size=11, color=MUTED, **_CENTRED)
        left += width + 2.4
    ax.set(xlim=(-0.5, left - 1.9), ylim=(-0.6, 0.6))
    return finished(fig)


def plot_tokens(texts: Sequence[tuple[Sequence[str], Sequence[int]]]) -> Figure:
    """Return texts as rows of coloured tokens over their IDs.

    Args:
        texts: for each text its pieces and their IDs, of equal length. A blank is drawn as ␣, a
            line end as ↵.
    """
    fig, ax = bare_figure(8.0, 0.95 * len(texts))
    widest = 0.0
    for row, (pieces, ids) in enumerate(texts):
        left = 0.0
        for place, (piece, token_id) in enumerate(zip(pieces, ids, strict=True)):
            label = visible(piece)
            width = max(len(label), len(str(token_id))) + 1
            ax.add_patch(
                Rectangle((left, -row + 0.05), width - 0.15, 0.42, color=TOKEN_FILLS[place % len(TOKEN_FILLS)])
            )
            ax.text(left + width / 2, -row + 0.25, label, family="monospace", color=INK, **_CENTRED)
            ax.text(left + width / 2, -row - 0.15, str(token_id), size=9, color=MUTED, **_CENTRED)
            left += width
        widest = max(widest, left)
    ax.set(xlim=(-0.2, max(widest, 44)), ylim=(0.6 - len(texts), 0.6))
    return finished(fig)


def plot_counts(values: Iterable[int], xlabel: str, ylabel: str) -> Figure:
    """Return a bar for each whole number, as high as its share of the values, in percent."""
    counts = Counter(as_integer("values", value) for value in values)
    total = counts.total()
    if not total:
        raise ValueError("values is empty: there is nothing to count")
    fig = new_figure(7.0, 2.8)
    ax = fig.add_subplot()
    numbers = range(min(counts), max(counts) + 1)
    ax.bar(numbers, [100 * counts[number] / total for number in numbers], color=AXIS_COLOURS["num_tokens"])
    ax.set(xlabel=xlabel, ylabel=ylabel, xticks=list(numbers))
    ax.spines[["top", "right"]].set_visible(False)
    return finished(fig)


def plot_merges(steps: Sequence[Sequence[bytes]]) -> Figure:
    """Return the merge tree of one pre-token: single bytes below, tokens above, a level a step.

    Args:
        steps: as `bpe_merge_steps` gives them.
    """
    fig, ax = bare_figure(7.0, 0.52 * len(steps) + 0.3)
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
            label = visible(piece.decode("utf-8", errors="backslashreplace"))
            ax.text(centres[start, end], level, label, family="monospace", color=INK, **_CENTRED)
            start = end
        before = centres
    ax.set(xlim=(-0.2, start + 0.2), ylim=(-0.5, len(steps) - 0.5))
    return finished(fig)


def plot_windows(
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
    fig = new_figure(max(5.0, 0.62 * num_tokens + 1.2), 0.3 * sum(heights) + 0.3)
    for ax, (title, windows) in zip(
        fig.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0], panels.items()
    ):
        _draw_windows(ax, windows, num_tokens, labels or range(num_tokens))
        ax.set_title(title, loc="left", size=10, color=INK, pad=10)
    return finished(fig)


def _draw_windows(ax: Axes, windows: list[tuple[Tensor, Tensor]], num_tokens: int, labels: Sequence) -> None:
    blue = AXIS_COLOURS["num_tokens"]
    as_input = Counter(int(place) for input_ids, _ in windows for place in input_ids)
    seen = as_input | Counter(int(place) for _, target_ids in windows for place in target_ids)
    for row, (input_ids, target_ids) in enumerate(windows):
        for place in input_ids.tolist():
            ax.add_patch(Rectangle((place - 0.46, row - 0.4), 0.92, 0.8, color=blue))
        ax.add_patch(Rectangle((int(target_ids[-1]) - 0.42, row - 0.36), 0.84, 0.72, fill=False, ec=blue, lw=1.6))
    for place in range(num_tokens):
        count = str(as_input[place]) if seen[place] else "–"
        ax.text(place, len(windows) + 0.15, count, size=9, color=INK, **_CENTRED)
    ax.text(-0.7, len(windows) + 0.15, "times an input", ha="right", va="center", size=9, color=MUTED)
    ax.set(xlim=(-0.6, num_tokens - 0.4), ylim=(len(windows) + 0.6, -0.6))
    ax.set_xticks(range(num_tokens), labels, size=9, color=blue, parse_math=False)
    ax.set_yticks(range(len(windows)), [f"window {i}" for i in range(len(windows))], size=9)
    ax.tick_params(length=0)
    ax.tick_params(axis="y", colors=AXIS_COLOURS["batch_size"])
    ax.spines[:].set_visible(False)
