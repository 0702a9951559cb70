"""Exercises: the right answer passes, every known mistake gets its own diagnosis, and nonsense gets a kind answer."""

import importlib
import re

import pytest
import torch
from lessons import NOTEBOOKS, ROOT, headings, read, rule, tasks

from utils.exercises import check

LESSONS = sorted(path.stem for path in (ROOT / "utils" / "exercises").glob("lesson_[0-9][0-9].py"))
EXERCISES = {
    number: exercise
    for lesson in LESSONS
    for number, exercise in importlib.import_module(f"utils.exercises.{lesson}").EXERCISES.items()
}
MISTAKES = [
    pytest.param(number, mistake, id=f"{number} {mistake.name}")
    for number, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
]


def declared(path):
    """The exercises of a notebook's lesson."""
    lesson = f"{int(path.name[:2])}."
    return {number: exercise for number, exercise in EXERCISES.items() if number.startswith(lesson)}


def raises():
    raise RuntimeError("first line\nTraceback (most recent call last):")


def generates(*_):
    yield 1


NONSENSE = {
    "None": None,
    "a number": 42,
    "a string": "text",
    "an empty list": [],
    "a list of None": [None],
    "a dictionary": {},
    "a tensor": torch.zeros(1),
    "an array": torch.zeros(2, 2).numpy(),
    "a function that raises": lambda *_, **__: raises(),
    "a function of nothing": lambda: 0,
    "a function that returns None": lambda *_, **__: None,
    "a function that returns a tensor": lambda *_, **__: torch.zeros(2, 2),
    "a class": type("Answer", (), {"answer": lambda self: 42}),
    "a module's class": torch.nn.Linear,
    "a generator function": generates,
}


@rule
def test_lesson_and_module_have_the_same_exercises(path):
    found, known = [task.number for task in tasks(read(path))], list(declared(path))
    if found != known:
        yield "exercises", f"{found} in the notebook, {known} in utils/exercises"


def test_each_lesson_module_has_its_notebook():
    assert [f"lesson_{path.name[:2]}" for path in NOTEBOOKS] == LESSONS


@rule
def test_stored_checks_show_what_an_untouched_notebook_gives(path):
    for task in tasks(read(path)):
        stored = [output.get("data", {}).get("text/plain") for output in task.below[1].get("outputs", [])]
        expected = [f"… {task.number}: not attempted yet"]
        if task.kind == "Case":  # the broken code makes a mistake that is known by name
            mistakes = EXERCISES[task.number].mistakes if task.number in EXERCISES else ()
            expected = [check(task.number, mistake.answer).message for mistake in mistakes]
        if len(stored) != 1 or stored[0] not in expected:
            yield f"check of {task.number}", f"its stored output is {stored}, not one of {expected}"


@pytest.mark.parametrize("number", EXERCISES)
def test_the_right_answer_passes(number):
    verdict = check(number, EXERCISES[number].reference)
    assert verdict.passed, verdict
    assert verdict.mistake is None


@pytest.mark.parametrize(("number", "mistake"), MISTAKES)
def test_each_mistake_gets_its_own_diagnosis(number, mistake):
    verdict = check(number, mistake.answer)
    assert (verdict.passed, verdict.mistake) == (False, mistake.name)
    assert verdict.message == repr(verdict) == f"✗ {number}: {mistake.message} (see {EXERCISES[number].where})"
    assert "\n" not in verdict.message


@pytest.mark.parametrize("number", EXERCISES)
def test_mistakes_are_several_and_different(number):
    mistakes = EXERCISES[number].mistakes
    least = 3 if number.split(".")[1].isdigit() else 2
    assert len(mistakes) >= least, f"{number} knows {len(mistakes)} mistakes, and needs at least {least}"
    for what in ("name", "message"):
        texts = [getattr(mistake, what) for mistake in mistakes]
        assert len(set(texts)) == len(texts), f"two mistakes of {number} have the same {what}"
        assert all(texts), f"a mistake of {number} has an empty {what}"


@rule
def test_where_to_look_is_a_section_of_the_lesson(path):
    sections = {text.split()[0] for level, text in headings(read(path)) if level == 2}
    for number, exercise in declared(path).items():
        named = re.findall(r"\d+\.\d+", exercise.where)
        if not exercise.where.startswith("section") or not named or not sections.issuperset(named):
            yield (
                f"exercise {number}",
                f"it sends the learner to “{exercise.where}”, which is not a section of this lesson",
            )


# A probe does more with an answer than call it; what is called is tested in test_checks.py.
@pytest.mark.parametrize("number", [number for number, exercise in EXERCISES.items() if exercise.probe is not None])
def test_nonsense_gets_one_kind_line(number):
    kind = re.compile(rf"✗ {number}: .+ \(see {re.escape(EXERCISES[number].where)}\)")
    messages = {name: check(number, answer).message for name, answer in NONSENSE.items()}
    unkind = {
        name: message
        for name, message in messages.items()
        if not kind.fullmatch(message) or "Traceback" in message or len(message) >= 400
    }
    assert not unkind


@pytest.mark.parametrize("number", EXERCISES)
def test_an_untouched_stub_is_not_attempted(number):
    exercise = EXERCISES[number]
    stubs = [...]
    if exercise.cases is not None or exercise.probe is not None:
        stubs.append(lambda *_, **__: ...)
    assert {check(number, stub).message for stub in stubs} == {f"… {number}: not attempted yet"}
