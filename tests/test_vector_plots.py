"""utils.plots.vectors against its contract: what is drawn, never how it looks to the pixel."""

import io
import math
import os
import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from utils import plots
from utils.plots import (
    AXIS_COLOURS,
    PAPER,
    plot_attention,
    plot_bars,
    plot_lines,
    plot_matrices,
    plot_plane,
    plot_weighted_sum,
)

moderate = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
coordinates = st.integers(-12, 12).map(lambda quarters: quarters / 4)
weights = st.floats(0, 1, width=32)


def drawn(fig):
    """Draw a figure for good, so that what goes wrong only then (a formula, a missing sign) goes wrong here."""
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


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it: 1 (none) to 21 (black on white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


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


# Every kind of data; each number is one that bfloat16 has exactly.
EXAMPLES = {
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
KINDS = {
    "float32 tensor": torch.tensor,
    "float32 tensor with gradient": lambda data: torch.tensor(data, requires_grad=True),
    "float64 tensor": lambda data: torch.tensor(data, dtype=torch.float64),
    "bfloat16 tensor": lambda data: torch.tensor(data, dtype=torch.bfloat16),
    "result of a model": lambda data: torch.tensor(data, requires_grad=True) * 1,
    "array": np.array,
    "tuple": lambda data: tuple(map(tuple, data)) if isinstance(data[0], list) else tuple(data),
}
every_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@pytest.fixture(autouse=True)
def _torch_warns_each_time():
    """Not only once a process: a warning is an error here, whichever test comes first."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


# All of them


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@every_example
def test_data_of_any_library_is_drawn_alike(example, kind):
    fig = example(kind)
    assert isinstance(fig, Figure)
    assert facts(fig) == facts(example(list))


@every_example
def test_drawing_changes_no_settings_and_no_data(example):
    given_data = []

    def as_kind(data):
        given_data.append((torch.tensor(data), torch.tensor(data)))
        return given_data[-1][0]

    before = matplotlib.rcParams.copy()
    drawn(example(as_kind))
    assert matplotlib.rcParams.copy() == before
    assert all(torch.equal(now, then) for now, then in given_data)


@every_example
def test_every_text_on_paper_is_readable(example):
    fig = drawn(example(list))
    assert to_hex(fig.get_facecolor()) == PAPER
    for ax in fig.axes:
        on_paper = [] if ax.images else ax.texts
        legend = ax.get_legend().get_texts() if ax.get_legend() else []
        ticks = (*ax.get_xticklabels(), *ax.get_yticklabels())
        for text in (*on_paper, *legend, *ticks, ax.title, ax.xaxis.label, ax.yaxis.label):
            assert contrast(to_hex(text.get_color()), PAPER) >= 4.5, text.get_text()
        assert to_hex(ax.title.get_color()) not in AXIS_COLOURS.values(), "a colour of an axis kind means that kind"


IMPORT = """
import sys
import matplotlib
before = matplotlib.rcParams.copy()
from utils.plots import *
figures = [
    plot_plane({"": {"a": (1, 2)}}),
    plot_plane({"": {"a": (1, 2)}}, arrows=True),
    plot_weighted_sum({"a": (1, 2)}, {"a": (2, 1)}, "x", "y"),
    plot_bars({"": [0.5]}, ["a"], "y"),
    plot_lines({"": {"a": [1, 2]}}, [1, 2], "x", log_x=True),
]
for fig in figures:
    fig.draw_without_rendering()
assert "matplotlib.pyplot" not in sys.modules, "pyplot is imported"
assert matplotlib.rcParams.copy() == before, "rcParams are changed"
"""


def test_nothing_global_is_touched():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env=os.environ | {"PYTHONPATH": str(Path(plots.__file__).parents[2]), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


NAMED = {
    "points": lambda name: plot_plane({"": {name: (1, 2), "b": (-1, 2)}}),
    "points that lie together": lambda name: plot_plane({"": {name: (1, 2), "b": (1, 2)}}, arrows=True),
    "parts": lambda name: plot_weighted_sum({name: (1, 2)}, {"b": (2, 1)}, "x", "y"),
    "start": lambda name: plot_weighted_sum({"a": (1, 2)}, {name: (2, 1)}, "x", "y"),
    "attention": lambda name: plot_attention({"": torch.eye(2)}, [name, "b"], ["a", name]),
    "bars": lambda name: plot_bars({"": [0.5, 1]}, [name, "b"], "y"),
    "lines": lambda name: plot_lines({"": {name: [1, 2]}}, [1, 2], "x"),
}


@pytest.mark.parametrize("name", ["$$", "$x$", "a$b$", "$\\frac$", "a_^{", "\\"])
@pytest.mark.parametrize("figure", NAMED.values(), ids=NAMED)
def test_names_are_no_formulas(figure, name):
    [ax] = drawn(figure(name)).axes
    legend = ax.get_legend().get_texts() if ax.get_legend() else []
    texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), *legend]
    assert any(name in text.get_text() for text in texts)
    assert not any(text.get_parse_math() for text in texts if name in text.get_text())


# plot_plane


def clusters(data, most):
    """Draw far apart places, with some names close around each."""
    places = data.draw(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=5, unique=True))
    members = [data.draw(st.integers(1, most)) for _ in places]
    panel, groups = {}, []
    for place, count in zip(places, members):
        groups.append([f"word{len(panel) + step}" for step in range(count)])
        for step, name in enumerate(groups[-1]):
            panel[name] = (place[0] + 0.002 * step, place[1] - 0.001 * step)
    return panel, groups


@moderate
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
@moderate
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


def test_blanks_of_names_are_seen():
    [ax] = plot_plane({"": {" cat": (1, 1), "dog": (1, 1.01), " of": (-1, 0)}}).axes
    assert words(ax) == ["␣cat, dog", "␣of"]


@moderate
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


@moderate
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


@moderate
@given(few_vectors, few_vectors)
def test_no_arrow_of_a_weighted_sum_is_cut(parts, start):
    """Matplotlib leaves an arrow out whose head is outside."""
    [ax] = drawn(plot_weighted_sum(parts, start, "x", "y")).axes
    for tail, head, _ in arrows(ax):
        assert inside(ax, tail)
        assert inside(ax, head)


def test_a_weighted_sum_beside_nothing():
    [ax] = drawn(plot_weighted_sum({"a": (1, 2), "b": (1, 0)}, {}, "x", "y")).axes
    assert words(ax) == ["a", "b", "context vector"]


# plot_matrices


@moderate
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


@moderate
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_attention_map(rows, columns, seed):
    attn_weights = rows_of_weights(rows, columns, seed)
    queries, keys = [f"q{place}" for place in range(rows)], [f"k{place}" for place in range(columns)]
    [ax] = plot_attention({"one head": attn_weights}, queries, keys).axes
    [image] = ax.images
    assert image.get_array().tolist() == attn_weights.tolist(), "a row a query"
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
    values = torch.cat([steps, (steps - 1e-7).clamp(0, 1), (steps + 1e-7).clamp(0, 1), torch.linspace(0, 1, 258)])
    side = math.isqrt(len(values))
    cells = values[: side * side].sort().values.reshape(side, side)
    assert cells.max() > 0.99
    [ax] = plot_attention({"": cells}, names(side), names(side)).axes
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


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (3, 2), (2, 1), (2, 3)])
def test_a_name_for_each_row_and_column(rows, columns):
    with pytest.raises(ValueError, match=r"queries|keys"):
        plot_attention({"": torch.eye(2)}, names(rows), names(columns))


# plot_bars


@moderate
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


@pytest.mark.parametrize("number", [1, 3])
def test_a_name_for_each_bar(number):
    with pytest.raises(ValueError, match="names"):
        plot_bars({"": [0.5, 0.5]}, names(number), "weight")


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


@pytest.mark.parametrize("values", [[1], [1, 2, 3]], ids=str)
def test_a_value_for_each_place(values):
    with pytest.raises(ValueError, match="first dimension"):
        plot_lines({"": {"a": values}}, [1, 2], "x")
