"""Checks that say which mistake was made: each compares an answer with the right one and with known wrong ones."""

import copy
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that learners are known to give, and what to tell them."""

    name: str
    answer: Any
    message: str


@dataclass(frozen=True)
class Exercise:
    """An exercise: the right answer, the known wrong ones, and where to look again.

    Answers are plain values, or functions when `cases` lists the arguments to call them with.
    `probe` turns an answer into what is compared, where calling it is not enough (a class, say).
    """

    reference: Any
    mistakes: Sequence[Mistake]
    where: str
    cases: Sequence[tuple] | None = None
    probe: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Verdict:
    """What a check found; shown as one line.

    Attributes:
        passed: whether the answer is right.
        mistake: None when passed, else the mistake's name or the kind of difference.
        message: the line itself.
    """

    passed: bool
    mistake: str | None
    message: str

    def __repr__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Raised:
    """An answer's error, kept as its outcome: some known mistakes show as errors."""

    kind: str
    text: str


def check(number: str, answer: Any) -> Verdict:
    """Compare an answer with the exercise's right answer and with its known mistakes.

    The caller's random state and the exercise's own data are left alone, whatever the answer does.

    Args:
        number: of the exercise, as in the lesson: "1.2", or "1.A" in the clinic.
        answer: the function or value that the exercise asks for.

    Returns:
        A verdict that passed, names the mistake, describes the difference, or says "not attempted yet".

    Raises:
        ValueError: there is no exercise of that number.
    """
    exercise = find_exercise(number)
    with torch.random.fork_rng(devices=[]):
        got = _outcomes(exercise, answer)
        expected = _outcomes(exercise, exercise.reference)
        if _untouched(answer) or _untouched(got):
            return Verdict(False, "not attempted", f"… {number}: not attempted yet")
        if _same(got, expected):
            return Verdict(True, None, f"✓ {number}: right")
        for mistake in exercise.mistakes:
            if _same(got, _outcomes(exercise, mistake.answer)):
                return Verdict(False, mistake.name, f"✗ {number}: {mistake.message} (see {exercise.where})")
    kind, sentence = _difference(exercise, answer, got, expected)
    return Verdict(False, kind, f"✗ {number}: {sentence} (see {exercise.where})")


def find_exercise(number: str) -> Exercise:
    """Return the exercise of that number, such as "1.2"; ValueError if there is none."""
    lesson = str(number).split(".")[0]
    module = f"utils.exercises.lesson_{lesson:0>2}"
    if not lesson.isdecimal() or importlib.util.find_spec(module) is None:
        raise ValueError(f"there is no exercise {number!r}: no lesson {lesson!r} has exercises")
    exercises = importlib.import_module(module).EXERCISES
    if number not in exercises:
        raise ValueError(f"there is no exercise {number!r}: lesson {lesson} has {', '.join(exercises)}")
    return exercises[number]


def _outcomes(exercise: Exercise, answer: Any) -> Any:
    """Return what the answer comes to: itself, its probe, or its results case by case."""
    if exercise.probe is not None:
        return _attempt(exercise.probe, (answer,))
    if exercise.cases is None:
        return answer
    return [_attempt(answer, case) for case in exercise.cases]


def _attempt(function: Any, arguments: tuple) -> Any:
    try:
        return function(*copy.deepcopy(arguments))
    except Exception as error:  # an answer may fail in any way: the failure is what is judged
        return Raised(type(error).__name__, str(error).strip().split("\n")[0])


def _untouched(outcome: Any) -> bool:
    """Whether a stub's `...` is still there, in a value or in what a function made of it."""
    if isinstance(outcome, Raised):
        return "ellipsis" in outcome.text.lower()
    if isinstance(outcome, (list, tuple)):
        return any(_untouched(item) for item in outcome)
    return outcome is ...


def _same(a: Any, b: Any) -> bool:
    """Whether two outcomes agree: tensors in dtype, shape and (nearly) values; lists and tuples are alike."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, atol=1e-5, equal_nan=True)
    if isinstance(a, Raised) and isinstance(b, Raised):
        return a.kind == b.kind
    if _kind(a) != _kind(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return bool(np.isclose(a, b, rtol=1e-4, equal_nan=True))
    return bool(a == b)


def _difference(exercise: Exercise, answer: Any, got: Any, expected: Any) -> tuple[str, str]:
    """Return the kind of difference and a sentence on the first place that shows it."""
    if exercise.probe is not None:
        return _describe("your answer", got, expected)
    if exercise.cases is None:
        return _hint(got, expected)
    if not callable(answer):
        return "no function", f"a function is asked for, and your answer is {_shown(answer)}"
    case, got, expected = next((case, g, e) for case, g, e in zip(exercise.cases, got, expected) if not _same(g, e))
    return _describe(f"for ({', '.join(map(_shown, case))}) your function's result", got, expected)


def _hint(got: Any, expected: Any) -> tuple[str, str]:
    """Return a difference of plain values without giving the right one away."""
    if _kind(got) != "list" or _kind(expected) != "list" or len(got) != len(expected):
        kind, sentence = _describe("your answer", got, expected)
        return kind, f"your answer is {_shown(got)}, which is not it" if kind == "wrong value" else sentence
    wrong = [str(place) for place, (g, e) in enumerate(zip(got, expected)) if not _same(g, e)]
    return "wrong value", f"not right yet, counting from 0: item {', '.join(wrong)}"


def _describe(subject: str, got: Any, expected: Any) -> tuple[str, str]:
    if isinstance(got, Raised):
        return "raised", f"{subject} is an error, {got.kind}: {got.text}"
    if isinstance(expected, Raised):
        return "no error", f"{subject} is {_shown(got)}, where a {expected.kind} is asked for"
    if _kind(got) != _kind(expected):
        return (
            "wrong type",
            f"{subject} is {_shown(got)} ({_kind(got)}), where {_article(_kind(expected))} is asked for",
        )
    if isinstance(got, Tensor) and got.shape != expected.shape:
        return "wrong shape", f"{subject} has shape {tuple(got.shape)}, not {tuple(expected.shape)}"
    if isinstance(got, Tensor) and got.dtype != expected.dtype:
        return "wrong dtype", f"{subject} holds {got.dtype}, not {expected.dtype}"
    if isinstance(got, (list, tuple)) and len(got) != len(expected):
        return "wrong length", f"{subject} is {_shown(got)}: {len(got)} items, not {len(expected)}"
    return "wrong value", f"{subject} is {_shown(got)}, not {_shown(expected)}"


def _kind(value: Any) -> str:
    """Return a value's type in words; numbers of Python and NumPy count as the same, lists and tuples too."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, (list, tuple)):
        return "list"
    return "tensor" if isinstance(value, Tensor) else type(value).__name__


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _shown(value: Any) -> str:
    """Return a value on one line, cut in the middle where it is long."""
    if isinstance(value, Tensor):
        value = value.tolist() if value.numel() <= 16 else f"a tensor of shape {tuple(value.shape)}"
        return str(value)
    if callable(value):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:50]} … {text[-20:]}"
