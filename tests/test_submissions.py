"""A class's notebooks: whose they are, what they show; whatever else is in the folder is named, and nothing is lost."""

import csv
import json
import os

import made_up_class
import pytest
from lessons import NOTEBOOKS, read, tasks
from matplotlib.image import imread
from test_progress import code, printed, result, save

from utils.workbook.report import as_text, in_words, report
from utils.workbook.saved import fresh, read_saved
from utils.workbook.submissions import RESULTS, read_submissions

FOURTH = NOTEBOOKS[4]
TASKS = ["4.A", "4.B", "4.C", *(f"4.{index}" for index in range(1, 7))]


def hand_in(path, *verdicts):
    """Write a learner's copy of lesson 4 with these verdicts."""
    save(path, *(code(result(verdict)) for verdict in verdicts))


@pytest.mark.parametrize(
    ("path", "learner"),
    [
        ("blue_04_simple_attention.ipynb", "blue"),
        ("04_simple_attention blue.ipynb", "blue"),
        ("04_Simple_Attention-blue.ipynb", "blue"),
        ("blue.ipynb", "blue"),
        ("blue (1).ipynb", "blue"),
        ("blue_04_simple_attention-Copy2.ipynb", "blue"),
        ("blue_04_simple_attention_2026-11-30_2.ipynb", "blue"),
        ("bluesky_LATE_12345_678901_04_simple_attention-1.ipynb", "bluesky"),
        ("bluesky_12345_678901_04_simple_attention.ipynb", "bluesky"),
        ("Sky Blue_123456_assignsubmission_file_04_simple_attention.ipynb", "Sky Blue"),
        ("Sky Blue_123456_assignsubmission_file_/04_simple_attention.ipynb", "Sky Blue"),
        ("Copy of 04_simple_attention.ipynb", "class"),
        ("Sky Blue - Copy of 04_simple_attention.ipynb", "Sky Blue"),
        ("04_simple_attention.ipynb - blue.ipynb", "blue"),
        ("blue/04_simple_attention.ipynb", "blue"),
        ("blue/work/04_simple_attention.ipynb", "blue"),
        ("blue/lessons/mine.ipynb", "blue"),
        ("04_simple_attention.ipynb", "class"),
        ("学習者 ひとつ.ipynb", "学習者 ひとつ"),
        ("élève d'ici.ipynb", "élève d'ici"),
        ("e\u0301le\u0300ve.ipynb", "élève"),
        ("متعلم.ipynb", "متعلم"),
        (".blue.ipynb", "blue"),
        ("\u202eblue.ipynb", "�blue"),
        pytest.param(
            "two\nlines.ipynb", "two�lines", marks=pytest.mark.skipif(os.name == "nt", reason="no such names")
        ),
    ],
)
def test_whose_file_it_is(tmp_path, path, learner):
    hand_in(tmp_path / "class" / path, "✓ 4.1: right")
    found = read_submissions(tmp_path / "class")
    assert [*found.verdicts] == [learner]
    assert found.tasks == TASKS
    assert found.rows() == ["…" * 3 + "✓" + "…" * 5]
    assert found.notes == []


@pytest.mark.parametrize(
    "paths",
    [
        ["a.ipynb", "b.ipynb"],
        ["all/a.ipynb", "all/b.ipynb"],
        ["a/04_simple_attention.ipynb", "b/04_simple_attention.ipynb"],
        ["Lesson 4/a/04_simple_attention.ipynb", "Lesson 4/b/04_simple_attention.ipynb"],
        ["all/Lesson 4/a.ipynb", "all/Lesson 4/b.ipynb", "all/Lesson 5/a.ipynb", "all/Lesson 5/b.ipynb"],
        ["a/04_simple_attention.ipynb", "a/05_qkv_attention.ipynb", "b/05_qkv_attention.ipynb"],
    ],
)
def test_folders_of_learners_and_folders_of_lessons(tmp_path, paths):
    for path in paths:
        name = NOTEBOOKS[5].name if "5" in path else FOURTH.name
        save(tmp_path / name)
        (tmp_path / "class" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).rename(tmp_path / "class" / path)
    found = read_submissions(tmp_path / "class")
    assert [*found.verdicts] == ["a", "b"]
    assert found.notes == []


def test_learners_by_tasks_and_what_the_checks_said(tmp_path):
    near, far = "✗ 4.3: the columns sum to 1 (see section 4.3)", "✗ 4.3: got (1, 2) (see section 4.4)"
    hand_in(tmp_path / "a.ipynb", "✓ 4.1: right", near)
    hand_in(tmp_path / "b.ipynb", near)
    hand_in(tmp_path / "c.ipynb", far)
    save(tmp_path / "d" / NOTEBOOKS[5].name, code(result("✓ 5.1: right")))
    found = read_submissions(tmp_path)
    assert found.rows()[1] == "…" * 5 + "✗" + "…" * 3 + " " * (len(found.tasks) - 9)
    assert found.mistakes() == {"4.3": {"the columns sum to 1": ["a", "b"], "got (1, 2)": ["c"]}}
    lines = as_text(found).splitlines()
    assert lines[2].split() == ["a", "···✓·✗···", "1", "of", "9"]
    assert "4.3: 0 right, 3 wrong, 0 not attempted" in lines
    assert lines[lines.index("  2 × the columns sum to 1") + 1] == "  1 × got (1, 2)"
    assert in_words(found).startswith("A map of 4 learners (rows) and tasks 4.A to 5.6 (columns): 2 of 35 right. ")


def test_code_that_is_still_broken_as_it_was_given_is_not_attempted(tmp_path):
    given = read_saved(FOURTH).verdicts
    assert given["4.A"][0] == "✗"
    hand_in(tmp_path / "a.ipynb", given["4.A"])
    found = read_submissions(tmp_path)
    assert found.rows() == ["…" * 9]
    assert found.mistakes() == {}


def test_several_files_of_one_learner_count_as_the_best(tmp_path):
    hand_in(tmp_path / "blue" / FOURTH.name, "✓ 4.1: right", "✗ 4.2: no")
    hand_in(tmp_path / "blue" / "again.ipynb", "✗ 4.1: no", "✓ 4.2: right")
    hand_in(tmp_path / "red" / FOURTH.name)
    found = read_submissions(tmp_path)
    assert found.rows() == ["…" * 3 + "✓✓" + "…" * 4, "…" * 9]
    told = "several files of lesson 4 by blue, of which the best verdicts count"
    assert found.notes == [f"{told}: blue/{FOURTH.name}, blue/again.ipynb"]


def test_what_is_not_a_lesson_is_named_and_the_rest_is_read(tmp_path):
    hand_in(tmp_path / "a.ipynb", "✓ 4.1: right")
    (tmp_path / "essay.docx").write_bytes(b"PK\x03\x04")
    (tmp_path / "half.ipynb").write_bytes(FOURTH.read_bytes()[:999])
    (tmp_path / "empty.ipynb").write_bytes(b"")
    (tmp_path / "my own.ipynb").write_text('{"cells": []}', encoding="utf-8")
    (tmp_path / ".DS_Store").write_bytes(b"\x00")
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / "__MACOSX" / "._a.ipynb").write_bytes(b"\x00")
    (tmp_path / "README.md").write_bytes(b"")
    (tmp_path / "around").symlink_to(tmp_path)
    save(tmp_path / NOTEBOOKS[0].name)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    hand_in(tmp_path / ".ipynb_checkpoints" / "a-checkpoint.ipynb")
    found = read_submissions(tmp_path)
    assert [*found.verdicts] == ["a"]
    assert sorted(found.notes) == sorted(
        [
            "not read: empty.ipynb: it is not a notebook, or a damaged one",
            "not read: essay.docx: it is not a notebook (.ipynb)",
            "not read: half.ipynb: it is not a notebook, or a damaged one",
            f"not read: {tmp_path / 'around'}: it is a link",
            "nothing to count: my own.ipynb has no exercise",
        ]
    )


def test_an_old_version_is_named_and_counted(tmp_path):
    hand_in(tmp_path / "new.ipynb", "✓ 4.1: right")
    notebook = fresh(FOURTH)
    notebook["metadata"]["text_to_attention"]["version"] = "000000000000"
    notebook["cells"] += [code(printed("✓ 4.1: right")), code(result("✓ 4.9: right"))]
    (tmp_path / "old.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    found = read_submissions(tmp_path)
    assert found.tasks == [*TASKS, "4.9"]
    assert found.rows()[1][-1] == "✓"
    assert found.notes == ["another version of lesson 4 than the course's: old"]


@pytest.mark.parametrize("inside", [[], ["folder"], ["essay.docx"]])
def test_a_folder_without_a_lesson_is_a_clear_error(tmp_path, inside):
    for name in inside:
        (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match="there is no lesson with exercises in ") as error:
        report(tmp_path)
    assert "essay.docx" in str(error.value) or inside != ["essay.docx"]
    with pytest.raises(FileNotFoundError):
        report(tmp_path / "nowhere")


def test_the_report_is_text_tables_and_a_picture(tmp_path):
    hand_in(tmp_path / "=SUM(A1).ipynb", "✗ 4.1: -1 is returned, or “x”; no (see section 4.3)")
    hand_in(tmp_path / "学習者.ipynb", "✓ 4.1: right", "✗ 4.2: \ud800")
    told = report(tmp_path)
    assert told == report(tmp_path), "what was written before is not read"
    found = read_submissions(tmp_path)
    assert told.startswith(as_text(found))
    results = tmp_path / RESULTS
    tables = {
        name: [*csv.reader((results / f"{name}.csv").read_text(encoding="utf-8-sig").splitlines())]
        for name in ("learners", "mistakes")
    }
    assert tables["learners"][0] == ["learner", *TASKS]
    assert [row[:5] for row in tables["learners"][1:]] == [
        ["'=SUM(A1)", *["not attempted"] * 3, "wrong"],
        ["学習者", *["not attempted"] * 3, "right"],
    ]
    assert tables["mistakes"][1:] == [
        ["4.1", "1", "'-1 is returned, or “x”; no", "'=SUM(A1)"],
        ["4.2", "1", "�", "学習者"],
    ]
    assert imread(results / "class.png").ndim == 3
    assert f"![{in_words(found)}](class.png)" in (results / "class.md").read_text(encoding="utf-8")


def test_what_cannot_be_written_is_said_and_the_text_is_not_lost(tmp_path):
    hand_in(tmp_path / "a.ipynb")
    (tmp_path / RESULTS).write_text("a file of that name")
    assert "The tables and the picture could not be written: " in report(tmp_path)


def test_a_made_up_class(tmp_path):
    made_up_class.hand_in(tmp_path, 7, [4, 5])
    found = read_submissions(tmp_path)
    assert len(found.verdicts) == 7
    assert found.tasks == [task.number for lesson in (4, 5) for task in tasks(read(NOTEBOOKS[lesson]))]
    assert {*"".join(found.rows())} == {*"✓✗…"}
    assert found.notes == []
