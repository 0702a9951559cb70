"""Every lesson in JupyterLab, as `make lab` serves it, in a real browser."""

import pytest
from folds import expect_to_unfold_and_fold
from lessons import NOTEBOOKS, code_cells, label, markdown_cells, read, tags, tasks, texts
from playwright.sync_api import Locator, expect

from utils.exercises import find_exercise


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def lesson_tasks(path):
    """The clinic cases and exercises of a lesson; lesson 0 has none."""
    if not (found := tasks(read(path))):
        pytest.skip("a lesson without tasks")
    return found


@pytest.fixture(scope="module")
def lesson(lab, path):
    """The lesson in its own page, all cells run once."""
    lesson = lab.open(f"work/{path.name}")
    assert lesson.path == f"work/{path.name}"
    lesson.run_all()
    yield lesson
    lesson.close()


def test_make_lab_opens_the_first_lesson(lab):
    assert lab.first.path == f"work/{NOTEBOOKS[0].name}"


def test_all_cells_run_in_order(lesson):
    counts = [cell.execution_count for cell in code_cells(lesson.model())]
    assert counts == list(range(1, len(counts) + 1))


def test_no_error_but_declared_ones(lesson):
    for cell in code_cells(lesson.model()):
        errors = [output for output in cell.outputs if output.output_type == "error"]
        assert bool(errors) == ("raises-exception" in tags(cell)), (label(cell), errors)


def test_outputs_say_what_the_stored_ones_say(lesson, path):
    for shown, stored in zip(code_cells(lesson.model()), code_cells(read(path)), strict=True):
        if "nbval-ignore-output" not in tags(stored):
            said = [sorted((key, holder[key]) for holder, key in texts(cell)) for cell in (shown, stored)]
            assert said[0] == said[1], label(stored)


def test_every_picture_is_shown(lesson):
    for index, cell in enumerate(lesson.model().cells):
        if cell.cell_type == "code" and "live-slider" not in tags(cell):
            pictures = lesson.cell(index).locator(".jp-OutputArea-output img")
            expect(pictures).to_have_count(sum("image/png" in output.get("data", {}) for output in cell.outputs))
            for picture in pictures.all():
                picture.scroll_into_view_if_needed()
                expect(picture).to_be_visible()
                assert picture.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0, label(cell)


def test_each_slider_changes_what_is_shown(lesson, path):
    for index, cell in enumerate(read(path).cells):
        if "live-slider" in tags(cell):
            controls = lesson.cell(index).locator("[role=slider], input[type=checkbox]")
            expect(controls.first).to_be_visible()
            for control in controls.all():
                first = lesson.live(index)
                there, back = moves(control)
                control.press(there)
                lesson.wait_for_live(index, f"{label(cell)}: {there} changes what is shown", changed_from=first)
                control.press(back)
                lesson.wait_for_live(index, f"{label(cell)}: {back} restores the first words", words=first["words"])


def moves(control: Locator) -> tuple[str, str]:
    """The key that moves a control, and the one that moves it back."""
    if control.get_attribute("type") == "checkbox":
        return "Space", "Space"
    keys = ["ArrowRight", "ArrowLeft"]
    at_the_end = control.get_attribute("aria-valuenow") == control.get_attribute("aria-valuemax")
    return tuple(reversed(keys) if at_the_end else keys)


def test_answers_unfold_and_fold(lesson, path):
    folds = lesson.page.locator(".jp-Notebook details")
    expect(folds).to_have_count(sum(cell.source.count("<details>") for cell in markdown_cells(read(path))))
    answer = folds.filter(has=lesson.page.locator("summary", has_text="Answer")).first
    expect_to_unfold_and_fold(answer)


def as_shown(verdict: str) -> str:
    """A verdict as HTML shows it: code without its backticks, and a run of spaces as one."""
    return " ".join(verdict.replace("`", "").split())


def test_broken_code_is_fixed_and_broken_again(lesson, lesson_tasks):
    case = next(task for task in lesson_tasks if task.kind == "Case")
    stub, check, _ = case.below
    diagnosis = as_shown(check.outputs[0].data["text/plain"])
    assert diagnosis.startswith(f"✗ {case.number}: ")
    assert lesson.answer(case.index + 1, case.solutions[0].strip()).startswith(f"✓ {case.number}: right · ")
    assert lesson.answer(case.index + 1, stub.source) == diagnosis


def test_exercise_answered_wrongly_and_rightly(lesson, lesson_tasks):
    task = next(task for task in lesson_tasks if task.kind == "Exercise")
    exercise = find_exercise(task.number)
    mistake = exercise.mistakes[0]
    # A known mistake needs its module: the cell imports it instead of spelling it out.
    wrong = f'from utils.exercises import find_exercise\n\nmistakes = find_exercise("{task.number}").mistakes\n'
    wrong += f"{task.name} = mistakes[0].answer"
    diagnosis = as_shown(f"✗ {task.number}: {mistake.message} (see {exercise.where})")
    assert lesson.answer(task.index + 1, wrong) == diagnosis
    assert lesson.answer(task.index + 1, task.solutions[0].strip()).startswith(f"✓ {task.number}: right · ")


def test_lab_asks_no_other_host_and_nothing_fails_in_the_page(lab, lesson):
    assert lab.complaints == []
