"""utils.plots against its contract: what is drawn, never how it looks to the pixel."""

import base64
import io
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import matplotlib.image
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from utils import plots
from utils.batches import TokenWindows
from utils.plots import (
    AXIS_COLOURS,
    INK,
    PAPER,
    ROUTE,
    TOKEN_FILLS,
    plot_counts,
    plot_merges,
    plot_route,
    plot_tokens,
    plot_windows,
    shape_ledger,
    show,
)
from utils.tokenizer import bpe_merge_steps, text_to_ids, token_texts

moderate = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])


def tokens(*texts):
    return [(token_texts(text_to_ids(text)), text_to_ids(text).tolist()) for text in texts]


def box(patch):
    """Return where a patch lies, in the numbers of its axes: left, bottom, right, top."""
    return patch.get_path().get_extents(patch.get_patch_transform()).extents


def patch_under(ax, x, y):
    """Return the filled patch that covers a place, or None."""
    for patch in ax.patches:
        left, bottom, right, top = box(patch)
        if patch.get_fill() and left <= x <= right and bottom <= y <= top:
            return patch
    return None


def labels(ax, patched=True):
    """Return the texts that stand on a patch (or those that stand on the paper), in the order drawn."""
    return [text.get_text() for text in ax.texts if (patch_under(ax, *text.get_position()) is not None) == patched]


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it: 1 (none) to 21 (black on white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


EXAMPLES = {
    "route": lambda: plot_route("batch"),
    "tokens": lambda: plot_tokens(tokens("Every effort moves you", "∩\nZoë", "pdt magr")),
    "counts": lambda: plot_counts([1, 2, 2, 4], "characters", "percent"),
    "merges": lambda: plot_merges(bpe_merge_steps(" effort")),
    "coverage": lambda: plot_windows({"stride 4": TokenWindows(range(10), 4, 4)}, 10),
}


# show


@pytest.fixture
def outputs(monkeypatch):
    """What a notebook's cell would hold: the real `display`, published to a list."""
    publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(InteractiveShell, "initialized", staticmethod(lambda: True))
    monkeypatch.setattr(InteractiveShell, "instance", staticmethod(lambda: SimpleNamespace(display_pub=publisher)))
    return publisher.outputs


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_show_gives_a_picture_and_its_words(outputs, name):
    fig = EXAMPLES[name]()
    assert isinstance(fig, Figure)
    alt = "Four boxes, and under each a number: «é», ∩."
    assert show(fig, alt) is None
    [output] = outputs
    assert set(output["data"]) == {"image/png", "text/plain"}
    assert output["data"]["text/plain"] == alt
    assert output["metadata"]["image/png"]["alt"] == alt
    png = base64.b64decode(output["data"]["image/png"], validate=True)
    assert png.startswith(b"\x89PNG")
    height, width, _ = matplotlib.image.imread(io.BytesIO(png)).shape
    shown = output["metadata"]["image/png"]
    assert width / height == pytest.approx(shown["width"] / shown["height"], rel=0.05)
    assert 200 <= shown["width"] <= 1000
    assert width >= shown["width"], "sharp on a fine screen too"


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_show_asks_for_words(outputs, alt):
    with pytest.raises(ValueError, match="alt"):
        show(plot_route("text"), alt)
    assert outputs == []


def test_alt_has_no_default(outputs):
    with pytest.raises(TypeError, match="alt"):
        show(plot_route("text"))
    with pytest.raises(TypeError, match="alt"):
        show(plot_route("text"), 5)
    with pytest.raises(TypeError, match="alt"):
        show(plot_route("text"), None)
    assert outputs == []


def test_show_takes_figures(outputs):
    with pytest.raises(TypeError, match="fig"):
        show("a picture", "words")
    assert outputs == []


# Nothing global is touched

IMPORT = """
import sys
import matplotlib
before = matplotlib.rcParams.copy()
import utils.plots
assert "matplotlib.pyplot" not in sys.modules, "pyplot is imported"
assert matplotlib.rcParams.copy() == before, "rcParams are changed by the import"
fig = utils.plots.plot_route("text")
fig.draw_without_rendering()
assert "matplotlib.pyplot" not in sys.modules, "pyplot is imported by drawing"
assert matplotlib.rcParams.copy() == before, "rcParams are changed by drawing"

matplotlib.use("agg")
import matplotlib.pyplot
own, other = matplotlib.pyplot.figure(), matplotlib.pyplot.figure()
utils.plots.show(own, "a learner's own figure")
assert matplotlib.pyplot.get_fignums() == [other.number], "the notebook would draw it a second time"
"""


def test_the_import_touches_nothing():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env=os.environ | {"PYTHONPATH": str(Path(plots.__file__).parents[2]), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "a learner's own figure\n", "")


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_drawing_changes_no_settings(name):
    before = matplotlib.rcParams.copy()
    EXAMPLES[name]().draw_without_rendering()
    assert matplotlib.rcParams.copy() == before


# Colours


def test_contrast_is_computed_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_colours_are_readable():
    assert contrast(PAPER, "#ffffff") == 1
    assert set(AXIS_COLOURS) >= {"batch_size", "num_tokens", "emb_dim", "num_heads", "vocab_size"}
    assert len(set(AXIS_COLOURS.values())) == len(AXIS_COLOURS), "one colour an axis kind"
    assert min(contrast(colour, "#ffffff") for colour in AXIS_COLOURS.values()) >= 4.5
    assert len(set(TOKEN_FILLS)) == len(TOKEN_FILLS) >= 2
    assert min(contrast(INK, fill) for fill in TOKEN_FILLS) >= 7


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_text_is_readable_where_it_stands(name):
    fig = EXAMPLES[name]()
    assert to_hex(fig.get_facecolor()) == PAPER
    for ax in fig.axes:
        for text in ax.texts:
            patch = patch_under(ax, *text.get_position())
            ground = to_hex(patch.get_facecolor()) if patch else PAPER
            assert contrast(to_hex(text.get_color()), ground) >= 4.5, text.get_text()
        for text in (*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label):
            assert contrast(to_hex(text.get_color()), PAPER) >= 4.5, text.get_text()


# shape_ledger


def test_shape_ledger(capsys):
    assert (
        shape_ledger(
            input_ids=(torch.zeros(2, 4), "batch_size, num_tokens"),
            row=(torch.zeros(50257), "vocab_size"),
            one_number=(torch.tensor(1.0), ""),
        )
        is None
    )
    assert capsys.readouterr().out.splitlines() == [
        "tensor      shape     axes",
        "input_ids   (2, 4)    batch_size, num_tokens",
        "row         (50257,)  vocab_size",
        "one_number  ()",
    ]


@pytest.mark.parametrize("axes", ["num_tokens", "", "batch_size, num_tokens, emb_dim"])
def test_shape_ledger_counts_the_axes(capsys, axes):
    with pytest.raises(ValueError, match=r"batch.*\(2, 4\)"):
        shape_ledger(batch=(torch.zeros(2, 4), axes))
    assert capsys.readouterr().out == "", "no half table"


def test_shape_ledger_takes_tensors():
    with pytest.raises(TypeError, match="batch"):
        shape_ledger(batch=([1, 2], "num_tokens"))


# plot_route


def lit(figure):
    """The stations whose fill is not the usual one, by their places."""
    [ax] = figure.axes
    assert tuple(labels(ax)) == ROUTE
    stations = [text for text in ax.texts if text.get_text() in ROUTE]
    fills = [to_hex(patch_under(ax, *text.get_position()).get_facecolor()) for text in stations]
    return [place for place, fill in enumerate(fills) if fill != to_hex("#ececec")]


@pytest.mark.parametrize("station", sorted(set(ROUTE)))
def test_route_lights_one_station(station):
    assert lit(plot_route(station)) == [ROUTE.index(station)]


def test_route_lights_several_stations():
    assert lit(plot_route("text", through="text")) == list(range(len(ROUTE)))
    assert lit(plot_route("batch", through="attention")) == [2, 3, 4]
    assert lit(plot_route("logits", through="text")) == [6, 7]
    assert lit(plot_route("logits", through="logits")) == [6]


@pytest.mark.parametrize(("station", "through"), [("logits", "batch"), ("text", "nowhere"), ("nowhere", "text")])
def test_route_refuses_what_it_cannot_light(station, through):
    with pytest.raises(ValueError, match=r"nowhere|batch"):
        plot_route(station, through=through)


@pytest.mark.parametrize("station", ["tokens", "ids", "", None, 0], ids=repr)
def test_an_unknown_station_is_named(station):
    with pytest.raises(ValueError, match=rf"{station!r}.*embeddings"):
        plot_route(station)


# plot_tokens


def test_tokens_stand_over_their_ids():
    rows = tokens("Every effort moves you", "hello\nworld", "∩", "  Hello World.")
    [ax] = plot_tokens(rows).axes
    assert labels(ax) == [
        *("Every", "␣effort", "␣moves", "␣you"),
        *("hello", "↵", "world"),
        *(r"\xe2\x88", r"\xa9"),
        *("␣", "␣Hello", "␣World", "."),
    ]
    assert labels(ax, patched=False) == [str(token_id) for _, ids in rows for token_id in ids]
    assert len(ax.patches) == 4 + 3 + 2 + 4


@moderate
@given(st.lists(st.lists(st.integers(0, 50_256), min_size=1, max_size=6), min_size=1, max_size=4))
def test_token_boxes(rows):
    """Boxes of a row stand side by side in text order, neighbours of different colours; each ID is under its box."""
    [ax] = plot_tokens([(token_texts(ids), ids) for ids in rows]).axes
    assert len(ax.patches) == sum(map(len, rows))
    patches = iter(ax.patches)
    numbers = iter([text for text in ax.texts if patch_under(ax, *text.get_position()) is None])
    floor = np.inf
    for ids in rows:
        row = [next(patches) for _ in ids]
        boxes = [box(patch) for patch in row]
        assert all(one[2] <= other[0] for one, other in pairwise(boxes))
        fills = [to_hex(patch.get_facecolor()) for patch in row]
        assert all(one != other for one, other in pairwise(fills))
        assert max(top for *_, top in boxes) <= floor, "the next text stands below"
        for token_id, (left, bottom, right, _) in zip(ids, boxes):
            number = next(numbers)
            assert number.get_text() == str(token_id)
            assert left <= number.get_position()[0] <= right
            assert number.get_position()[1] < bottom
            floor = number.get_position()[1]
    low, high = sorted(ax.get_xlim())
    assert all(low <= box(patch)[0] and box(patch)[2] <= high for patch in ax.patches), "nothing is cut off"


def test_tokens_and_ids_are_of_equal_number():
    with pytest.raises(ValueError, match=r"zip|equal|ids"):
        plot_tokens([(["Every", " effort"], [6109])])


DOLLARS = ["$$", "$x$", "a$b$", "\\", "_^{"]


@pytest.mark.parametrize("piece", DOLLARS)
def test_signs_of_formulas_are_plain_text(piece):
    figures = [
        plot_tokens([([piece], [0])]),
        plot_merges([[piece.encode()]]),
        plot_windows({"stride 1": TokenWindows(range(3), 1, 1)}, 3, labels=[piece, "b", "c"]),
    ]
    for fig in figures:
        fig.draw_without_rendering()
        [ax] = fig.axes
        drawn = [text for text in (*ax.texts, *ax.get_xticklabels()) if piece in text.get_text()]
        assert drawn
        assert not any("$" in text.get_text() and text.get_parse_math() for text in drawn)


@pytest.mark.parametrize("text", ["a\tb", "one\r\ntwo", "\n\n", "a\u00a0b"])
def test_no_warning_for_blanks_of_other_kinds(outputs, text):
    show(plot_tokens(tokens(text)), "tokens")
    for piece, _ in zip(*tokens(text)[0]):
        show(plot_merges(bpe_merge_steps(piece)), "merges")


# plot_counts


@pytest.mark.parametrize(
    "values", [[1, 1, 2, 4], np.array([1, 1, 2, 4]), iter([1, 1, 2, 4])], ids=lambda v: type(v).__name__
)
def test_counts_are_shares_in_percent(values):
    [ax] = plot_counts(values, "characters a token", "percent of tokens").axes
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.patches}
    assert bars == pytest.approx({1: 50, 2: 25, 3: 0, 4: 25})
    assert ax.get_xlabel() == "characters a token"
    assert ax.get_ylabel() == "percent of tokens"
    assert list(ax.get_xticks()) == [1, 2, 3, 4]


@moderate
@given(st.lists(st.integers(-3, 12), min_size=1, max_size=50))
def test_shares_add_up(values):
    [ax] = plot_counts(values, "x", "y").axes
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(100)
    assert len(ax.patches) == max(values) - min(values) + 1


def test_counts_of_a_tensor_are_right_or_refused():
    try:
        [ax] = plot_counts(torch.tensor([1, 1, 2, 4]), "x", "y").axes
    except (TypeError, ValueError):
        return
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([50, 25, 0, 25])


@pytest.mark.parametrize("values", [[1.5, 2], ["1", "2"], [None]], ids=repr)
def test_only_whole_numbers_are_counted(values):
    with pytest.raises((TypeError, ValueError)):
        plot_counts(values, "x", "y")


def test_nothing_to_count():
    with pytest.raises(ValueError, match="values"):
        plot_counts([], "x", "y")


# plot_merges


@pytest.mark.parametrize("text", [" effort", "cat", "magr", "x", "∩", "aaaa", "1984"])
def test_merge_tree(text):
    steps = bpe_merge_steps(text)
    [ax] = plot_merges(steps).axes
    pieces = [piece for step in steps for piece in step]
    shown = [piece.decode("utf-8", errors="backslashreplace").replace(" ", "␣") for piece in pieces]
    assert labels(ax) == shown
    assert len(ax.patches) == len(pieces)
    heights = [text.get_position()[1] for text in ax.texts]
    levels = [level for level, step in enumerate(steps) for _ in step]
    assert [sorted(set(heights)).index(height) for height in heights] == levels, "single bytes below, tokens above"
    widths = [right - left for left, _, right, _ in map(box, ax.patches)]
    for width, piece in zip(widths, pieces):
        assert round(width) == len(piece), "as wide as its bytes are many"


@pytest.mark.parametrize("text", [" effort", "cat", "aaaa"])
def test_each_piece_has_one_line_to_the_piece_it_goes_into(text):
    steps = bpe_merge_steps(text)
    [ax] = plot_merges(steps).axes
    bottoms = sorted(tuple(np.round(line.get_xydata()[0], 6)) for line in ax.lines)
    assert len(bottoms) == len(set(bottoms)) == sum(len(step) for step in steps[:-1])


def test_new_pieces_stand_out():
    steps = bpe_merge_steps("cat")
    [ax] = plot_merges(steps).axes
    fills = [to_hex(patch.get_facecolor()) for patch in ax.patches]
    #        c  a  t  c  AT  CAT
    assert [fill == fills[0] for fill in fills] == [True, True, True, True, False, False]


# plot_windows


@moderate
@given(st.integers(2, 12), st.integers(1, 5), st.integers(1, 7))
def test_coverage_is_that_of_the_windows(num_tokens, context_length, stride):
    if num_tokens <= context_length:
        return
    windows = TokenWindows(range(num_tokens), context_length, stride)
    [ax] = plot_windows({f"stride {stride}": windows}, num_tokens).axes
    filled, outlined = set(), set()
    for patch in ax.patches:
        left, bottom, right, top = box(patch)
        place = round((left + right) / 2), round((bottom + top) / 2)
        (filled if patch.get_fill() else outlined).add(place)
    starts = [row * stride for row in range(len(windows))]
    inputs = {(start + k, row) for row, start in enumerate(starts) for k in range(context_length)}
    assert filled == inputs
    assert outlined == {(start + context_length, row) for row, start in enumerate(starts)}
    assert len(ax.patches) == len(filled) + len(outlined)
    counts = {round(text.get_position()[0]): text.get_text() for text in ax.texts if text.get_position()[0] >= 0}
    seen = filled | outlined
    for place in range(num_tokens):
        times = sum(column == place for column, _ in inputs)
        never = all(column != place for column, _ in seen)
        assert counts[place] == ("–" if never else str(times))
    assert ax.yaxis_inverted(), "the first window on top"


def test_coverage_in_panels():
    panels = {f"stride {stride}": TokenWindows(range(10), 4, stride) for stride in (1, 4, 5)}
    words = [f"word{place}" for place in range(10)]
    fig = plot_windows(panels, 10, labels=words)
    assert [ax.get_title(loc="left") for ax in fig.axes] == list(panels)
    assert [len(ax.patches) for ax in fig.axes] == [6 * 5, 2 * 5, 2 * 5]
    for ax, windows in zip(fig.axes, panels.values()):
        assert [text.get_text() for text in ax.get_xticklabels()] == words
        assert [text.get_text() for text in ax.get_yticklabels()] == [f"window {i}" for i in range(len(windows))]
    [ax] = plot_windows({"": panels["stride 1"]}, 10).axes
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(place) for place in range(10)]


def test_coverage_of_a_text_too_short():
    [ax] = plot_windows({"no window": []}, 3).axes
    assert len(ax.patches) == 0
    assert [text.get_text() for text in ax.texts if text.get_position()[0] >= 0] == ["–"] * 3
