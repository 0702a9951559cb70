"""Exercises: the right answer passes, every known mistake gets its own diagnosis, and nonsense gets a kind answer."""

import ast
import inspect
import re

import pytest
import torch
from lessons import NOTEBOOKS, ROOT, headings, read, rule, tasks

from utils.exercises import check, exercises_of

LESSONS = sorted(path.stem for path in (ROOT / "utils" / "exercises").glob("lesson_[0-9][0-9].py"))
EXERCISES = {number: exercise for lesson in LESSONS for number, exercise in exercises_of(lesson[-2:]).items()}
MISTAKES = [
    pytest.param(number, mistake, id=f"{number} {mistake.name}")
    for number, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
]


def given(number, known):
    """What is checked: a function or class itself, or the values that it returns where a value is typed in."""
    exercise = EXERCISES[number]
    if exercise.is_called:
        return [known]
    return [*known()] if inspect.isgeneratorfunction(known) else [known()]


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
    assert [f"lesson_{path.name[:2]}" for path in NOTEBOOKS if tasks(read(path))] == LESSONS


@rule
def test_stored_checks_show_what_an_untouched_notebook_gives(path):
    for task in tasks(read(path)):
        stored = [output.get("data", {}).get("text/plain") for output in task.below[1].get("outputs", [])]
        expected = [f"… {task.number}: not attempted yet"]
        if task.kind == "Case":  # the broken code makes a mistake that is known by name
            mistakes = EXERCISES[task.number].mistakes if task.number in EXERCISES else ()
            expected = [f"✗ {task.number}: {known.message} (see {EXERCISES[task.number].where})" for known in mistakes]
        if len(stored) != 1 or stored[0] not in expected:
            yield f"check of {task.number}", f"its stored output is {stored}, not one of {expected}"


@pytest.mark.parametrize("number", EXERCISES)
def test_the_right_answer_passes(number):
    [right] = given(number, EXERCISES[number].right)
    verdict = check(number, right)
    assert verdict.passed, verdict
    assert verdict.mistake is None


@pytest.mark.parametrize(("number", "mistake"), MISTAKES)
def test_each_mistake_gets_its_own_diagnosis(number, mistake):
    answers = given(number, mistake.answer)
    for answer in answers[:: len(answers) // 50 + 1]:  # of many spellings a sample
        verdict = check(number, answer)
        assert (verdict.passed, verdict.mistake) == (False, mistake.name)
        assert verdict.message == repr(verdict) == f"✗ {number}: {mistake.message} (see {EXERCISES[number].where})"
        assert len(verdict.message) <= 200
        assert "\n" not in verdict.message


def test_the_readme_shows_a_true_verdict():
    line = re.search(r"^✗ (\S+): .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    exercise = EXERCISES[line[1]]
    assert line[0] in [f"✗ {line[1]}: {known.message} (see {exercise.where})" for known in exercise.mistakes]


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
def test_the_right_answer_has_the_parameters_of_the_stub(path):
    """The verdicts name them."""
    for task in tasks(read(path)):
        right = EXERCISES[task.number].right
        for node in ast.parse(task.below[0].source).body:
            if isinstance(node, ast.FunctionDef) and node.name == task.name and inspect.isfunction(right):
                stub, ours = [argument.arg for argument in node.args.args], [*inspect.signature(right).parameters]
                if stub != ours:
                    yield task.number, f"the stub has the parameters {stub}, the right answer {ours}"


@rule
def test_the_task_says_what_is_asked_for(path):
    """In the words of `asks`, in the task or its stub: the verdicts on other things repeat them."""
    for task in tasks(read(path)):
        nb = read(path)
        text = " ".join((nb.cells[task.index].source + task.below[0].source).replace("#", " ").split())
        if (asks := EXERCISES[task.number].asks) not in text:
            yield task.number, f"neither task nor stub says “{asks}”"


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


@pytest.mark.parametrize("number", EXERCISES)
def test_nonsense_gets_one_kind_line(number):
    kind = re.compile(rf"✗ {number}: .+ \(see {re.escape(EXERCISES[number].where)}\)")
    messages = {name: check(number, answer).message for name, answer in NONSENSE.items()}
    unkind = {
        name: message
        for name, message in messages.items()
        if not kind.fullmatch(message) or "Traceback" in message or len(message) > 200
    }
    assert not unkind


@pytest.mark.parametrize("number", EXERCISES)
def test_an_untouched_stub_is_not_attempted(number):
    exercise = EXERCISES[number]
    stubs = [...]
    if exercise.is_called:
        stubs.append(lambda *_, **__: ...)
    assert {check(number, stub).message for stub in stubs} == {f"… {number}: not attempted yet"}
