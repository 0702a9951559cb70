"""The learner's own copies: made without outputs, never overwritten, kept on a reset; the suite never looks at them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jupyterlab.labapp import LabApp
from lessons import NOTEBOOKS, ROOT, code_cells, markdown_cells, read, tasks, without_code

import utils.workbook.saved
from utils.exercises import check, find_exercise
from utils.workbook import copies
from utils.workbook.progress import progress
from utils.workbook.saved import read_saved


def links(text):
    return [link.partition("#")[0] for link in re.findall(r"\]\((?![a-z]+:|#)([^)\s]+)\)", without_code(text))]


def test_copies_have_no_outputs_and_the_same_cells(tmp_path):
    copies.copy_lessons(tmp_path)
    for path in NOTEBOOKS:
        copy = read(tmp_path / "work" / path.name)
        assert not any(cell.outputs or cell.execution_count for cell in code_cells(copy))
        assert [cell.source for cell in code_cells(copy)] == [cell.source for cell in code_cells(read(path))]
        prose = [cell.source.replace("](README.md)", "](../README.md)") for cell in markdown_cells(copy)]
        assert prose == [cell.source for cell in markdown_cells(read(path))]
        assert not read_saved(tmp_path / "work" / path.name).worked_in


@pytest.mark.parametrize("name", ["anywhere", "zu Hause, für mich"])
def test_links_work_from_the_copies(tmp_path, name):
    work = tmp_path / name / "work"
    copies.copy_lessons(work.parent)
    prose = {path: "\n\n".join(cell.source for cell in markdown_cells(read(path))) for path in work.glob("*.ipynb")}
    prose[work / "README.md"] = (work / "README.md").read_text(encoding="utf-8")
    found = {(path.name, link) for path, text in prose.items() for link in links(text)}
    assert {link for _, link in found} > {"../docs/glossary.md", "README.md", NOTEBOOKS[3].name}
    assert not [(page, link) for page, link in found if not (work / link).exists()]
    assert not [link for _, link in found if "notebooks" in link], "it leads to the course's own lessons"


def test_a_full_disk_loses_nothing_on_a_reset(tmp_path, monkeypatch):
    copies.copy_lessons(tmp_path)
    copy = tmp_path / "work" / NOTEBOOKS[4].name
    copy.write_bytes(b"mine")
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        copies.reset(tmp_path, 4)
    assert copy.read_bytes() == b"mine"


def test_a_file_system_without_links_and_without_symlinks(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("not supported")

    monkeypatch.setattr(copies.os, "link", refuse)
    monkeypatch.setattr(Path, "symlink_to", refuse)
    copies.copy_lessons(tmp_path)
    copies.copy_lessons(tmp_path)
    assert (tmp_path / "docs" / "glossary.md").exists()
    assert len([*(tmp_path / "work").iterdir()]) == len(NOTEBOOKS) + 1


def test_many_at_once(tmp_path):
    command = [sys.executable, "-m", "utils.workbook", "--base", str(tmp_path), "copy"]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert {path.name for path in (tmp_path / "work").iterdir()} == {*(path.name for path in NOTEBOOKS), "README.md"}
    assert all(read_saved(tmp_path / "work" / path.name).copied for path in NOTEBOOKS)


def test_nothing_in_work_is_overwritten(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    mine = {name: f"mine: {name}".encode() for name in (NOTEBOOKS[2].name, "README.md", "notes.txt")}
    for name, content in mine.items():
        (work / name).write_bytes(content)
    (work / NOTEBOOKS[3].name).symlink_to(tmp_path / "a drive that is not there")
    (work / NOTEBOOKS[4].name).mkdir()
    (tmp_path / "data").symlink_to(tmp_path)
    copies.copy_lessons(tmp_path)
    copies.copy_lessons(tmp_path)
    assert {name: (work / name).read_bytes() for name in mine} == mine
    assert {path.name for path in work.iterdir()} == {*mine, *(path.name for path in NOTEBOOKS)}
    assert (work / NOTEBOOKS[3].name).is_symlink()
    assert (tmp_path / "data").readlink() == tmp_path


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupt_leaves_no_half_file(tmp_path, monkeypatch, error):
    original = Path.write_text

    def interrupted(path, *arguments, **options):
        if "02_" in path.name:
            path.write_bytes(b"{half")
            raise error
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", interrupted)
    with pytest.raises((KeyboardInterrupt, OSError)):
        copies.copy_lessons(tmp_path)
    assert [path.name for path in sorted((tmp_path / "work").iterdir())] == [path.name for path in NOTEBOOKS[:2]]
    monkeypatch.undo()
    copies.copy_lessons(tmp_path)
    assert all(read_saved(tmp_path / "work" / path.name).copied for path in NOTEBOOKS)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two lessons, which a test may change."""
    folder = tmp_path / "course"
    folder.mkdir()
    for path in NOTEBOOKS[:2]:
        shutil.copy(path, folder)
    monkeypatch.setattr(utils.workbook.saved, "LESSONS", folder)
    return folder


def change(path, text="changed"):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"][0]["source"].append(text)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def test_a_changed_lesson_is_named_and_a_reset_takes_it(tmp_path, course):
    copy = tmp_path / "work" / NOTEBOOKS[1].name
    assert len(copies.copy_lessons(tmp_path)) == 1
    before = copy.read_bytes()
    change(course / copy.name)
    _, told = copies.copy_lessons(tmp_path)
    assert told.startswith("Lessons changed since you copied them: 1. ")
    assert f'make reset LESSON=1 BASE="{tmp_path}" (or python -m utils.workbook --base "{tmp_path}" reset 1)' in told
    assert copy.read_bytes() == before
    change(copy, "my own words")  # an answer does not make it another version
    assert copies.copy_lessons(tmp_path)[1:] == [told]
    copies.reset(tmp_path, 1)
    assert len(copies.copy_lessons(tmp_path)) == 1
    assert "changed" in copy.read_text(encoding="utf-8")


def test_a_reset_keeps_every_old_copy(tmp_path, course):
    copies.copy_lessons(tmp_path)
    copy = tmp_path / "work" / NOTEBOOKS[1].name
    fresh, kept = copy.read_bytes(), []
    for content in (b"first", b"second, damaged", b"third"):
        copy.write_bytes(content)
        told = copies.reset(tmp_path, 1)
        kept.append(copy.with_name(re.search(r"kept as (\S+\.ipynb)\.", told)[1]).read_bytes())
        assert copy.read_bytes() == fresh
    assert kept == [b"first", b"second, damaged", b"third"]
    copy.unlink()
    assert "kept" not in copies.reset(tmp_path, 1)
    with pytest.raises(ValueError, match=r"there is no lesson 7: the lessons are 0 to 1"):
        copies.reset(tmp_path, 7)


def test_the_lab_opens_the_copy_that_was_saved_last(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(LabApp, "launch_instance", calls.append)
    copies.copy_lessons(tmp_path)
    copies.open_lab(tmp_path, ["--no-browser"])
    change(tmp_path / "work" / NOTEBOOKS[4].name)
    (tmp_path / "work" / NOTEBOOKS[6].name).write_text("{half")
    copies.open_lab(tmp_path, [])
    assert [call[-1] for call in calls] == [str(tmp_path / "work" / NOTEBOOKS[index].name) for index in (0, 4)]
    assert f"--ServerApp.root_dir={tmp_path}" in calls[0]
    assert "--no-browser" in calls[0]


def test_a_checkout_that_cannot_be_written_to_is_shared(monkeypatch, tmp_path):
    monkeypatch.setattr(copies.os, "access", lambda path, mode: True)
    assert copies.find_base() == ROOT
    assert copies.find_base("~/x") == Path.home() / "x"
    assert copies.find_base(str(tmp_path / "x" / "..")) == tmp_path.resolve()
    monkeypatch.setattr(copies.os, "access", lambda path, mode: False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "learner")
    assert copies.find_base() == tmp_path / "learner" / "text-to-attention"
    copies.copy_lessons(copies.find_base())
    (copies.find_base() / "docs").unlink()
    (copies.find_base() / "docs").symlink_to(tmp_path / "moved")
    copies.copy_lessons(copies.find_base())
    assert (copies.find_base() / "docs" / "glossary.md").exists()


def run(*arguments):
    command = [sys.executable, "-m", "utils.workbook", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")


def test_the_command_line(tmp_path):
    base = tmp_path / "Übung 1"
    assert run("--base", base, "copy").stdout == f"Your own copies of the lessons are in {base / 'work'}\n"
    assert run("--base", base, "progress").stdout.startswith("lesson ")
    assert "Lesson 4 has been copied again. " in run("--base", base, "reset", "4").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["reset", "77"], "there is no lesson 77: the lessons are 0 to "),
        (["reset"], "the following arguments are required: lesson"),
        (["progress", "nowhere"], "No such file or directory"),
        (["progress", "--fast"], "--fast: there is no such option"),
        (["begin"], "invalid choice: 'begin'"),
    ],
)
def test_a_wrong_command_gets_one_line(tmp_path, arguments, told):
    done = run("--base", tmp_path, *arguments)
    assert done.returncode != 0
    assert told in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_the_suite_and_git_never_look_into_work(tmp_path):
    """Whatever a learner leaves there: solved exercises, a misspelled word, a test that fails."""
    checkout = tmp_path / "checkout"
    not_copied = shutil.ignore_patterns(".venv", ".git", "_build", "work", "__pycache__", ".hypothesis")
    shutil.copytree(ROOT, checkout, ignore=not_copied)
    lines = [
        "ruff check --no-cache .",
        "codespell_lib",
        "pytest -q -n 0 -p no:cacheprovider --collect-only tests/test_language.py tests/test_notebooks.py",
    ]
    commands = [[sys.executable, "-m", *line.split()] for line in lines]
    if shutil.which("git"):
        for line in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -q -m all"):
            subprocess.run(["git", *line.split()], cwd=checkout, check=True)
        commands.append(["git", "status", "--porcelain"])
    copies.copy_lessons(checkout)
    work = checkout / "work"
    solve(work / NOTEBOOKS[4].name)
    assert "next: case 4." in progress(work)
    change(work / NOTEBOOKS[5].name, "reci" + "eve")
    (work / "test_mine.py").write_text("import nothing_of_this_name\ndef test_x( :", encoding="utf-8")
    for command in commands:
        done = subprocess.run(command, cwd=checkout, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert "work/" not in done.stdout, "what is collected or complained of"
        assert command[0] != "git" or not done.stdout


def solve(copy):
    """Put each folded solution of a copy under its heading, and the verdict on it under its check."""
    notebook = json.loads(copy.read_text(encoding="utf-8"))
    for task in tasks(read(copy)):
        if task.kind == "Exercise":
            output = {"output_type": "execute_result", "metadata": {}, "execution_count": 1}
            verdict = check(task.number, find_exercise(task.number).right)
            notebook["cells"][task.index + 1]["source"] = [task.solutions[0]]
            notebook["cells"][task.index + 2]["outputs"] = [output | {"data": {"text/plain": [repr(verdict)]}}]
    copy.write_text(json.dumps(notebook), encoding="utf-8")
