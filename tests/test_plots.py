"""utils.plots against its contract: what is drawn, never how it looks to the pixel."""

import base64
import io
import math
import os
import subprocess
import sys
from itertools import accumulate, pairwise
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
from matplotlib import style
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from utils import plots
from utils.batches import TokenWindows
from utils.plots import (
    AXIS_COLOURS,
    INK,
    PAPER,
    ROUTE,
    TOKEN_FILLS,
    as_png,
    plot_attention,
    plot_bars,
    plot_counts,
    plot_lines,
    plot_matrices,
    plot_merges,
    plot_plane,
    plot_route,
    plot_tokens,
    plot_weighted_sum,
    plot_windows,
    shape_ledger,
    show,
)
from utils.tokenizer import bpe_merge_steps, text_to_ids, token_texts

few = settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.too_slow])
coordinates = st.integers(-12, 12).map(lambda quarters: quarters / 4)
weights = st.floats(0, 1, width=32)


def tokens(*texts):
    return [(token_texts(text_to_ids(text)), text_to_ids(text).tolist()) for text in texts]


def box(patch):
    """Return where a patch lies, in the numbers of its axes: left, bottom, right, top."""
    return patch.get_path().get_extents(patch.get_patch_transform()).extents


def patch_under(ax, x, y):
    """Return the filled patch that covers a point, or None."""
    for patch in ax.patches:
        left, bottom, right, top = box(patch)
        if patch.get_fill() and left <= x <= right and bottom <= y <= top:
            return patch
    return None


def labels(ax, patched=True):
    """Return the texts on a patch (or those on the paper), in the order drawn."""
    return [text.get_text() for text in ax.texts if (patch_under(ax, *text.get_position()) is not None) == patched]


def luminance(colour):
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it: 1 (none) to 21 (black on white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def drawn(fig):
    """Draw a figure for good, so that what goes wrong only then (a formula, a missing letter) goes wrong here."""
    fig.savefig(io.BytesIO(), format="png", dpi=40)
    return fig


def names(number):
    return [f"name {place}" for place in range(number)]


def arrows(ax):
    """Return what each arrow of a figure is: tail, head, whether it is dashed."""
    found = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    return [(text.get_position(), text.xy, text.arrow_patch.get_linestyle() != "-") for text in found]


def points(ax):
    return [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == "o"]


def words(ax):
    """Return the texts of a figure that have a word to say."""
    return [text.get_text() for text in ax.texts if text.get_text()]


def tick_words(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def bars(ax):
    """Return left, right and height of each bar."""
    return [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in ax.patches]


def inside(ax, point):
    (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    return left <= point[0] <= right and bottom <= point[1] <= top


def facts(fig):
    """Return all that a figure's data says."""
    return [
        (
            (ax.get_title(), ax.get_xlabel(), ax.get_ylabel(), ax.get_xlim(), ax.get_ylim(), ax.get_xscale()),
            (tick_words(ax.xaxis), tick_words(ax.yaxis), ax.get_yscale()),
            [line.get_xydata().tolist() for line in ax.lines],
            [(text.get_text(), tuple(text.get_position()), tuple(getattr(text, "xy", ()))) for text in ax.texts],
            [image.get_array().tolist() for image in ax.images],
            bars(ax),
        )
        for ax in fig.axes
    ]


# Each number is one that bfloat16 has exactly.
OF_NUMBERS = {
    "points": lambda as_kind: plot_plane({"before": {"cat": as_kind([0.25, -0.5]), "dog": as_kind([2.0, 1.0])}}),
    "arrows": lambda as_kind: plot_plane(
        {"": {"cat": as_kind([0.25, -0.5]), " dog": as_kind([2.0, 1.0])}}, arrows=True
    ),
    "weighted sum": lambda as_kind: plot_weighted_sum(
        {"a": as_kind([0.25, 0.5]), "b": as_kind([1.0, 0.25])}, {"a": as_kind([0.5, 1.0])}, "pets", "sports"
    ),
    "matrices": lambda as_kind: plot_matrices({"W": as_kind([[0.25, -3.0], [1.0, 2.0]])}, "columns", "rows"),
    "attention": lambda as_kind: plot_attention({"": as_kind([[0.25, 0.75], [0.5, 0.5]])}, ["a", "b"], ["a", "b"]),
    "bars": lambda as_kind: plot_bars({"": as_kind([0.25, 0.75])}, ["a", "b"], "weight"),
    "lines": lambda as_kind: plot_lines({"": {"loss": as_kind([0.5, 2.0])}}, as_kind([1.0, 4.0]), "step"),
}
EXAMPLES = {
    "route": lambda: plot_route("batch"),
    "tokens": lambda: plot_tokens(tokens("Every effort moves you", "∩\nZoë", "pdt magr")),
    "counts": lambda: plot_counts([1, 2, 2, 4], "characters", "percent"),
    "merges": lambda: plot_merges(bpe_merge_steps(" effort")),
    "windows": lambda: plot_windows({"stride 4": TokenWindows(range(10), 4, 4)}, 10),
} | {name: lambda draw=draw: draw(torch.tensor) for name, draw in OF_NUMBERS.items()}
every_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


# show


@pytest.fixture
def outputs(monkeypatch):
    """What a notebook's cell would hold: the real `display`, published to a list."""
    publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(InteractiveShell, "initialized", staticmethod(lambda: True))
    monkeypatch.setattr(InteractiveShell, "instance", staticmethod(lambda: SimpleNamespace(display_pub=publisher)))
    return publisher.outputs


def test_show_gives_a_picture_and_its_words(outputs):
    fig = EXAMPLES["tokens"]()
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


# Nothing global is touched, and nothing global is seen

IMPORT = """
import sys
import matplotlib
before = matplotlib.rcParams.copy()
import utils.plots
assert "matplotlib.pyplot" not in sys.modules, "pyplot is imported"
utils.plots.as_png(utils.plots.plot_lines({"": {"a": [1, 2]}}, [1, 2], "x", log_x=True))
assert "matplotlib.pyplot" not in sys.modules, "pyplot is imported by drawing"
assert matplotlib.rcParams.copy() == before, "rcParams are changed"

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


USERS_SETTINGS = {
    "text.usetex": True,
    "text.color": "white",
    "font.size": 22,
    "axes.facecolor": "red",
    "axes.grid": True,
    "savefig.bbox": "tight",
    "savefig.facecolor": "black",
    "figure.autolayout": True,
    "xtick.minor.visible": True,
    "ytick.color": "white",
    "image.cmap": "gray",
    "image.origin": "lower",
}


@every_example
def test_a_figure_is_the_same_under_any_settings(example):
    png = as_png(example())
    with style.context("dark_background"), matplotlib.rc_context(USERS_SETTINGS):
        before = matplotlib.rcParams.copy()
        fig = example()
        assert [ax.get_xticklabels() for ax in fig.axes], "ticks that are looked at have their colour, too"
        assert as_png(fig) == png
        assert matplotlib.rcParams.copy() == before


def test_a_figure_of_ones_own_keeps_its_style(outputs):
    with style.context("dark_background"), matplotlib.rc_context({"savefig.bbox": "tight"}):
        fig = Figure(figsize=(4, 2))
        fig.add_subplot(position=(0.4, 0.4, 0.2, 0.2))
        show(fig, "a small pair of axes")
    png = base64.b64decode(outputs[0]["data"]["image/png"])
    shown = outputs[0]["metadata"]["image/png"]
    height, width, _ = (picture := matplotlib.image.imread(io.BytesIO(png))).shape
    assert picture[0, 0, :3].tolist() == [0, 0, 0]
    assert width / height == pytest.approx(shown["width"] / shown["height"], rel=0.02), "cropped, not stretched"


@pytest.mark.parametrize("draw", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_drawing_changes_no_data(draw):
    given_data = []

    def as_kind(data):
        given_data.append((torch.tensor(data), torch.tensor(data)))
        return given_data[-1][0]

    drawn(draw(as_kind))
    assert all(torch.equal(now, then) for now, then in given_data)


# Colours


def test_colours_are_readable():
    assert contrast(PAPER, "#ffffff") == 1
    assert set(AXIS_COLOURS) >= {"batch_size", "num_tokens", "emb_dim", "num_heads", "vocab_size"}
    assert len(set(AXIS_COLOURS.values())) == len(AXIS_COLOURS), "one colour per kind of axis"
    assert min(contrast(colour, "#ffffff") for colour in AXIS_COLOURS.values()) >= 4.5
    assert len(set(TOKEN_FILLS)) == len(TOKEN_FILLS) >= 2
    assert min(contrast(INK, fill) for fill in TOKEN_FILLS) >= 7


@every_example
def test_every_text_is_readable_where_it_is(example):
    fig = example()
    assert to_hex(fig.get_facecolor()) == PAPER
    for ax in fig.axes:
        legend = ax.get_legend().get_texts() if ax.get_legend() else []
        ticks = (*ax.get_xticklabels(), *ax.get_yticklabels())
        for text in (*ticks, *legend, *([] if ax.images else ax.texts), ax.title, ax.xaxis.label, ax.yaxis.label):
            patch = patch_under(ax, *text.get_position()) if text in ax.texts else None
            ground = to_hex(patch.get_facecolor()) if patch else PAPER
            assert contrast(to_hex(text.get_color()), ground) >= 4.5, text.get_text()
        assert to_hex(ax.title.get_color()) not in AXIS_COLOURS.values(), "a colour of an axis kind means that kind"


# Words of any kind

WORDS = {
    "tokens": lambda word: plot_tokens([([word], [0])]),
    "merges": lambda word: plot_merges([[word.encode("utf-8", "surrogatepass")]]),
    "counts": lambda word: plot_counts([1], word, word),
    "windows": lambda word: plot_windows({word: TokenWindows(range(3), 1, 1)}, 3, labels=[word, 7, "c"]),
    "points": lambda word: plot_plane({word: {word: (1, 2), "b": (-1, 2)}}, xlabel=word, ylabel=word),
    "arrows": lambda word: plot_plane({"": {word: (1, 2), 7: (1, 2)}}, arrows=True),
    "weighted sum": lambda word: plot_weighted_sum({word: (1, 2)}, {word: (2, 1)}, word, word),
    "matrices": lambda word: plot_matrices({word: torch.eye(2)}, word, word),
    "attention": lambda word: plot_attention({word: torch.eye(2)}, [word, 7], [torch.tensor(7), word]),
    "bars": lambda word: plot_bars({word: [0.5, 1]}, [word, 7], word),
    "lines": lambda word: plot_lines({word: {word: [1, 2], 7: [1, 1]}}, [1, 2], word),
}


@pytest.mark.parametrize("figure", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (r"$\frac$", r"$\frac$"),  # as a formula it would be an error
        ("_の👍ש\t", r"_\u306e\U0001f44d\u05e9\t"),
    ],
)
def test_words_are_drawn_as_they_are_or_spelt_out(figure, word, shown):
    """A warning, as of a letter that the font lacks, is an error here."""
    fig = drawn(figure(word))
    found = [text for text in fig.findobj(Text) if text.get_text()]
    assert any(shown in text.get_text() for text in found)
    assert not any(text.get_parse_math() for text in found if "$" in text.get_text())
    assert all(word == shown or word not in text.get_text() for text in found), "the same throughout"


@pytest.mark.parametrize("figure", WORDS.values(), ids=WORDS)
def test_long_words_are_cut_and_leave_room_for_the_figure(figure):
    """Matplotlib warns where words leave none."""
    fig = figure("w" * 32 if figure is WORDS["merges"] else "long words " * 200)
    fig.draw_without_rendering()
    assert max(len(text.get_text()) for text in fig.findobj(Text)) < 250
    assert max(fig.get_size_inches()) < 20


def test_every_line_has_its_name():
    [ax] = plot_lines({"": {"_a": [1, 2], "": [2, 1], "b": [0, 0]}}, [1, 2], "x").axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["_a", "", "b"]


# Data of any kind and size

KINDS = {
    "float32 tensor": torch.tensor,
    "float32 tensor with gradient": lambda data: torch.tensor(data, requires_grad=True),
    "float64 tensor": lambda data: torch.tensor(data, dtype=torch.float64),
    "bfloat16 tensor": lambda data: torch.tensor(data, dtype=torch.bfloat16),
    "result of a model": lambda data: torch.tensor(data, requires_grad=True) * 1,
    "array": np.array,
    "tuple": lambda data: tuple(map(tuple, data)) if isinstance(data[0], list) else tuple(data),
}


@pytest.fixture(autouse=True)
def _torch_warns_each_time():
    """Not only once a process: a warning is an error here, whichever test comes first."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("draw", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_data_of_any_library_is_drawn_the_same(draw, kind):
    fig = draw(kind)
    assert isinstance(fig, Figure)
    assert facts(fig) == facts(draw(list))


def many(number):
    return dict(enumerate(torch.randn(number, 2, generator=torch.Generator().manual_seed(0))))


LARGE = {
    "counts far apart": lambda: plot_counts([6109, 3626, 6100, 345], "x", "y"),
    "counts of a vocabulary": lambda: plot_counts(range(50_257), "x", "y"),
    "tokens": lambda: plot_tokens(tokens("Every effort moves you. " * 40)),
    "merges": lambda: plot_merges(bpe_merge_steps("antidisestablishmentarianism")),
    "windows": lambda: plot_windows({"": TokenWindows(range(40), 16, 1)}, 40),
    "points": lambda: plot_plane({"": many(1000)}),
    "arrows": lambda: plot_plane({"": many(100)}, arrows=True),
    "weighted sum": lambda: plot_weighted_sum(many(60), many(20), "x", "y"),
    "matrix": lambda: plot_matrices({"": torch.randn(1024, 1024)}, "x", "y"),
    "attention": lambda: plot_attention({"": torch.eye(60)}, range(60), range(60)),
    "twelve heads": lambda: plot_attention({head: torch.eye(20) for head in range(12)}, range(20), range(20)),
    "bars": lambda: plot_bars({"": torch.rand(50_257)}, range(50_257), "y"),
    "lines": lambda: plot_lines({"": {"a": range(100_000)}}, range(100_000), "x"),
}


@pytest.mark.parametrize("figure", LARGE.values(), ids=LARGE)
def test_a_large_figure_is_thinned(figure):
    """A thing to draw takes about a millisecond; no side of a picture may have 2¹⁶ pixels, or its page many inches."""
    fig = figure()
    assert len(fig.findobj()) < 3000
    assert len([text for text in fig.findobj(Text) if text.get_text()]) < 750
    assert fig.get_figwidth() < 14
    assert fig.get_figheight() < 35


def test_of_thousands_of_bars_the_longest_are_seen():
    values = torch.zeros(5000)
    values[1234], values[4321] = 1, -0.5
    [ax] = plot_bars({"": values}, range(5000), "y").axes
    outlines = [patch.get_data() for patch in ax.patches]
    assert [float(abs(outline.values).max()) for outline in outlines] == [1, 0.5]
    assert ax.get_ylim() == (-0.5, 1)


def test_points_too_many_for_names():
    [ax] = plot_plane({"": many(101)}).axes
    assert words(ax) == []
    [line] = [line for line in ax.lines if line.get_marker() == "o"]
    assert np.allclose(line.get_xydata(), np.stack(list(many(101).values())))


NAN = math.nan
REFUSED = [
    (lambda: plot_counts([], "x", "y"), ValueError, "values is empty"),
    (lambda: plot_counts([1.5, 2], "x", "y"), TypeError, "values.*1.5"),
    (lambda: plot_counts(["1"], "x", "y"), TypeError, "values.*'1'"),
    (lambda: plot_counts([10**400], "x", "y"), ValueError, "values"),
    (lambda: plot_counts(torch.ones(3, device="meta"), "x", "y"), ValueError, "values.*meta"),
    (lambda: plot_tokens([]), ValueError, "texts is empty"),
    (lambda: plot_tokens([(["Every", " effort"], [6109])]), ValueError, r"texts\[0\] has 2 pieces and 1 IDs"),
    (lambda: plot_tokens((["a"], [1])), ValueError, r"texts\[0\] must be a pair"),
    (lambda: plot_tokens([(["a"], ["b"])]), TypeError, "ID.*'b'"),
    (lambda: plot_tokens([("a" * 500, [1] * 500)]), ValueError, "texts has 500 tokens"),
    (lambda: plot_merges([]), ValueError, "steps is empty"),
    (lambda: plot_merges([["a"]]), TypeError, "steps.*'a'"),
    (lambda: plot_merges([[b"="] * 64]), ValueError, "steps has 64 bytes"),
    (lambda: plot_windows({}, 3), ValueError, "panels is empty"),
    (lambda: plot_windows({"": TokenWindows(range(5000), 4, 4)}, 5000), ValueError, "num_tokens.*5000"),
    (lambda: plot_windows({"": TokenWindows([6109, 3626, 6100, 345], 2, 2)}, 4), ValueError, "ID.*6109"),
    (lambda: plot_windows({"": TokenWindows(range(3), 1, 1)}, 3, ["a"]), ValueError, "labels has 1"),
    (lambda: plot_plane({}), ValueError, "panels is empty"),
    (lambda: plot_plane({"a": (1, 2)}), TypeError, r"panels\['a'\]"),
    (lambda: plot_plane({"": {"a": (1, 2, 3)}}), ValueError, "'a'.*3"),
    (lambda: plot_plane({"": {"a": (NAN, 2)}}), ValueError, "'a'.*nan"),
    (lambda: plot_plane({"": {"a": (1, 2)}}, arrows="no"), TypeError, "arrows.*'no'"),
    (lambda: plot_plane({"": {"a": (1, 2)}}, reach=-1), ValueError, "reach.*-1"),
    (lambda: plot_plane({"": many(1000)}, arrows=True), ValueError, "panels has 1,000 arrows"),
    (lambda: plot_weighted_sum({}, {}, "x", "y"), ValueError, "parts is empty"),
    (lambda: plot_weighted_sum({"a": (math.inf, 0)}, {}, "x", "y"), ValueError, "parts.*inf"),
    (lambda: plot_weighted_sum(many(1000), {}, "x", "y"), ValueError, "parts has 1,000"),
    (lambda: plot_matrices([torch.eye(2)], "x", "y"), TypeError, "panels.*list"),
    (lambda: plot_matrices({"W": torch.ones(3)}, "x", "y"), ValueError, r"'W'.*2 dimensions.*\(3,\)"),
    (lambda: plot_matrices({"W": torch.ones(0, 3)}, "x", "y"), ValueError, "'W'.*empty"),
    (lambda: plot_matrices({"W": [[1], [1, 2]]}, "x", "y"), ValueError, "'W'.*different lengths"),
    (lambda: plot_matrices({"W": torch.ones(2, 2, device="meta")}, "x", "y"), ValueError, "'W'.*meta"),
    (lambda: plot_matrices({"W": [["a"]]}, "x", "y"), TypeError, "'W'.*numbers"),
    (lambda: plot_attention({}, [], []), ValueError, "panels is empty"),
    (lambda: plot_attention({head: torch.eye(2) for head in range(144)}, "ab", "ab"), ValueError, "panels has 144"),
    (lambda: plot_attention({"": torch.ones(2, 3)}, "ab", "ab"), ValueError, "keys has 2 names for 3"),
    (lambda: plot_attention({"": torch.ones(3, 2)}, "ab", "ab"), ValueError, "queries has 2 names for 3"),
    (lambda: plot_bars({"": [0.5, 0.5]}, ["a"], "y"), ValueError, "names has 1 names for 2"),
    (lambda: plot_bars({"": [NAN]}, ["a"], "y"), ValueError, "panels.*nan"),
    (lambda: plot_lines({"": {"a": [1, 2, 3]}}, [1, 2], "x"), ValueError, "'a'.* 3 values for 2"),
    (lambda: plot_lines({"": {"a": [1]}}, [0], "x", log_x=True), ValueError, "x holds 0"),
    (lambda: plot_lines({"t": {"a": [-1]}}, [1], "x", log_y=["t"]), ValueError, "'a'.*-1"),
    (lambda: plot_lines({"t": {"a": [1]}}, [1], "x", log_y=["u"]), ValueError, "log_y.*'u'"),
    (lambda: plot_lines({"t": {"a": [1]}}, [1], "x", same_y="no"), TypeError, "same_y.*'no'"),
    (lambda: plot_lines({"": {name: [1] for name in range(99)}}, [1], "x"), ValueError, "99 lines"),
]


@pytest.mark.parametrize(("figure", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_what_cannot_be_drawn_is_named(figure, error, words):
    with pytest.raises(error, match=words):
        figure()


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
    """The stations whose fill is not the usual one, by their indices."""
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


def test_tokens_are_above_their_ids():
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


@few
@given(st.lists(st.lists(st.integers(0, 50_256), min_size=1, max_size=6), min_size=1, max_size=4))
def test_token_boxes(rows):
    """Boxes of a row are side by side in text order, neighbours of different colours; each ID is under its box."""
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
        assert max(top for *_, top in boxes) <= floor, "the next text is below"
        for token_id, (left, bottom, right, _) in zip(ids, boxes):
            number = next(numbers)
            assert number.get_text() == str(token_id)
            assert left <= number.get_position()[0] <= right
            assert number.get_position()[1] < bottom
            floor = number.get_position()[1]
    low, high = sorted(ax.get_xlim())
    assert all(low <= box(patch)[0] and box(patch)[2] <= high for patch in ax.patches), "nothing is cut off"


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


@few
@given(st.lists(st.integers(-3, 12), min_size=1, max_size=50))
def test_shares_add_up(values):
    [ax] = plot_counts(values, "x", "y").axes
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(100)
    assert len(ax.patches) == max(values) - min(values) + 1


def test_counts_far_apart():
    [ax] = plot_counts([6109, 3626, 6100, 345], "x", "y").axes
    [lines] = ax.collections
    tops = {x: top for (x, _), (_, top) in lines.get_segments()}
    assert tops == {345: 25, 3626: 25, 6100: 25, 6109: 25}


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


@few
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


# plot_plane


def clusters(data, most):
    """Draw points far apart, with some names close around each."""
    places = data.draw(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=5, unique=True))
    members = [data.draw(st.integers(1, most)) for _ in places]
    panel, groups = {}, []
    for place, count in zip(places, members):
        groups.append([f"word{len(panel) + step}" for step in range(count)])
        for step, name in enumerate(groups[-1]):
            panel[name] = (place[0] + 0.002 * step, place[1] - 0.001 * step)
    return panel, groups


@few
@given(
    st.lists(st.dictionaries(st.sampled_from(names(9)), st.tuples(coordinates, coordinates), min_size=1), min_size=1)
)
def test_plane_shows_each_point_on_one_scale(panels):
    panels = {f"panel {place}": panel for place, panel in enumerate(panels[:3])}
    fig = plot_plane(panels, xlabel="pets", ylabel="sports")
    assert [ax.get_title() for ax in fig.axes] == list(panels)
    for ax, panel in zip(fig.axes, panels.values()):
        assert points(ax) == list(panel.values())
        assert all(inside(ax, point) for point in panel.values())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("pets", "sports")
        assert ax.get_aspect() == 1, "a unit is as long on both axes"
        left, right = ax.get_xlim()
        assert -left == pytest.approx(right)
        assert left < right
        assert (left, right) == ax.get_ylim() == fig.axes[0].get_xlim()


@pytest.mark.parametrize("as_arrows", [False, True])
@few
@given(st.data())
def test_points_that_lie_together_share_a_label(as_arrows, data):
    panel, groups = clusters(data, most=3)
    [ax] = plot_plane({"": panel}, arrows=as_arrows, reach=4).axes
    assert words(ax) == [", ".join(group) for group in groups]
    labelled = [text for text in ax.texts if text.get_text()]
    for text, group in zip(labelled, groups):
        assert min(math.dist(text.xy, panel[name]) for name in group) < 0.01, "the label is at its points"


def test_many_names_at_a_point_are_counted():
    panel = {f"word{place}": (1, 1) for place in range(4)} | {"cat": (-1, 1), " dog": (1, -1)}
    [ax] = plot_plane({"": panel}).axes
    assert words(ax) == ["4 of them", "cat", "␣dog"]


@few
@given(st.dictionaries(st.sampled_from(names(9)), st.tuples(coordinates, coordinates), min_size=1))
def test_arrows_start_at_the_origin(panel):
    [ax] = plot_plane({"": panel}, arrows=True).axes
    assert [(tuple(tail), tuple(head)) for tail, head, _ in arrows(ax)] == [((0, 0), head) for head in panel.values()]
    assert all(inside(ax, head) for _, head, _ in arrows(ax)), "an arrow that ends outside is not drawn at all"
    assert points(ax) == []


def test_reach():
    fig = plot_plane({"a": {"cat": (1, 2)}, "b": {"cat": (-3, 0)}}, reach=9)
    assert {(ax.get_xlim(), ax.get_ylim()) for ax in fig.axes} == {((-9, 9), (-9, 9))}


def test_all_points_at_the_origin():
    [ax] = drawn(plot_plane({"": {"cat": (0.0, 0.0), "dog": (0, 0)}})).axes
    assert points(ax) == [(0, 0)] * 2
    assert words(ax) == ["cat, dog"]


# plot_weighted_sum

few_vectors = st.dictionaries(
    st.sampled_from(["ticket", "for", "horse", "race"]), st.tuples(coordinates, coordinates), min_size=1
)


@few
@given(few_vectors, few_vectors)
def test_weighted_parts_are_laid_end_to_end(parts, start):
    [ax] = plot_weighted_sum(parts, start, xlabel="pets", ylabel="sports").axes
    places = list(accumulate(parts.values(), lambda one, other: (one[0] + other[0], one[1] + other[1]), initial=(0, 0)))
    plain = [(tuple(tail), tuple(head)) for tail, head, dashed in arrows(ax) if not dashed]
    assert plain == [*pairwise(places), ((0, 0), places[-1])]
    assert [(tuple(tail), head) for tail, head, dashed in arrows(ax) if dashed] == [
        ((0, 0), vector) for vector in start.values()
    ]
    assert words(ax) == [*parts, "context vector", *(f"{name} alone" for name in start)]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_aspect()) == ("pets", "sports", 1)


@few
@given(few_vectors, few_vectors)
def test_no_arrow_of_a_weighted_sum_is_cut(parts, start):
    """Matplotlib leaves an arrow out whose head is outside."""
    [ax] = plot_weighted_sum(parts, start, "x", "y").axes
    for tail, head, _ in arrows(ax):
        assert inside(ax, tail)
        assert inside(ax, head)


def test_a_weighted_sum_beside_nothing():
    [ax] = drawn(plot_weighted_sum({"a": (1, 2), "b": (1, 0)}, {}, "x", "y")).axes
    assert words(ax) == ["a", "b", "context vector"]


# plot_matrices


@few
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_matrices_are_drawn_as_they_are(rows, columns, seed):
    generator = torch.Generator().manual_seed(seed)
    panels = {f"size {size}": size * torch.randn(rows, columns, generator=generator) for size in (1, 100)}
    fig = plot_matrices(panels, xlabel="key", ylabel="query")
    assert [ax.get_title() for ax in fig.axes] == list(panels)
    for ax, matrix in zip(fig.axes, panels.values()):
        [image] = ax.images
        assert image.get_array().tolist() == matrix.tolist()
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")
        assert ax.yaxis_inverted(), "row 0 on top"
        lowest, highest = image.get_clim()
        assert (lowest, highest) == (matrix.min(), matrix.max()), "each on its own scale"
        assert luminance(to_hex(image.cmap(0.0))) > luminance(to_hex(image.cmap(1.0))), "dark is large"


def test_a_matrix_of_one_value():
    drawn(plot_matrices({"": torch.ones(2, 3)}, "x", "y"))


# plot_attention


def rows_of_weights(rows, columns, seed=0):
    return torch.softmax(3 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)), dim=-1)


@few
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_attention_map(rows, columns, seed):
    attn_weights = rows_of_weights(rows, columns, seed)
    queries, keys = [f"q{place}" for place in range(rows)], [f"k{place}" for place in range(columns)]
    [ax] = plot_attention({"one head": attn_weights}, queries, keys).axes
    [image] = ax.images
    assert image.get_array().tolist() == attn_weights.tolist(), "one row per query"
    assert image.get_clim() == (0, 1), "whatever the weights are"
    assert tuple(image.get_extent()) == (-0.5, columns - 0.5, rows - 0.5, -0.5)
    assert ax.yaxis_inverted(), "query 0 on top"
    assert not ax.xaxis_inverted()
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("one head", "key", "query")
    assert tick_words(ax.xaxis) == keys
    assert tick_words(ax.yaxis) == queries
    assert ax.get_xticks().tolist() == list(range(columns))
    assert ax.get_yticks().tolist() == list(range(rows))
    numbers = {text.get_position(): float(text.get_text()) for text in ax.texts}
    assert set(numbers) == {(column, row) for row in range(rows) for column in range(columns)}
    for (column, row), number in numbers.items():
        assert abs(number - attn_weights[row, column].item()) <= 0.00501, "each number in its cell"


def test_numbers_of_an_attention_map():
    [ax] = plot_attention({"": torch.tensor([[1.0, 0.0], [0.05, 0.95]])}, ["a", "b"], ["a", "b"]).axes
    assert words(ax) == ["1.00", ".00", ".05", ".95"]


def readability(ax):
    """Return the contrast of each number of a map with its cell, and the number."""
    [image] = ax.images
    assert image.get_alpha() in (None, 1)
    shown = image.get_array().astype(float).filled(np.nan)
    for text in ax.texts:
        column, row = text.get_position()
        weight = shown[row, column]
        cell = PAPER if np.isnan(weight) else to_hex(image.cmap(image.norm(weight)))
        yield contrast(to_hex(text.get_color()), cell), text.get_text()


def test_numbers_are_readable_on_any_cell():
    """Each colour that a weight from 0 to 1 can get, and weights just beside each step of the colours."""
    steps = torch.arange(257, dtype=torch.float64) / 256
    values = torch.cat([steps, (steps - 1e-7).clamp(0, 1), (steps + 1e-7).clamp(0, 1)])
    for part in values.split(400):
        [ax] = plot_attention({"": part[None]}, names(1), names(len(part))).axes
        worst, number = min(readability(ax))
        assert worst >= 4.5, f"{worst:.2f} at {number}"


@pytest.mark.parametrize(
    "mask",
    [[[1, 0], [1, 1]], torch.tensor([[1, 0], [1, 1]]), torch.tensor([[True, False], [True, True]])],
    ids=["list", "int64 tensor", "bool tensor"],
)
def test_whole_numbers_are_weights_too(mask):
    [ax] = plot_attention({"": mask}, ["a", "b"], ["a", "b"]).axes
    assert words(ax) == ["1.00", ".00", "1.00", "1.00"]
    assert min(readability(ax))[0] >= 4.5


def test_weights_that_are_none():
    """After dropout a weight may exceed 1; of a row that is hidden as a whole there are none."""
    [ax] = drawn(plot_attention({"": torch.tensor([[2.0, 0.0], [math.nan, math.nan]])}, ["a", "b"], ["a", "b"])).axes
    assert words(ax) == ["2.00", ".00", "nan", "nan"]
    assert ax.images[0].get_clim() == (0, 1)
    assert min(readability(ax))[0] >= 4.5


def grid_of(fig):
    """Return how many maps stand side by side, and how many one above the other."""
    fig.draw_without_rendering()
    boxes = [ax.get_position() for ax in fig.axes]
    lefts, bottoms = {round(box.x0, 2) for box in boxes}, {round(box.y0, 2) for box in boxes}
    return len(lefts), len(bottoms)


def test_wide_maps_stand_one_above_the_other():
    few = plot_attention({f"head {head}": rows_of_weights(4, 4) for head in range(2)}, names(4), names(4))
    many = plot_attention({f"head {head}": rows_of_weights(11, 11) for head in range(2)}, names(11), names(11))
    assert grid_of(few) == (2, 1)
    assert grid_of(many) == (1, 2)
    tops = [ax.get_position().y1 for ax in many.axes]
    assert tops[0] > tops[1], "the first on top"
    for fig in (few, many):
        assert [ax.get_title() for ax in fig.axes] == ["head 0", "head 1"]
        assert fig.get_figwidth() <= 10, "no wider than a page"


# plot_bars


@few
@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.lists(weights, min_size=n, max_size=n), min_size=1, max_size=3)))
def test_bars(rows):
    panels = {f"panel {place}": values for place, values in enumerate(rows)}
    fig = plot_bars(panels, names(len(rows[0])), "weight")
    assert [ax.get_title() for ax in fig.axes] == list(panels)
    for ax, values in zip(fig.axes, rows):
        assert [height for *_, height in bars(ax)] == values
        assert all(left < place < right for place, (left, right, _) in enumerate(bars(ax)))
        assert all(one[1] <= other[0] for one, other in pairwise(bars(ax)))
        assert ax.get_ylim() == (0, 1), "one scale for all"
        assert tick_words(ax.xaxis) == names(len(values))
        assert ax.get_xticks().tolist() == list(range(len(values)))
        assert ax.get_ylabel() == "weight"


def test_bars_may_be_named_by_numbers():
    [ax] = drawn(plot_bars({"": [0.5, 0.5]}, range(2), "weight")).axes
    assert tick_words(ax.xaxis) == ["0", "1"]


# plot_lines


def test_lines():
    x = [4, 16, 64]
    panels = {"variance": {"as they are": [4.0, 16.0, 64.0], "divided": [1.0, 1.0, 1.0]}, "entropy": {"all": [3, 2, 1]}}
    fig = drawn(plot_lines(panels, x, "head_dim", log_x=True, log_y=["variance"]))
    assert [ax.get_title() for ax in fig.axes] == list(panels)
    for ax, lines in zip(fig.axes, panels.values()):
        assert [line.get_xydata().tolist() for line in ax.lines] == [
            [[float(place), float(value)] for place, value in zip(x, values)] for values in lines.values()
        ]
        assert [text.get_text() for text in ax.get_legend().get_texts()] == list(lines)
        assert ax.get_xlabel() == "head_dim"
        assert ax.get_xscale() == "log"
        assert ax.xaxis.get_transform().base == 2, "doublings"
    assert [ax.get_yscale() for ax in fig.axes] == ["log", "linear"]
    [ax] = plot_lines({"": {"a": [1, 2, 3]}}, x, "x").axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")


def test_panels_of_lines_with_one_scale():
    panels = {"small": {"a": [1, 2]}, "large": {"a": [10, 20]}}
    apart, alike = plot_lines(panels, [1, 2], "x"), plot_lines(panels, [1, 2], "x", same_y=True)
    assert len({ax.get_ylim() for ax in apart.axes}) == 2
    assert len({ax.get_ylim() for ax in alike.axes}) == 1
    assert all(inside(ax, (1, 1)) and inside(ax, (2, 20)) for ax in alike.axes)


def test_no_line_depends_on_colour_alone():
    [ax] = plot_lines({"": {name: [1, 2] for name in names(4)}}, [1, 2], "x").axes
    for look in ("get_linestyle", "get_marker", "get_color"):
        assert len({getattr(line, look)() for line in ax.lines}) == 4
    assert min(contrast(to_hex(line.get_color()), PAPER) for line in ax.lines) >= 3
