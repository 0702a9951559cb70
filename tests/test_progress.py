"""Verdicts in saved notebooks: read, counted in a verdict and in a table; saved so that they can be shown tomorrow."""

import json
import os
import re

import pytest
from IPython.core.interactiveshell import InteractiveShell
from lessons import NOTEBOOKS, ROOT, read, tasks
from traitlets.config import Config, PyFileConfigLoader

import utils.exercises
from utils.exercises import check, find_exercise
from utils.workbook import jupyter
from utils.workbook.progress import aligned, progress
from utils.workbook.saved import better, fresh, passed, read_saved

FOURTH = NOTEBOOKS[4]


def code(*outputs, source="check(…)"):
    return {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": source, "outputs": list(outputs)}


def result(*lines):
    return {"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": {"text/plain": [*lines]}}


def printed(*lines):
    return {"output_type": "stream", "name": "stdout", "text": [f"{line}\n" for line in lines]}


def save(path, *cells):
    """Write a learner's copy of the lesson of that name, with further cells."""
    original = next((lesson for lesson in NOTEBOOKS if lesson.name == path.name), FOURTH)
    notebook = fresh(original)
    notebook["cells"] += cells
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


TWO = {"4.1": "✓ 4.1: right · 1 of 9 in this lesson", "4.2": "✗ 4.2: it is (1, 2), not 3 (see section 4.3)"}


@pytest.mark.parametrize(
    ("outputs", "verdicts"),
    [
        ([result("✓ 4.1: right")], {"4.1": "✓ 4.1: right"}),
        ([result("✓ 4.1: right · 3 of 9 in this lesson")], {"4.1": "✓ 4.1: right · 3 of 9 in this lesson"}),
        ([printed("x", "✗ 4.2: no"), result("… 4.A: not yet")], {"4.2": "✗ 4.2: no", "4.A": "… 4.A: not yet"}),
        ([result("✓ 4.1: right"), result("✗ 4.1: no")], {"4.1": "✓ 4.1: right"}),
        ([result("✗ 4.1: no"), result("✗ 4.1: not that")], {"4.1": "✗ 4.1: not that"}),
        ([result("(✓ 4.1: right · 1 of 9 in this lesson, ✗ 4.2: it is (1, 2), not 3 (see section 4.3))")], TWO),
        ([result("✗ 4.1: \x1b[2J\ud800\u202e")], {"4.1": "✗ 4.1: �[2J��"}),
        ([result("✓ 4.1: " + 999 * "x")], {"4.1": "✓ 4.1: " + 293 * "x"}),
        ([result("✓ 4.1x: right"), result("✓ 123.1: right"), result("✓ 4.१: right")], {}),
        ([printed("I got ✓ 4.1: right", "4.1: right"), {"output_type": "error"}], {}),
    ],
)
def test_verdicts_are_read_where_they_are_shown(tmp_path, outputs, verdicts):
    save(tmp_path / FOURTH.name, *map(code, outputs))
    found = read_saved(tmp_path / FOURTH.name)
    assert found.verdicts == verdicts
    assert [*found.tasks] == [task.number for task in tasks(read(FOURTH))]
    assert found.worked_in


def test_the_better_of_two_verdicts():
    lines = ["… 1.1: not attempted yet", "✗ 1.1: no", "✓ 1.1: right"]
    for worse, line in zip([None, *lines], lines):
        assert better(worse, line) == line
        assert worse is None or better(line, worse) == line
    assert [passed(line) for line in [None, *lines]] == [False, False, False, True]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"\xff\xfe\x00",
        b"[1]",
        b"{}",
        b'{"cells": 1}',
        b'{"cells": [{}]}',
        b'{"cells": [{"cell_type": "code", "source": 1, "outputs": 2}]}',
        b'{"cells": [], "metadata": {"text_to_attention": 1}}',
        b'{"worksheets": [{"cells": []}]}',
        b"[" * 100_000,
        FOURTH.read_bytes()[:5000],
    ],
    ids=lambda content: repr(content[:30]),
)
def test_what_is_no_notebook_is_a_clear_error(tmp_path, content):
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="it is not a notebook, or a damaged one"):
        read_saved(path)


@pytest.fixture
def in_a_new_kernel(tmp_path, monkeypatch):
    """A kernel in an empty folder, in which nothing was checked yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(utils.exercises, "CHECKED", {})
    return tmp_path


def test_a_verdict_counts_what_was_solved_in_this_kernel_and_before(in_a_new_kernel):
    total = len(tasks(read(FOURTH)))
    right = find_exercise("4.1").right
    assert check("4.1", right).message == f"✓ 4.1: right · 1 of {total} in this lesson"
    save(in_a_new_kernel / FOURTH.name, code(result("✓ 4.1: right")), code(result("✓ 4.2: right"), result("✗ 4.3: no")))
    assert check("4.1", right).message == f"✓ 4.1: right · 2 of {total} in this lesson"
    assert not check("4.2", right).passed  # what was right yesterday is wrong today
    assert check("4.1", right).message == f"✓ 4.1: right · 1 of {total} in this lesson"
    (in_a_new_kernel / FOURTH.name).write_text("{half")
    assert check("4.1", right).message == f"✓ 4.1: right · 1 of {total} in this lesson"


def test_a_table_of_what_is_solved(tmp_path):
    assert progress(tmp_path).endswith("\nnext: case 1.B"), "1.A goes further"
    cores = [number for number, in_core in read_saved(FOURTH).tasks.items() if in_core]
    save(tmp_path / FOURTH.name, *(code(result(f"✓ {number}: right")) for number in cores[:2]))
    table = progress(tmp_path)
    rows = [re.split(" {2,}", line) for line in table.splitlines()]
    assert [row[0] for row in rows[1:-3]] == [read_saved(path).heading for path in NOTEBOOKS]
    assert rows[5][1:3] == [f"2 of {len(read_saved(FOURTH).tasks)}", f"2 of {len(cores)}"]
    assert [row[-1] for row in rows[1:5]] == ["–"] * 4, "they were not worked in"
    assert table.endswith(f"\nnext: exercise {cores[2]}")
    os.utime(tmp_path / FOURTH.name, (0, 1e9))
    save(tmp_path / NOTEBOOKS[5].name, code(result("✗ 5.A: no")))
    assert progress(tmp_path).splitlines()[-1].startswith("next: case 5."), "the lesson that was saved last comes first"


def test_all_are_solved(tmp_path):
    for path in NOTEBOOKS:
        save(tmp_path / path.name, *(code(result(f"✓ {task.number}: right")) for task in tasks(read(path))))
    table = progress(tmp_path)
    total = sum(len(tasks(read(path))) for path in NOTEBOOKS)
    assert f" {total} of {total} " in table
    assert table.endswith("All of them are solved.")


def test_what_is_null_is_taken_for_empty(tmp_path):
    cells = [code(result("✓ 4.1: right")), {"cell_type": "code", "source": None, "outputs": None}, code({"data": None})]
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps({"metadata": None, "cells": cells}))
    assert read_saved(path).verdicts == {"4.1": "✓ 4.1: right"}


def test_a_copy_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / FOURTH.name).write_text("{half")
    (tmp_path / NOTEBOOKS[5].name).mkdir()
    table = progress(tmp_path)
    assert f"{FOURTH.name}: it is not a notebook, or a damaged one. A new copy, beside it: make reset LESSON=4" in table
    assert "LESSON=5" in table


def test_columns_are_aligned_whatever_the_letters():
    lines = aligned([("学習者", "1"), ("e\u0301le\u0300ve", "22"), ("x", "3")]).splitlines()
    assert lines == ["学習者  1", "e\u0301le\u0300ve   22", "x       3"]


# What the course adds to Jupyter


def test_a_slider_is_saved_as_a_line_that_says_how_to_get_it_back():
    view = {
        "output_type": "display_data",
        "metadata": {},
        "data": {jupyter.WIDGET: {}, "text/plain": ["interactive(…)"]},
    }
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "", "text/plain": "words"}}
    cells = [code(view, picture, printed("x")), {"cell_type": "markdown", "metadata": {}, "source": ""}]
    notebook = {"cells": cells, "metadata": {"language_info": {"name": "python", "version": "3"}}}
    jupyter.before_saving(model={"type": "notebook", "content": notebook}, path="", contents_manager=None)
    assert notebook["metadata"] == {"language_info": {"name": "python"}}
    assert cells[0]["outputs"][0]["data"] == {"text/plain": jupyter.AGAIN}
    assert cells[0]["outputs"][1:] == [picture, printed("x")]


def test_only_what_could_not_be_shown_is_changed():
    def view(text, **more):
        return {"output_type": "display_data", "data": {jupyter.WIDGET: {"model_id": text}, "text/plain": text, **more}}

    views = [view("interactive(kept)"), view("100%|###|"), view("interactive(x)", **{"image/png": "a picture"})]
    state = {jupyter.STATE: {"state": {"interactive(kept)": {}}}}
    cells = [code(*views), {"cell_type": "code", "outputs": [{"data": None}]}]
    notebook = {"cells": cells, "metadata": {"widgets": state, "language_info": None}}
    jupyter.before_saving(model={"type": "notebook", "content": notebook})
    jupyter.before_saving(model={"type": "notebook", "content": {"metadata": {}, "worksheets": []}})
    jupyter.before_saving(model={"type": "file", "content": "text"})
    assert [output["data"] for output in cells[0]["outputs"]] == [
        {jupyter.WIDGET: {"model_id": "interactive(kept)"}, "text/plain": "interactive(kept)"},
        {"text/plain": "100%|###|"},
        {"text/plain": jupyter.AGAIN, "image/png": "a picture"},
    ]


@pytest.mark.parametrize(
    ("source", "names", "explained"),
    [
        ('check("4.1", 1)', {}, True),
        ("torch.ones(1)", {}, True),
        ("mine", {}, False),
        ("check", {"plots": 1}, False),
        ("def f():\n    x += 1\nf()", {}, False),
    ],
)
def test_a_name_error_before_the_first_cell_is_explained(capsys, source, names, explained):
    shell = InteractiveShell(user_ns=dict(names), config=Config({"HistoryManager": {"enabled": False}}))
    jupyter.load_ipython_extension(shell)
    assert isinstance(shell.run_cell(source).error_in_exec, NameError)
    shown = capsys.readouterr().out
    assert (jupyter.FIRST in shown, "Traceback" in shown) == (explained, not explained)


@pytest.mark.parametrize("name", [NOTEBOOKS[0].name, "00_another_course.ipynb"])
def test_other_projects_are_left_alone(tmp_path, monkeypatch, name):
    """Importing utils would hide a package of theirs that has the same name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("")
    config = PyFileConfigLoader(str(ROOT / "etc" / "ipython" / "ipython_kernel_config.py")).load_config()
    assert ("utils.workbook.jupyter" in str(config)) == (name == NOTEBOOKS[0].name)
