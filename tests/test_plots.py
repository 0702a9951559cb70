"""utils.plots against its contract: what is drawn, never how it looks to the pixel."""

import base64
import importlib
import io
import math
import sys
from functools import cache
from itertools import accumulate, combinations, pairwise
from types import SimpleNamespace

import matplotlib
import matplotlib.image
import numpy as np
import pytest
import torch
from colours import contrast, luminance
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from matplotlib import style
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.text import Text

from utils.batches import TokenWindows
from utils.gpt import GPTConfig, GPTModel
from utils.plots import (
    AXIS_COLOURS,
    INK,
    PAPER,
    ROUTE,
    TOKEN_FILLS,
    plot_attention,
    plot_bars,
    plot_block,
    plot_counts,
    plot_flow,
    plot_gpt,
    plot_heads,
    plot_lines,
    plot_matrices,
    plot_merges,
    plot_parallel,
    plot_plane,
    plot_predictions,
    plot_route,
    plot_stacks,
    plot_tokens,
    plot_verdicts,
    plot_weighted_sum,
    plot_windows,
    shape_ledger,
    show,
)


def small_gpt(emb_dim=8, n_layers=2, tie_weights=True, device=None):
    with torch.device(device or "cpu"):
        return GPTModel(GPTConfig(100, 16, emb_dim, emb_dim // 4, n_layers, 0.1, False, tie_weights))


# Each function with all its words as `word`, and with its numbers as `of` gives them: any that bfloat16 has exactly.
FIGURES = {
    "route": lambda word, of: plot_route("batch"),
    "tokens": lambda word, of: plot_tokens([([word, " b"], of([1, 2])), (["c\n"], of([3]))]),
    "counts": lambda word, of: plot_counts(of([1, 2, 2, 4]), word, word),
    "counts far apart": lambda word, of: plot_counts(of([6109, 3626, 6100, 345]), word, word),
    "merges": lambda word, of: plot_merges([[b"a", word.encode()[:18]], [b"a" + word.encode()[:18]]]),
    "predictions": lambda word, of: plot_predictions([word, " b"], of([1, 2])),
    "windows": lambda word, of: plot_windows({word: [(of([0, 1]), of([1, 2]))]}, of([3])[0], labels=[word, "a", word]),
    "points": lambda word, of: plot_plane(
        {word: {word: of([0.25, -0.5]), 7: of([2.0, 1.0])}, "": {"a": (1, 1)}}, xlabel=word, ylabel=word
    ),
    "groups": lambda word, of: plot_plane({"": {word: of([0.5, 1.0]), "b": (1, 1)}}, groups={word: [word]}),
    "arrows": lambda word, of: plot_plane({word: {word: of([0.25, -0.5]), "b": of([2.0, 1.0])}}, arrows=True),
    "weighted sum": lambda word, of: plot_weighted_sum(
        {word: of([0.25, 0.5]), "b": of([1.0, 0.25])}, {word: of([0.5, 1.0])}, word, word
    ),
    "matrices": lambda word, of: plot_matrices({word: of([[0.25, -3.0], [1.0, 2.0]])}, word, word),
    "attention": lambda word, of: plot_attention({word: of([[0.25, 0.75], [0.5, 0.5]])}, [word, 7], of([1, 2])),
    "hidden cells": lambda word, of: plot_attention({word: of([[1.0, 0.0]])}, [word], "ab", of([[False, True]])),
    "verdicts": lambda word, of: plot_verdicts(["✓✗", "… "], [word, 7], of([1, 2])),
    "flow": lambda word, of: plot_flow(
        inputs=torch.as_tensor(of([[0.25, 0.5, 1.0]])), attn_scores=torch.as_tensor(of([[2.0]]))
    ),
    "heads": lambda word, of: plot_heads(torch.as_tensor(of([[0.25, 0.5, 1.0, 2.0]])), 2),
    "block": lambda word, of: plot_block(small_gpt().blocks[0], 8),
    "gpt": lambda word, of: plot_gpt(small_gpt()),
    "parallel": lambda word, of: plot_parallel(small_gpt(), 4, 16),
    "stacks": lambda word, of: plot_stacks({word: of([0.25, 0.75]), "b": of([1.0, 2.0])}, [word, 7], word, word),
    "bars": lambda word, of: plot_bars({word: of([0.25, 0.75])}, [word, 7], word),
    "lines": lambda word, of: plot_lines({word: {word: of([0.5, 2.0]), "": [2, 1]}}, of([1.0, 4.0]), word, True),
}
NO_WORDS = (
    "route",
    "flow",
    "heads",
    "block",
    "gpt",
    "parallel",
)  # of the caller's: those are drawn with words of the course
every_figure = pytest.mark.parametrize("name", FIGURES)
WORD = "_$\\frac$の👍ש\t" + 200 * "long words "


@cache
def example(name):
    return FIGURES[name](WORD, list)


def png_of(fig):
    """Draw a figure for good, so that what goes wrong only then (a formula, a missing letter) goes wrong here."""
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=40)
    return png.getvalue()


def words(fig):
    """Return the texts of a figure or of its axes that have a word to say."""
    return [text.get_text() for text in fig.findobj(Text) if text.get_text()]


def notes(ax):
    """Return the texts drawn on the axes, in order."""
    return [text.get_text() for text in ax.texts if text.get_text()]


def tick_words(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def box(patch):
    """Return where a patch lies, in the numbers of its axes: left, bottom, right, top."""
    return patch.get_path().get_extents(patch.get_patch_transform()).extents


def patch_under(ax, text):
    """Return the filled patch that a text is written on, or None."""
    x, y = text.get_position()
    for patch in ax.patches:
        left, bottom, right, top = box(patch)
        if patch.get_fill() and left <= x <= right and bottom <= y <= top:
            return patch
    return None


def inside(ax, point):
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return left <= point[0] <= right and bottom <= point[1] <= top


def arrows(ax):
    """Return what each arrow of a figure is: tail, head, whether it is dashed."""
    found = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    return [(text.get_position(), tuple(text.xy), text.arrow_patch.get_linestyle() == "--") for text in found]


def points(ax):
    return [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == "o"]


def overlaps(fig):
    """Return the pairs of words on a figure that lie on each other, and the words that are cut off at its edge."""
    fig.draw_without_rendering()
    shown = [text for legend in fig.legends for text in legend.get_texts()]
    for ax in fig.axes:
        shown += [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            low, high = sorted(axis.get_view_interval())
            shown += [label for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels()) if low <= at <= high]
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown if text.get_text()]
    paper = fig.bbox.padded(1)
    cut = [word for word, b in boxes if not (paper.contains(b.x0, b.y0) and paper.contains(b.x1, b.y1))]
    both = combinations(((word, b.padded(-1)) for word, b in boxes), 2)
    return [(one, other) for (one, a), (other, b) in both if a.overlaps(b)], cut


def hatched(ax):
    return [patch for patch in ax.patches if patch.get_hatch()]


def many(number):
    return dict(enumerate(torch.randn(number, 2, generator=torch.Generator().manual_seed(0))))


# show


@pytest.fixture
def outputs(monkeypatch):
    """What a notebook's cell would hold: the real `display`, published to a list."""
    publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(InteractiveShell, "initialized", staticmethod(lambda: True))
    monkeypatch.setattr(InteractiveShell, "instance", staticmethod(lambda: SimpleNamespace(display_pub=publisher)))
    return publisher.outputs


def test_show_gives_a_picture_and_its_words(outputs):
    alt = "Four boxes, and under each a number: «é», ∩."
    assert show(example("tokens"), alt) is None
    [output] = outputs
    assert set(output["data"]) == {"image/png", "text/plain"}
    assert output["data"]["text/plain"] == alt
    png = base64.b64decode(output["data"]["image/png"], validate=True)
    height, width, _ = matplotlib.image.imread(io.BytesIO(png)).shape
    shown = output["metadata"]["image/png"]
    assert shown["alt"] == alt
    assert width / height == pytest.approx(shown["width"] / shown["height"], rel=0.05)
    assert 200 <= shown["width"] <= 1000
    assert width >= shown["width"], "sharp on a fine screen too"


@pytest.mark.parametrize(
    ("fig", "alt", "error", "named"),
    [(Figure(), " \n", ValueError, "alt"), (Figure(), None, TypeError, "alt"), ("a picture", "a", TypeError, "fig")],
)
def test_show_takes_a_figure_and_words(outputs, fig, alt, error, named):
    with pytest.raises(error, match=named):
        show(fig, alt)
    assert outputs == []


def test_outside_a_notebook_the_words_are_shown(capsys):
    show(example("route"), "The way from text to text.")
    assert capsys.readouterr().out == "The way from text to text.\n"


def test_a_figure_of_ones_own_keeps_its_style(outputs, monkeypatch):
    closed = []
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", SimpleNamespace(close=closed.append))
    with style.context("dark_background"), matplotlib.rc_context({"savefig.bbox": "tight"}):
        fig = Figure(figsize=(4, 2))
        fig.add_subplot(position=(0.4, 0.4, 0.2, 0.2))
        show(fig, "a small pair of axes")
    assert closed == [fig], "or the notebook would draw it a second time"
    [output] = outputs
    picture = matplotlib.image.imread(io.BytesIO(base64.b64decode(output["data"]["image/png"])))
    assert picture[0, 0, :3].tolist() == [0, 0, 0]
    shown = output["metadata"]["image/png"]
    assert picture.shape[1] / picture.shape[0] == pytest.approx(shown["width"] / shown["height"], rel=0.02)


# Any settings, any words, numbers of any library

USERS_SETTINGS = {
    "text.usetex": True,
    "font.size": 22,
    "font.family": "monospace",
    "savefig.bbox": "tight",
    "figure.autolayout": True,
    "image.cmap": "gray",
    "image.origin": "lower",
}


def hard_to_read(data):
    """Return numbers as a model does: NumPy knows neither bfloat16 nor gradients."""
    tensor = torch.tensor(data)
    return tensor.bfloat16().requires_grad_() * 1 if tensor.is_floating_point() else tensor


@every_figure
def test_a_figure_is_the_same_under_any_settings_and_from_any_tensor(name):
    """Also: a warning, as of a letter that the font lacks or of words that leave no room, is an error here."""
    fig = example(name)
    with style.context("dark_background"), matplotlib.rc_context(USERS_SETTINGS):
        before = matplotlib.rcParams.copy()
        again = FIGURES[name](WORD, hard_to_read)
        assert [ax.get_xticklabels() for ax in again.axes], "ticks that are looked at have their colour, too"
        assert png_of(again) == png_of(fig)
        assert matplotlib.rcParams.copy() == before
    shown = words(fig)
    assert name in NO_WORDS or any(r"_$\frac$\u306e\U000" in text for text in shown), "as they are, or escaped"
    assert max(map(len, shown)) < 160
    assert max(fig.get_size_inches()) < 20


@pytest.mark.parametrize(
    "kind",
    [np.array, tuple, lambda data: [torch.tensor(number, requires_grad=True) for number in data], iter],
    ids=["array", "tuple", "list of tensors", "iterator"],
)
def test_numbers_of_any_library(kind):
    [ax] = plot_bars({"": kind([0.25, 0.75])}, kind([1.0, 2.0]), "y").axes
    assert [bar.get_height() for bar in ax.patches] == [0.25, 0.75]
    assert tick_words(ax.xaxis) == ["1.0", "2.0"]


def test_drawing_changes_no_data():
    matrix = torch.tensor([[0.5, -math.inf], [0.25, 2.0]])
    plot_matrices({"": matrix}, "x", "y")
    plot_attention({"": matrix}, "ab", "ab")
    assert matrix.tolist() == [[0.5, -math.inf], [0.25, 2.0]]


def test_the_import_touches_nothing(monkeypatch):
    for module in [module for module in sys.modules if module.startswith("utils.plots")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # now it cannot be imported
    before = matplotlib.rcParams.copy()
    importlib.import_module("utils.plots").plot_route("text")
    assert matplotlib.rcParams.copy() == before


@every_figure
def test_every_text_is_readable_where_it_is(name):
    fig = example(name)
    assert to_hex(fig.get_facecolor()) == PAPER
    for ax in fig.axes:
        for text in ax.findobj(Text):
            patch = patch_under(ax, text) if text in ax.texts else None
            ground = to_hex(patch.get_facecolor()) if patch else PAPER
            assert ax.images or contrast(to_hex(text.get_color()), ground) >= 4.5, text.get_text()
        assert to_hex(ax.title.get_color()) not in AXIS_COLOURS.values(), "a colour of an axis kind means that kind"


def test_colours_are_readable():
    assert contrast(PAPER, "#ffffff") == 1
    assert set(AXIS_COLOURS) >= {"batch_size", "num_tokens", "emb_dim", "num_heads", "vocab_size"}
    assert len(set(AXIS_COLOURS.values())) == len(AXIS_COLOURS), "one colour per kind of axis"
    assert min(contrast(colour, PAPER) for colour in AXIS_COLOURS.values()) >= 4.5
    assert len(set(TOKEN_FILLS)) == len(TOKEN_FILLS) >= 2
    assert min(contrast(INK, fill) for fill in TOKEN_FILLS) >= 7


# Data of any size

LARGE = {
    "counts far apart": lambda: plot_counts([6109, 3626, 6100, 345], "x", "y"),
    "attention": lambda: plot_attention({"": torch.eye(60)}, range(60), range(60)),
    "twelve heads": lambda: plot_attention({head: torch.eye(60) for head in range(12)}, range(60), range(60)),
    "bars": lambda: plot_bars({"": torch.rand(240)}, range(240), "y"),
}


@pytest.mark.parametrize("figure", LARGE.values(), ids=LARGE)
def test_a_large_figure_is_thinned(figure):
    """A thing to draw takes about a millisecond; no side of a picture may have 2¹⁶ pixels, or its page many inches."""
    fig = figure()
    assert len(fig.findobj()) < 3000
    assert len(words(fig)) < 750
    assert fig.get_figwidth() < 14
    assert fig.get_figheight() < 35


NAN = math.nan
ENDLESS = range(30_000)
REFUSED = [
    (lambda: plot_route("mask", through="batch"), ValueError, "through.*'batch'"),
    (lambda: plot_route("tokens"), ValueError, "station.*'tokens'.*embeddings"),
    (lambda: plot_tokens([]), ValueError, "texts is empty"),
    (lambda: plot_tokens([([], [])]), ValueError, r"texts\[0\] is empty"),
    (lambda: plot_tokens([(["Every", " effort"], [6109])]), ValueError, r"texts\[0\] has 2 pieces and 1 IDs"),
    (lambda: plot_tokens((["a"], [1])), ValueError, r"texts\[0\] must be a pair"),
    (lambda: plot_tokens([(["a"], ["b"])]), TypeError, "ID.*'b'"),
    (lambda: plot_tokens([("a" * 30_000, ENDLESS)]), ValueError, "30,000 tokens"),
    (lambda: plot_tokens([("abcde", range(5))] * 51), ValueError, "255 tokens"),
    (lambda: plot_counts([], "x", "y"), ValueError, "values is empty"),
    (lambda: plot_counts([1.5, 2], "x", "y"), TypeError, "values.*1.5"),
    (lambda: plot_counts(ENDLESS, "x", "y"), ValueError, "values has 30,000 different"),
    (lambda: plot_merges([]), ValueError, "steps is empty"),
    (lambda: plot_merges([[]]), ValueError, "steps is empty"),
    (lambda: plot_merges([["a"]]), TypeError, "steps.*'a'"),
    (lambda: plot_merges([[b"="] * 64]), ValueError, "steps has 64 bytes"),
    (lambda: plot_merges([[b"a"]] * 10**4), ValueError, "steps has 10,000 pieces"),
    (lambda: plot_merges([[b"a", b"b"], [b"ab"]], {b"a": 1}), ValueError, "ranks has no b'ab'"),
    (lambda: plot_merges([[b"a"]], [1]), TypeError, "ranks.*list"),
    (lambda: plot_predictions([], []), ValueError, "inputs is empty"),
    (lambda: plot_predictions("ab", "abc"), ValueError, "targets has 3 tokens and inputs 2"),
    (lambda: plot_predictions(range(17), range(17)), ValueError, "inputs has 17"),
    (lambda: plot_windows({}, 3), ValueError, "panels is empty"),
    (lambda: plot_windows({"": TokenWindows(range(5000), 4, 4)}, 5000), ValueError, "num_tokens.*5000"),
    (lambda: plot_windows({"": [([0], [1])] * 41}, 3), ValueError, "panels has.* windows"),
    (lambda: plot_windows({"": TokenWindows([6109, 3626, 6100, 345], 2, 2)}, 4), ValueError, "ID.*6109"),
    (lambda: plot_plane({}), ValueError, "panels is empty"),
    (lambda: plot_plane({"": {}}), ValueError, r"panels\[''\] is empty"),
    (lambda: plot_plane({"a": (1, 2)}), TypeError, r"panels\['a'\]"),
    (lambda: plot_plane({"": {"a": (1, 2, 3)}}), ValueError, "'a'.*3"),
    (lambda: plot_plane({"": {"a": (NAN, 2)}}), ValueError, "'a'.*nan"),
    (lambda: plot_plane({"": {"a": (1, 2)}}, arrows="no"), TypeError, "arrows.*'no'"),
    (lambda: plot_plane({"": {"a": (1, 2)}}, reach=-1), ValueError, "reach.*-1"),
    (lambda: plot_plane({"": many(1000)}), ValueError, "1,000 points"),
    (lambda: plot_plane({"a": many(60), "b": many(60)}), ValueError, "panels has 120 points"),
    (lambda: plot_plane({"": {"a": (1, 2)}}, groups={"g": ["b"]}), ValueError, "groups has 'b'"),
    (lambda: plot_plane({"": {"a": (1, 2)}}, groups={"g": ["a"], "h": ["a"]}), ValueError, "groups has 'a' twice"),
    (lambda: plot_plane({"": {"a": (1, 2)}}, groups=["a"]), TypeError, "groups.*list"),
    (lambda: plot_weighted_sum(many(30), {}, "x", "y"), ValueError, "parts has 30"),
    (lambda: plot_weighted_sum({}, {}, "x", "y"), ValueError, "parts is empty"),
    (lambda: plot_weighted_sum(many(1000), {}, "x", "y"), ValueError, "parts has 1,000"),
    (lambda: plot_verdicts([], [], []), ValueError, "verdicts is empty"),
    (lambda: plot_verdicts(3, "a", "b"), TypeError, "verdicts must be a list"),
    (lambda: plot_verdicts(["✓", "✓✗"], "ab", "a"), ValueError, "the row.*'✗'.*as long as the first"),
    (lambda: plot_verdicts(["?"], "a", "b"), ValueError, r"the row \['\?'\]"),
    (lambda: plot_verdicts(["✓"], "ab", "c"), ValueError, "learners has 2 names for 1 rows"),
    (lambda: plot_matrices([torch.eye(2)], "x", "y"), TypeError, "panels.*list"),
    (lambda: plot_matrices({"W": torch.ones(3)}, "x", "y"), ValueError, r"'W'.*2 dimensions.*\(3,\)"),
    (lambda: plot_matrices({"W": torch.ones(0, 3)}, "x", "y"), ValueError, "'W'.*empty"),
    (lambda: plot_matrices({"W": [[1], [1, 2]]}, "x", "y"), ValueError, "'W'.*different lengths"),
    (lambda: plot_matrices({"W": [["a"]]}, "x", "y"), TypeError, "'W'.*numbers"),
    (lambda: plot_matrices({"W": torch.eye(2, device="meta")}, "x", "y"), TypeError, "'W'.*meta"),
    (lambda: plot_matrices({"W": torch.eye(2) * 1j}, "x", "y"), TypeError, "'W'.*complex64"),
    (lambda: plot_matrices({"W": torch.ones(1).expand(2000, 2000)}, "x", "y"), ValueError, "'W'.*4,000,000"),
    (lambda: plot_matrices(dict.fromkeys("abc", np.ones((1000, 1000))), "x", "y"), ValueError, "panels has 3,000,000"),
    (lambda: plot_attention({}, [], []), ValueError, "panels is empty"),
    (lambda: plot_attention({head: torch.eye(2) for head in range(144)}, "ab", "ab"), ValueError, "panels has 144"),
    (lambda: plot_attention({"": torch.ones(2, 3)}, "ab", "ab"), ValueError, "keys has 2 names for 3"),
    (lambda: plot_attention({"": torch.ones(3, 2)}, "ab", "ab"), ValueError, "queries has 2 names for 3"),
    (lambda: plot_attention({"": torch.eye(2)}, "ab", "ab", torch.eye(2)), TypeError, "hidden.*booleans"),
    (lambda: plot_attention({"": torch.eye(2)}, "ab", "ab", torch.eye(3).bool()), ValueError, r"hidden.*\(3, 3\)"),
    (lambda: plot_attention({"": torch.eye(2)}, "ab", "ab", {"a": torch.eye(2)}), ValueError, "hidden.*'a'"),
    (lambda: plot_attention({"": torch.eye(2)}, "ab", "ab", framed=torch.eye(2)), TypeError, "framed.*booleans"),
    (lambda: plot_attention({"": torch.eye(2)}, "ab", "ab", framed={"a": torch.eye(2)}), ValueError, "framed.*'a'"),
    (lambda: plot_flow(), ValueError, "empty.*inputs, queries"),
    (lambda: plot_flow(scores=torch.eye(2)), ValueError, "scores is not.*attn_scores"),
    (lambda: plot_flow(inputs=[[1.0]]), TypeError, "inputs.*list"),
    (lambda: plot_flow(inputs=torch.ones(3)), ValueError, r"inputs.*\(3,\)"),
    (lambda: plot_flow(inputs=torch.ones(6, 3), attn_scores=torch.ones(5, 5)), ValueError, "num_tokens.*attn_scores"),
    (lambda: plot_flow(inputs=torch.ones(6, 3), context_vectors=torch.ones(6, 3)), ValueError, "attn_weights and"),
    (lambda: plot_flow(queries=torch.ones(6, 3), attn_scores=torch.ones(6, 6)), ValueError, "attn_scores.*keys"),
    (lambda: plot_heads(torch.ones(2, 4, 6), 2), ValueError, r"vectors.*\(2, 4, 6\)"),
    (lambda: plot_heads(torch.ones(9, 4), 2), ValueError, "vectors has 9 tokens"),
    (lambda: plot_heads(torch.ones(2, 768), 12), ValueError, "vectors has 768 entries"),
    (lambda: plot_heads(torch.ones(4, 6), 4), ValueError, "num_heads is 4.* 6 entries"),
    (lambda: plot_heads(torch.ones(4, 6), 2.5), TypeError, "num_heads"),
    (lambda: plot_block(torch.nn.Linear(8, 8), 8), TypeError, "block.*norm1.*not Linear"),
    (lambda: plot_block(small_gpt().blocks[0], 16), ValueError, "emb_dim is 16.* 8 entries"),
    (lambda: plot_gpt(small_gpt().blocks[0]), TypeError, "model.*token_embedding.*not TransformerBlock"),
    (lambda: plot_gpt("a model"), TypeError, "model.*not str"),
    (lambda: plot_bars({"": []}, [], "y"), ValueError, "is empty"),
    (lambda: plot_bars({"": [0.5, 0.5]}, ["a"], "y"), ValueError, "names has 1 names for 2"),
    (lambda: plot_bars({"": [NAN]}, ["a"], "y"), ValueError, "panels.*nan"),
    (lambda: plot_bars({"": ENDLESS}, ENDLESS, "y"), ValueError, "30,000"),
    (lambda: plot_bars({"a": range(200), "b": range(200)}, range(200), "y"), ValueError, "400 bars"),
    (lambda: plot_lines({"": {}}, [1], "x"), ValueError, r"panels\[''\] is empty"),
    (lambda: plot_lines({"": {"a": [1, 2, 3]}}, [1, 2], "x"), ValueError, "'a'.* 3 values for 2"),
    (lambda: plot_lines({"": {"a": [1]}}, [0], "x", log_x=True), ValueError, "x holds 0"),
    (lambda: plot_lines({"t": {"a": [-1]}}, [1], "x", log_y=["t"]), ValueError, "'a'.*-1"),
    (lambda: plot_lines({"t": {"a": [1]}}, [1], "x", log_y=["u"]), ValueError, "log_y.*'u'"),
    (lambda: plot_lines({"t": {"a": [1]}}, [1], "x", same_y="no"), TypeError, "same_y.*'no'"),
    (lambda: plot_lines({"": {"a": ENDLESS}}, ENDLESS, "x"), ValueError, "'a'.*30,000"),
    (lambda: plot_lines({"": {n: range(10_000) for n in "abc"}}, range(10_000), "x"), ValueError, "30,000 values"),
    (lambda: shape_ledger(batch=([1, 2], "num_tokens")), TypeError, "batch"),
    (lambda: shape_ledger(batch=(torch.zeros(2, 4), "num_tokens")), ValueError, r"batch.*\(2, 4\)"),
    (lambda: shape_ledger(batch=(torch.zeros(2, 4), "")), ValueError, r"batch.*\(2, 4\)"),
]


@pytest.mark.parametrize(("figure", "error", "named"), REFUSED, ids=[named for _, _, named in REFUSED])
def test_what_cannot_be_drawn_is_named(capsys, figure, error, named):
    with pytest.raises(error, match=named):
        figure()
    assert capsys.readouterr().out == "", "no half table"


# What each figure says


def test_shape_ledger(capsys):
    tensors = {
        "input_ids": (torch.zeros(2, 4), "batch_size, num_tokens"),
        "row": (torch.zeros(50257), "vocab_size"),
        "one_number": (torch.tensor(1.0), ""),
    }
    assert shape_ledger(**tensors) is None
    assert capsys.readouterr().out.splitlines() == [
        "tensor      shape     axes",
        "input_ids   (2, 4)    batch_size, num_tokens",
        "row         (50257,)  vocab_size",
        "one_number  ()",
    ]


@pytest.mark.parametrize(
    ("station", "through", "lit"),
    [("text", None, [0]), ("new text", None, [10]), ("text", "new text", range(11)), ("batch", "mask", range(2, 7))],
)
def test_route(station, through, lit):
    fig = plot_route(station, through)
    [ax] = fig.axes
    assert tuple(notes(ax)) == ROUTE
    assert overlaps(fig) == ([], [])
    assert fig.get_figwidth() <= 5.6, "so that a phone shows it whole"
    ways = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    assert len(ways) == len(ROUTE) - 1
    fills = [to_hex(patch_under(ax, text).get_facecolor()) for text in ax.texts]
    assert [index for index, fill in enumerate(fills) if fill != "#ececec"] == list(lit)


def test_tokens():
    """Boxes of a row are side by side in text order, neighbours of different colours; each ID is under its box."""
    texts = [(["Every", " effort"], [6109, 3626]), (["a", "\n", "∩", r"\xe2"], [64, 198, 22447, 158])]
    texts.append((["word"] * 60, range(60)))
    [ax] = plot_tokens(texts).axes
    shown = ["Every", "␣effort", "a", "↵", "∩", r"\xe2", *["word"] * 60]
    ids = [str(token_id) for _, ids in texts for token_id in ids]
    assert notes(ax) == [text for pair in zip(shown, ids) for text in pair]
    boxes = [box(patch) for patch in ax.patches]
    for (left, bottom, right, _), label, number in zip(boxes, ax.texts[::2], ax.texts[1::2]):
        assert left < label.get_position()[0] == number.get_position()[0] < right
        assert bottom < label.get_position()[1]
        assert bottom > number.get_position()[1]
    fills = [patch.get_facecolor() for patch in ax.patches]
    same_row = [one[1] == other[1] for one, other in pairwise(boxes)]
    for (one, other), (fill, next_fill), same in zip(pairwise(boxes), pairwise(fills), same_row):
        assert (one[2] <= other[0] and fill != next_fill) if same else other[3] < one[1]
    assert [index for index, same in enumerate(same_row) if not same][:2] == [1, 5], "each text starts a row"
    assert same_row.count(False) > 2, "a long text continues on the next row"
    assert all(inside(ax, corner[:2]) and inside(ax, corner[2:]) for corner in boxes), "nothing is cut off"


def test_counts_are_proportions_in_percent():
    [ax] = plot_counts([1, 2, 2, 4], "characters", "percent").axes
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.patches}
    assert bars == {1: 25, 2: 50, 3: 0, 4: 25}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("characters", "percent")
    assert list(ax.get_xticks()) == [1, 2, 3, 4]
    [lines] = example("counts far apart").axes[0].collections
    assert {x: top for (x, _), (_, top) in lines.get_segments()} == {345: 25, 3626: 25, 6100: 25, 6109: 25}


def test_merges():
    [ax] = plot_merges([[b"c", b"a", b"t"], [b"c", b"at"], [b"cat"]]).axes
    assert notes(ax) == ["c", "a", "t", "c", "at", "cat"]
    assert [text.get_position()[1] for text in ax.texts] == [0, 0, 0, 1, 1, 2], "single bytes below, tokens above"
    assert [round(right - left) for left, _, right, _ in map(box, ax.patches)] == [1, 1, 1, 1, 2, 3]
    fills = [to_hex(patch.get_facecolor()) for patch in ax.patches]
    assert [fill == fills[0] for fill in fills] == [True, True, True, True, False, False], "new pieces stand out"
    links = [line.get_xdata() for line in ax.lines]
    assert links == [[0.5, 0.5], [1.5, 2], [2.5, 2], [0.5, 1.5], [2, 1.5]], "each piece goes into one"
    ranks = {b"at": 265, b"cat": 9246}
    [ax] = plot_merges([[b"c", b"a", b"t"], [b"c", b"at"], [b"cat"]], ranks).axes
    aside = [(text.get_text(), text.get_position()[1]) for text in ax.texts if text.get_text().startswith("rank")]
    assert aside == [("rank 265", 1), ("rank 9246", 2)], "beside the step"
    [ax] = plot_merges([[b"\xe2", b"\x88", b" "]]).axes
    assert notes(ax) == [r"\xe2", r"\x88", "␣"]


@pytest.mark.parametrize("stride", [1, 4, 5])
def test_windows(stride):
    windows = TokenWindows(range(10), 4, stride)
    [ax] = plot_windows({f"stride {stride}": windows}, 10).axes
    filled, framed = [], []
    for patch in ax.patches:
        left, bottom, right, top = box(patch)
        (filled if patch.get_fill() else framed).append((round((left + right) / 2), round((bottom + top) / 2)))
    starts = [row * stride for row in range(len(windows))]
    assert filled == [(start + k, row) for row, start in enumerate(starts) for k in range(4)]
    assert framed == [(start + 1 + k, row) for row, start in enumerate(starts) for k in range(4)]
    named = [(text.get_position(), text.get_text()) for text in ax.texts[:-10]]
    assert named == [((start + k, row), str(start + k)) for row, start in enumerate(starts) for k in range(5)]
    seen, inputs = [column for column, _ in filled + framed], [column for column, _ in filled]
    assert notes(ax)[-10:] == [str(inputs.count(column)) if column in seen else "–" for column in range(10)]
    assert (ax.get_title(loc="left"), ax.get_xlabel()) == (f"stride {stride}", "position")
    assert tick_words(ax.xaxis) == [str(column) for column in range(10)]
    assert tick_words(ax.yaxis) == [*(f"window {row}" for row in range(len(windows))), "times an input"]
    assert ax.yaxis_inverted(), "the first window on top"


def test_rows_of_windows_have_one_height():
    fig = plot_windows({"a": TokenWindows(range(40), 4, 2), "b": TokenWindows(range(40), 4, 16)}, 40)
    fig.draw_without_rendering()
    heights = [abs(np.diff(ax.transData.transform([(0, 0), (0, 1)])[:, 1]).item()) for ax in fig.axes]
    assert heights[0] == pytest.approx(heights[1], rel=0.02)
    assert overlaps(fig) == ([], [])
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["input", "target"]


def test_predictions():
    """Prediction i has a bar over the inputs 0 to i, and an arrow down from its end to target i."""
    [ax] = plot_predictions(["Every", " effort", " moves"], [" effort", " moves", 345]).axes
    boxes = [box(patch) for patch in ax.patches]
    inputs, targets, contexts = boxes[::3], boxes[1::3], boxes[2::3]
    assert notes(ax) == ["Every", "␣effort", "␣effort", "␣moves", "␣moves", "345", "input", "context", "target"]
    assert [context[0] for context in contexts] == [inputs[0][0]] * 3
    assert [context[2] for context in contexts] == pytest.approx([token[2] for token in inputs])
    for (tail, head, _), context, target in zip(arrows(ax), contexts, targets):
        assert context[0] < tail[0] == head[0] < context[2]
        assert context[1] < tail[1] < context[3]
        assert target[0] < head[0] < target[2]
        assert context[1] > target[3], "the arrow points down, and crosses no longer bar"
    assert [context[1] for context in contexts] == sorted(context[1] for context in contexts)
    assert overlaps(plot_predictions([" longer"] * 16, range(16))) == ([], [])


def test_a_text_too_short_for_a_window():
    one, other = plot_windows({"no window": [], "one": [([0], [1])]}, 3, labels="abc").axes
    assert notes(one) == ["–"] * 3
    assert notes(other) == ["a", "b", "1", "0", "–"]
    assert other.get_xlabel() == "token"
    assert tick_words(other.xaxis) == ["a", "b", "c"]


def test_plane():
    panels = {"a": {"cat": (1, 2), " dog": (-3, 0.5)}, "b": {"cat": (0, 0), "dog": (0.01, 0), "car": (-1, -1)}}
    fig = plot_plane(panels, xlabel="pets", ylabel="sports")
    for ax, (title, panel) in zip(fig.axes, panels.items()):
        assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == (title, "pets", "sports")
        assert points(ax) == list(panel.values())
        assert all(inside(ax, point) for point in panel.values())
        assert ax.get_aspect() == 1, "a unit is as long on both axes"
        assert ax.get_xlim() == ax.get_ylim() == fig.axes[0].get_xlim()
    assert [notes(ax) for ax in fig.axes] == [["cat", "␣dog"], ["cat, dog", "car"]], "close points share a label"
    assert [tuple(text.xy) for text in fig.axes[1].texts] == [(0, 0), (-1, -1)], "the label is at its points"
    [ax] = plot_plane({"": {f"word{index}": (0, 0) for index in range(4)}}).axes
    assert notes(ax) == ["4 points"]


def test_groups_of_points():
    points_ = {"cat": (1, 1), "dog": (1, -1), "boat": (-1, 1), "the": (-1, -1)}
    fig = plot_plane({"": points_}, groups={"animals": ["cat", "dog"], "things": ["boat"]})
    looks = [(line.get_color(), line.get_marker()) for line in fig.axes[0].lines if len(line.get_xdata()) == 1]
    assert looks[0] == looks[1]
    assert len(set(looks)) == 3
    assert len({colour for colour, _ in looks}) == 3
    [legend] = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == ["animals", "things"]
    assert [(h.get_color(), h.get_marker()) for h in legend.legend_handles] == [looks[0], looks[2]]


def test_arrows_start_at_the_origin():
    panel = {"cat": (1, 2), "dog": (-3, 0.5)}
    [ax] = plot_plane({"": panel}, arrows=True, reach=9).axes
    assert arrows(ax) == [((0, 0), head, False) for head in panel.values()]
    assert ax.get_xlim() == ax.get_ylim() == (-9, 9)
    assert points(ax) == []


@pytest.mark.parametrize("start", [{}, {"b": (-4, 1)}])
def test_weighted_parts_are_laid_end_to_end(start):
    parts = {"a": (1, 2), "b": (1, 0), "c": (-4, 1)}
    [ax] = plot_weighted_sum(parts, start, xlabel="pets", ylabel="sports").axes
    ends = list(accumulate(parts.values(), lambda one, other: (one[0] + other[0], one[1] + other[1]), initial=(0, 0)))
    expected = [((0, 0), ends[-1]), *pairwise(ends)]
    found = arrows(ax)
    assert [(tuple(tail), head) for tail, head, dashed in found if not dashed] == expected
    assert [(tuple(tail), head) for tail, head, dashed in found if dashed] == [((0, 0), b) for b in start.values()]
    assert all(inside(ax, end) for tail, head, _ in found for end in (tail, head)), "else it is not drawn at all"
    assert notes(ax) == ["context vector", *parts, *(f"{name} alone" for name in start)]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_aspect()) == ("pets", "sports", 1)


SUMS = {
    "lesson 4": ({"ticket": (0.03, 0.34), "for": (0.001, 0.001), "horse": (0.46, 0.77), "race": (0.05, 1.4)}, (1.2, 2)),
    "six": ({f"token {i}": (0.1 + 0.02 * i, 0.2 - 0.03 * i) for i in range(6)}, (1, 0.2)),
    "equal": ({f"w{i}": (0.25, 0.25) for i in range(4)}, (1, 1)),
    "nothing": ({"a": (0, 0), "b": (0, 0)}, (1e-9, 0)),
}


@pytest.mark.parametrize(("parts", "start"), SUMS.values(), ids=SUMS)
def test_the_words_of_a_weighted_sum_are_clear(parts, start):
    """No word lies on another, nor on an arrow; a part too short for an arrow's head is a dot at its end."""
    fig = plot_weighted_sum(parts, {"horse": start}, "pets", "sports")
    assert overlaps(fig) == ([], [])
    [ax] = fig.axes
    spans = [np.linspace(tail, head, 200) for tail, head, _ in arrows(ax)]
    for text in ax.texts:
        if text.get_text() and not text.get_rotation():
            extent = text.get_window_extent().padded(-1)
            assert not any(extent.contains(*point) for span in spans for point in ax.transData.transform(span))
    dots = [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == "o"]
    assert len(dots) + len(spans) == len(parts) + 2
    assert len(dots) == {"lesson 4": 1, "nothing": 3}.get(next(k for k, v in SUMS.items() if v[0] is parts), 0)


def test_matrices():
    panels = {"W": torch.tensor([[1.0, 2, 3], [-4, 5, 6]]), "scores": torch.tensor([[1.0, -math.inf], [NAN, 2]])}
    one, other = plot_matrices(panels, xlabel="key", ylabel="query").axes
    assert (one.get_title(), one.get_xlabel(), one.get_ylabel()) == ("W", "key", "query")
    [image] = one.images
    assert image.get_array().tolist() == panels["W"].tolist()
    assert image.get_clim() == (-4, 6), "each on its own scale"
    assert luminance(to_hex(image.cmap(0.0))) > luminance(to_hex(image.cmap(1.0))), "dark is large"
    assert one.yaxis_inverted(), "row 0 on top"
    assert other.images[0].get_array().tolist() == [[1, 1], [None, 2]], "nan is white"
    assert other.images[0].get_alpha().tolist() == [[1, 0], [1, 1]], "−inf shows the hatching behind the map"
    assert ([len(hatched(ax)) for ax in (one, other)], words(one.figure.legends[0])) == ([0, 1], ["−inf"])
    assert [ax.child_axes[0].get_ylim() for ax in (one, other)] == [(-4, 6), (1, 2)], "the scale is beside the map"
    for constant in (torch.ones(2, 3), torch.full((2, 2), NAN)):
        png_of(plot_matrices({"": constant}, "x", "y"))


def test_attention():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.05, 0.95, 0.0]])
    [ax] = plot_attention({"one head": weights}, ["q0", "q1"], ["k0", "k1", "k2"]).axes
    [image] = ax.images
    assert np.allclose(image.get_array(), weights), "one row per query"
    assert image.get_clim() == (0, 1), "whatever the weights are"
    assert tuple(image.get_extent()) == (-0.5, 2.5, 1.5, -0.5), "query 0 on top"
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("one head", "key", "query")
    assert tick_words(ax.xaxis) == ["k0", "k1", "k2"]
    assert tick_words(ax.yaxis) == ["q0", "q1"]
    assert notes(ax) == ["1.00", ".00", ".00", ".05", ".95", ".00"]
    assert [text.get_position() for text in ax.texts] == [(column, row) for row in range(2) for column in range(3)]


def test_hidden_cells_are_hatched_and_have_no_number():
    hidden = torch.tensor([[False, True], [False, False]])
    maps = {"all": torch.full((2, 2), 0.5), "causal": torch.tensor([[1, 0], [0.5, 0.5]])}
    for given, expected in ((hidden, [True, True]), ({"causal": hidden}, [False, True]), (None, [False, False])):
        fig = plot_attention(maps, "ab", "ab", given)
        assert [len(hatched(ax)) == 1 for ax in fig.axes] == expected
        assert [len(notes(ax)) for ax in fig.axes] == [3 if is_hidden else 4 for is_hidden in expected]
        assert [words(legend) for legend in fig.legends] == [["hidden from the query"]] * any(expected)
    ax = plot_attention(maps, "ab", "ab", hidden).axes[1]
    assert box(hatched(ax)[0]).tolist() == [-0.5, -0.5, 1.5, 1.5]
    assert ax.images[0].get_alpha().tolist() == (~hidden).float().tolist(), "only these cells show the hatching"


def test_marked_cells_have_a_frame():
    framed = torch.tensor([[False, True], [False, False]])
    maps = {"head 0": torch.eye(2), "head 1": torch.eye(2)}
    for given, expected in ((framed, [1, 1]), ({"head 1": framed}, [0, 1]), (None, [0, 0])):
        axes = plot_attention(maps, "ab", "ab", framed=given).axes
        assert [len(ax.patches) for ax in axes] == expected
        assert all(len(notes(ax)) == 4 for ax in axes), "each keeps its number"
    (frame,) = plot_attention(maps, "ab", "ab", framed=framed).axes[0].patches
    assert np.allclose(box(frame), [0.54, -0.46, 1.46, 0.46]), "row 0, column 1"


def flow_tensors(lead=(), heads=(), tokens=6, d_in=3, d_out=2):
    """Return every tensor of the diagram, all ones, with the given batch_size and num_heads."""
    both = (*lead, *heads)
    pairs = dict.fromkeys(("attn_scores", "masked_scores", "attn_weights", "dropped_weights"), (*both, tokens, tokens))
    projected = dict.fromkeys(("queries", "keys", "values"), (*both, tokens, d_out))
    whole = (*lead, tokens, d_out * math.prod(heads))
    shapes = {"inputs": (*lead, tokens, d_in), **projected, **pairs, "context_vectors": (*both, tokens, d_out)}
    return {name: torch.ones(1).expand(shape) for name, shape in (shapes | {"merged": whole, "outputs": whole}).items()}


LESSONS = {
    "4": "inputs attn_scores attn_weights context_vectors",
    "5": "inputs queries keys values attn_scores attn_weights context_vectors",
    "6": "inputs queries keys values attn_scores masked_scores attn_weights context_vectors",
    "7": "attn_scores masked_scores attn_weights dropped_weights",
    "8": "inputs queries keys values attn_scores attn_weights dropped_weights context_vectors merged outputs",
    "values": "values attn_weights context_vectors",
}
SIZES = {
    "one text": {},
    "batch": {"lead": (8,), "tokens": 1024, "d_in": 768, "d_out": 64},
    "heads": {"lead": (8,), "heads": (12,), "tokens": 1024, "d_in": 768, "d_out": 64},
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("names", LESSONS.values(), ids=LESSONS)
def test_flow(names, size):
    tensors = {name: tensor for name, tensor in flow_tensors(**size).items() if name in names.split()}
    if "values" not in tensors and "inputs" in tensors:  # simple attention: no projections, so no heads
        lead = tensors["inputs"].shape[:-2]
        tensors = {name: torch.ones(1).expand(*lead, *tensor.shape[-2:]) for name, tensor in tensors.items()}
        tensors["context_vectors"] = tensors["inputs"]
    fig = plot_flow(**dict(reversed(tensors.items())))
    [ax] = fig.axes
    assert overlaps(fig) == ([], [])
    assert fig.get_figwidth() <= 5.5
    titles = [" ".join(note.split("\n")) for note in notes(ax)]
    drawn = [title for title in titles if title.split(" ")[0] in tensors and title.endswith(")") and "@" not in title]
    assert drawn == [f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items()], "from top to bottom"
    by_colour = {text.get_text().split()[0]: to_hex(text.get_color()) for text in ax.texts if "_" in text.get_text()}
    for axis in by_colour.keys() & {*AXIS_COLOURS, "d_in", "d_out", "head_dim"}:
        assert by_colour[axis] == AXIS_COLOURS.get(axis, AXIS_COLOURS["emb_dim"])
    assert ("num_heads" in by_colour) is any(tensor.dim() == 4 for tensor in tensors.values())
    assert len(ax.images) == (0 if size else len(tensors)), "numbers only of a small matrix"


def test_flow_says_what_each_tensor_is_made_of():
    tensors = flow_tensors()
    simple = {name: tensors[name] for name in LESSONS["4"].split() if name != "context_vectors"}
    simple["context_vectors"] = tensors["inputs"]
    shown = notes(plot_flow(**simple).axes[0])
    assert {"inputs @ inputs.T", "softmax per row", "attn_weights @ inputs"} <= set(shown)
    assert {"queries @ keys.T", "dropped_weights @ values", "÷ √head_dim, softmax per row"} <= set(
        notes(plot_flow(**tensors).axes[0])
    )
    masked = tensors["masked_scores"].masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf)
    [ax] = plot_flow(masked_scores=masked).axes
    assert len(hatched(ax)) == 1
    heads = {name: t for name, t in flow_tensors((2,), (3,)).items() if name in ("queries", "keys", "attn_scores")}
    assert "queries @ keys.transpose(-2, -1)" in notes(plot_flow(**heads).axes[0])


def test_numbers_are_readable_on_any_cell():
    """The two sides of each step of the colours, a mask, and after dropout or of a hidden row 2 and nan."""
    steps = torch.arange(257, dtype=torch.float64) / 256
    values = torch.cat([(steps - 1e-7).clamp(0, 1), (steps + 1e-7).clamp(0, 1)])
    for row in (*values[220:].split(400), torch.tensor([True, False]), torch.tensor([2.0, NAN])):
        [ax] = plot_attention({"": row[None]}, "q", range(len(row))).axes
        [image] = ax.images
        for text in ax.texts:
            weight = row[text.get_position()[0]].item()
            cell = PAPER if math.isnan(weight) else to_hex(image.cmap(image.norm(float(weight))))
            assert contrast(to_hex(text.get_color()), cell) >= 4.5, text.get_text()
    assert notes(ax) == ["2.00", "nan"]


def test_wide_maps_stand_one_above_the_other():
    for side, grid in ((4, (1, 2)), (11, (2, 1))):
        maps = {f"head {head}": torch.eye(side) for head in range(2)}
        fig = plot_attention(maps, range(side), range(side))
        assert [ax.get_title() for ax in fig.axes] == list(maps)
        assert fig.axes[0].get_gridspec().get_geometry() == grid
        assert fig.get_figwidth() <= 11, "no wider than a page"


@pytest.mark.parametrize(("tokens", "num_heads"), [(torch.arange(24).view(4, 6), 2), (torch.randn(8, 32), 8)])
def test_heads(tokens, num_heads):
    """Each head has its own part of each token, in one colour, and the join has all as they were."""
    fig = plot_heads(tokens, num_heads)
    [ax] = fig.axes
    assert overlaps(fig) == ([], [])
    assert fig.get_figwidth() <= 5.5
    (num_tokens, d_out), head_dim = tokens.shape, tokens.shape[1] // num_heads
    shapes = [note for note in notes(ax) if note.startswith("(")]
    assert shapes == [str(s) for s in ((num_tokens, d_out), (num_heads, num_tokens, head_dim), (num_tokens, d_out))]
    cells = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    fills = [to_hex(cell.get_facecolor()) for cell in cells]
    assert len(cells) == 3 * tokens.numel()
    assert all(len({*part}) == 1 for part in zip(*[iter(fills)] * num_tokens * head_dim)), "a colour per head"
    assert fills[: tokens.numel()] == fills[tokens.numel() : 2 * tokens.numel()] == fills[2 * tokens.numel() :]
    if not tokens.is_floating_point():
        numbers = [int(note) for note in notes(ax) if note.isdigit()]
        assert numbers == 3 * tokens.view(num_tokens, num_heads, head_dim).transpose(0, 1).flatten().tolist()


@pytest.mark.parametrize("emb_dim", [8, 768])
def test_block(emb_dim):
    block = small_gpt(emb_dim, device="meta").blocks[0]
    fig = plot_block(block, emb_dim)
    [ax] = fig.axes
    assert overlaps(fig) == ([], [])
    assert fig.get_figwidth() <= 5.5
    shown = notes(ax)
    for name, layer in block.named_children():
        if name != "dropout":
            assert f"{sum(p.numel() for p in layer.parameters()):,} parameters" == shown[shown.index(name) + 1]
    assert f"{sum(p.numel() for p in block.parameters()):,} parameters in all" in shown
    assert f"W_query, W_key, W_value, out_proj {emb_dim} → {emb_dim}" in shown
    assert f"widen {emb_dim} → {4 * emb_dim:,}, GELU, narrow {4 * emb_dim:,} → {emb_dim}" in shown
    assert shown.count("+") == shown.count("dropout") == 2
    stream = next(line for line in ax.lines if len(line.get_xdata()) == 2)
    sums = [patch.center for patch in ax.patches if isinstance(patch, Circle)]
    assert {x for x, _ in sums} == {*stream.get_xdata()}, "the stream is straight, and what is added is added to it"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("n_layers", [1, 2, 12])
def test_gpt(n_layers, tied):
    model = small_gpt(768, n_layers, tied, device="meta")
    fig = plot_gpt(model)
    [ax] = fig.axes
    assert overlaps(fig) == ([], [])
    assert fig.get_figwidth() <= 5.5
    shown = notes(ax)
    numbers = [int(note.split()[0].replace(",", "")) for note in shown if note.endswith(" parameters")]
    total = sum(p.numel() for p in model.parameters())
    assert sum(numbers) - numbers[3] - numbers[4] == total, "the parts, where the first block is drawn in parts, too"
    assert f"{total:,} parameters in all" in shown
    assert ("tied: the same table" in shown) is ("no parameters of its own" in shown) is tied
    assert [note for note in shown if note.startswith("blocks")] == [
        "blocks[0]",
        *{1: [], 2: ["blocks[1]"], 12: ["blocks[1] to blocks[11]"]}[n_layers],
    ]


def test_bars():
    panels = {"a": [0.25, 0.5, 0.75], "b": [1.0, 0.0, -0.5]}
    fig = plot_bars(panels, range(3), "weight", "key")
    for ax, (title, values) in zip(fig.axes, panels.items()):
        assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == (title, "key", "weight")
        assert [round(bar.get_x() + bar.get_width() / 2, 6) for bar in ax.patches] == [0, 1, 2]
        assert [bar.get_height() for bar in ax.patches] == values
        assert notes(ax) == [f"{value:.2g}".replace("-", "−") for value in values]
        assert ax.get_ylim() == pytest.approx((-0.65, 1.15)), "one scale for all"
        assert tick_words(ax.xaxis) == ["0", "1", "2"]


def test_bars_with_long_names():
    for words, values in (("␣forward", [0.21, 0.0034, 1e-9]), ("a, b", [-0.123] * 12), ("long name", [1234567.0] * 12)):
        fig = plot_bars({"": values}, [words] * len(values), "probability")
        assert overlaps(fig) == ([], [])
    for length in (1, 4, 6, 8, 30):
        assert overlaps(plot_bars({"": [0.5] * 8}, ["x" * length] * 8, "y")) == ([], [])
    assert notes(fig.axes[0])[0] == "1,234,567"
    assert {label.get_rotation() for label in fig.axes[0].get_xticklabels()} == {90}
    assert notes(plot_bars({"": [0.5] * 13}, range(13), "y").axes[0]) == [], "too many for numbers"


def test_stacks_lie_on_each_other_and_have_their_sum_above():
    [ax] = plot_stacks({"weights": [1, 2], "logits": [0.5, 6]}, ["1", "8"], "GB", "windows").axes
    assert [[(bar.get_y(), bar.get_height()) for bar in bars] for bars in ax.containers] == [
        [(0, 1), (0, 2)],
        [(1, 0.5), (2, 6)],
    ]
    assert notes(ax) == ["1.5", "8.0"]
    assert tick_words(ax.xaxis) == ["1", "8"]
    assert len({bars[0].get_hatch() for bars in ax.containers}) == 2, "no part depends on colour alone"
    with pytest.raises(ValueError, match="cannot be negative"):
        plot_stacks({"weights": [-1.0]}, ["1"], "GB")


@pytest.mark.parametrize("tied", [True, False])
def test_parallel_names_what_each_device_holds_and_sends(tied):
    model = small_gpt(n_layers=3, tie_weights=tied)
    [ax] = plot_parallel(model, 4, 16).axes
    found = notes(ax)
    starts = [found.index(title) for title in ("Data parallel", "Tensor parallel", "Pipeline parallel")]
    data, tensor, pipeline = (found[a:b] for a, b in zip(starts, [*starts[1:], None]))
    block = sum(p.numel() for p in model.blocks[0].parameters())
    assert data.count("blocks[0]") == 2
    assert data.count(f"{block:,}") == 6
    assert f"{sum(p.numel() for p in model.parameters()):,}" in data[-1]
    assert {"rows 0 to 1", "rows 2 to 3"} <= {*data}
    half = sum(p.numel() // (1 + (p.dim() == 2 or name.endswith("widen.bias")))
               for name, p in model.blocks[0].named_parameters())  # fmt: skip
    assert tensor.count("½ blocks[2]") == 2
    assert tensor.count(f"{half:,}") == 6
    assert f"{4 * 16 * 8}" in tensor[-1]
    first, second = pipeline[: pipeline.index("device 1")], pipeline[pipeline.index("device 1") :]
    assert {"embedding", "blocks[0]", "blocks[1]"} <= {*first}
    assert {"blocks[2]", "final_norm", "out_head"} <= {*second}


def test_lines():
    x = [4, 16, 64]
    panels = {"variance": {"as they are": [4.0, 16.0, 64.0], "_": [1.0, 1.0, 1.0]}, "entropy": {"all": [3, NAN, 1]}}
    fig = plot_lines(panels, x, "head_dim", log_x=True, log_y=["variance"])
    for ax, (title, lines) in zip(fig.axes, panels.items()):
        assert (ax.get_title(), ax.get_xlabel(), ax.get_xscale()) == (title, "head_dim", "log")
        assert [line.get_xdata().tolist() for line in ax.lines] == [x] * len(lines)
        assert all(np.array_equal(line.get_ydata(), lines[name], equal_nan=True) for line, name in zip(ax.lines, lines))
        assert [text.get_text() for text in ax.get_legend().get_texts()] == list(lines)
        assert ax.xaxis.get_transform().base == 2, "doublings"
    assert [ax.get_yscale() for ax in fig.axes] == ["log", "linear"]


def test_panels_of_lines_with_one_scale():
    panels = {"small": {"a": [1, 2]}, "large": {"a": [10, 20]}}
    for same_y in (True, False):
        one, other = plot_lines(panels, [1, 2], "x", same_y=same_y).axes
        assert (one.get_ylim() == other.get_ylim()) is same_y


def test_no_line_depends_on_colour_alone():
    [ax] = plot_lines({"": {name: [1, 2] for name in range(12)}}, [1, 2], "x").axes
    looks = [(line.get_linestyle(), line.get_marker(), line.get_color()) for line in ax.lines]
    assert len(set(looks)) == 12
    assert [len(set(look)) for look in zip(*looks[:4])] == [4, 4, 4]
    assert min(contrast(to_hex(line.get_color()), PAPER) for line in ax.lines) >= 3


def test_verdicts_differ_in_more_than_colour():
    [ax] = plot_verdicts(["✓✗… ", "✗✗✓✓"], ["a", "b"], ["4.A", "4.B", "4.1", "4.2"]).axes
    signs = {line.get_marker(): [*zip(*line.get_data())] for line in ax.lines if len(line.get_xdata())}
    assert signs == {"x": [(1, 0), (0, 1), (1, 1)], ".": [(2, 0)]}
    table = ax.images[0].get_array().tolist()
    assert table == [[0, 1, 2, 3], [1, 1, 0, 0]]
    assert [*map(tick_words, (ax.yaxis, ax.xaxis))] == [["a", "b"], ["4.A", "4.B", "4.1", "4.2"] * 2]  # above, too
