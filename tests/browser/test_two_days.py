"""A learner's two days: begin, answer, save; come back, go on, read the progress, begin a lesson afresh."""

import subprocess

from lab import opened
from lessons import NOTEBOOKS, ROOT, read, tags, tasks
from playwright.sync_api import expect

from utils.workbook.jupyter import AGAIN, FIRST
from utils.workbook.progress import progress
from utils.workbook.saved import read_saved

ONE, TWO = NOTEBOOKS[1:3]


def make(*arguments):
    """Return what make prints."""
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout


def task_of(path, kind):
    return next(task for task in tasks(read(path)) if task.kind == kind)


def test_two_days(chromium, tmp_path):
    base = tmp_path / "Anfang, für mich"
    work, case, exercise = base / "work", task_of(ONE, "Case"), task_of(ONE, "Exercise")
    slider = next(index for index, cell in enumerate(read(TWO).cells) if "live-slider" in tags(cell))

    with opened(chromium, base) as lab:  # the first day
        assert lab.first.path == f"work/{NOTEBOOKS[0].name}"
        lab.first.close()  # after two minutes JupyterLab would save it by itself
        lesson = lab.open(f"work/{ONE.name}")
        assert not any(cell.get("outputs") for cell in lesson.model().cells), "it tells what a learner should predict"
        early = lesson.answer(exercise.index + 1, exercise.below[0].source)
        assert early == f"NameError: name 'check' is not defined. {FIRST}"
        lesson.run_all()
        wrong = lesson.answer(exercise.index + 1, f"def {exercise.name}(*arguments):\n    return 0")
        assert wrong.startswith(f"✗ {exercise.number}: ")
        right = lesson.answer(case.index + 1, case.solutions[0].strip())
        assert right == f"✓ {case.number}: right · 1 of {len(tasks(read(ONE)))} in this lesson"
        lesson.save()
        lesson = lab.open(f"work/{TWO.name}")
        lesson.run_all()
        expect(lesson.cell(slider).locator("[role=slider]").first).to_be_visible()
        lesson.save()

    with opened(chromium, base) as lab:  # the second day, with another server and other kernels
        assert lab.first.path == f"work/{TWO.name}", "the lesson that was saved last is opened"
        lesson = lab.open(f"work/{TWO.name}")
        lesson.cell(slider).scroll_into_view_if_needed()  # JupyterLab draws only what is in view
        expect(lesson.cell(slider).locator(".jp-OutputArea-output")).to_have_text(AGAIN)
        lesson.run_all()
        expect(lesson.cell(slider).locator("[role=slider]").first).to_be_visible()
        lesson.save()
        lesson = lab.open(f"work/{ONE.name}")
        lesson.run_all()  # the answers of yesterday are still there
        solution = exercise.solutions[0].strip()
        assert " · 2 of " in lesson.answer(exercise.index + 1, solution)
        lesson.save()
        assert make("progress", f"BASE={base}") == progress(work) + "\n"
        assert f"\n{read_saved(ONE).heading}  " in progress(work)
        assert [number for number, line in read_saved(work / ONE.name).verdicts.items() if line[0] == "✓"] == [
            case.number,
            exercise.number,
        ]
        assert "is kept as" in make("reset", f"BASE={base}", "LESSON=1")
        lesson = lab.open(f"work/{ONE.name}")
        assert not any(cell.get("outputs") for cell in lesson.model().cells)
        assert lab.complaints == []
    assert len([*work.glob("01_*.ipynb")]) == 2, "the old copy is kept"


def test_a_lesson_of_the_course_that_is_opened_and_saved_stays_as_it_was(chromium, tmp_path):
    before = ONE.read_bytes()
    try:
        with opened(chromium, tmp_path / "edit", "edit") as lab:
            lab.open(f"notebooks/{ONE.name}").save()
        assert ONE.read_bytes() == before
    finally:
        ONE.write_bytes(before)
