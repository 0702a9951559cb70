"""Sliders on the page: their frames are all there, the same each time, and drawn again when what they show changes."""

import json

import course
import pytest
import record_sliders
import sliders
from nbformat import v4

SLIDER = """from ipywidgets import Checkbox, FloatSlider, IntSlider, SelectionSlider, interact
import torch
from utils import plots
word, switch = SelectionSlider(options=["a", "b"]), Checkbox(True, description="switch")
@interact(p=FloatSlider(0.2, min=0.1, max=0.3, step=0.1), n=IntSlider(2, 1, 2), word=word, on=switch)
def slide(p, n, word, on):
    plots.show(plots.plot_bars({"x": torch.rand(2)}, "cd", "y"), alt=f"{p} {n} {word} {on}")
"""


@pytest.fixture
def recorded(tmp_path):
    """Return the folder with the frames of a lesson that has this cell."""

    def record(source, name="frames"):
        slider = v4.new_code_cell(source, metadata={"tags": ["live-slider"]})
        notebook = tmp_path / f"{name}.ipynb"
        notebook.write_text(v4.writes(v4.new_notebook(cells=[v4.new_markdown_cell("# 1. One"), slider])), "utf-8")
        record_sliders.record(notebook, tmp_path / name)
        return tmp_path / name / "0"

    return record


def test_each_position_has_its_frame_and_its_words(recorded):
    folder = recorded(SLIDER)
    about = json.loads((folder / "frames.json").read_text("utf-8"))
    assert about["alts"] == [
        f"{p} {n} {word} {on}" for p in (0.1, 0.2, 0.3) for n in (1, 2) for word in "ab" for on in (False, True)
    ]
    assert len([*folder.glob("*.png")]) == len(about["sizes"]) == len(about["alts"])
    assert about["controls"] == [
        {"name": "p", "labels": ["0.1", "0.2", "0.3"], "start": 1},
        {"name": "n", "labels": ["1", "2"], "start": 1},
        {"name": "word", "labels": ["a", "b"], "start": 0},
        {"name": "switch", "labels": ["False", "True"], "start": 1},
    ]
    html = sliders.figure(folder, "lesson/0")
    assert 'alt="0.2 2 a True"' in html, "the first picture is where the controls begin"


def test_frames_with_random_numbers_are_the_same_each_time(recorded):
    one, other = ({path.name: path.read_bytes() for path in recorded(SLIDER, name).iterdir()} for name in ("x", "y"))
    assert one == other


def test_there_is_room_for_the_tallest_frame(tmp_path):
    about = {"controls": [{"name": "n", "labels": ["1", "2"], "start": 0}], "alts": ["low", "a tall one"]}
    (tmp_path / "frames.json").write_text(json.dumps(about | {"sizes": [[300, 100], [300, 200]]}), "utf-8")
    (tmp_path / "0.png").write_bytes(b"")
    html = sliders.figure(tmp_path, "lesson/0")
    for part in ('width="300" height="100"', "--room: 300 / 200", 'data-longest="a tall one"'):
        assert part in html


@pytest.mark.parametrize(("last", "figures"), [("pass", 0), ("picture(), picture()", 2)])
def test_each_position_shows_one_figure(last, figures, recorded):
    source = f"""from ipywidgets import IntSlider, interact
from utils import plots
def picture():
    plots.show(plots.plot_bars({{"x": [1]}}, "c", "y"), alt="one bar")
@interact(n=IntSlider(1, 1, 2))
def slide(n):
    exec("picture()" if n == 1 else {last!r})
"""
    with pytest.raises(ValueError, match=rf"frames\.ipynb, cell 1: the slider shows {figures} figures at \(2,\)"):
        recorded(source)


def test_a_slider_that_cannot_be_drawn_stops_the_build(tmp_path, monkeypatch):
    broken = v4.new_code_cell("1 / 0", metadata={"tags": ["live-slider"]})
    path = tmp_path / "04_broken.ipynb"
    path.write_text(v4.writes(v4.new_notebook(cells=[broken])), "utf-8")
    monkeypatch.setattr(sliders, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(course, "read_lessons", lambda: [course.Lesson(path)])
    with pytest.raises(sliders.ExtensionError, match=r"(?s)04_broken\.ipynb cannot be drawn.*04_broken\.ipynb, cell 0"):
        sliders.draw_frames(None)
    assert not sliders.folder_of(course.Lesson(path)).exists(), "half of the frames would pass for all"


@pytest.mark.parametrize("changed", ["utils/plots/maps.py", "data/text.txt", "notebooks/04.ipynb"])
def test_frames_are_drawn_again_when_what_they_show_changes(changed, tmp_path, monkeypatch):
    for name in ("utils/plots/maps.py", "data/text.txt", "notebooks/04.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before", "utf-8")
    monkeypatch.setattr(course, "ROOT", tmp_path)
    lesson = course.Lesson(tmp_path / "notebooks" / "04.ipynb")
    before = sliders.folder_of(lesson)
    assert sliders.folder_of(lesson) == before
    (tmp_path / changed).write_text("after", "utf-8")
    assert sliders.folder_of(lesson) != before
