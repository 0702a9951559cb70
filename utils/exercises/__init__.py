"""Checks that say which mistake was made: each compares an answer with the right one and with known wrong ones."""

import contextlib
import copy
import dis
import importlib.util
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from utils.exercises.differences import Raised, difference, hint, one_line, same, shown


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that learners are known to give, and what to tell them."""

    name: str
    answer: Any
    message: str


@dataclass(frozen=True)
class Exercise:
    """An exercise: the right answer, the known wrong ones, and where to look again.

    Answers are plain values, or functions when `cases` lists the arguments to call them with;
    with `keeps_arguments`, a function that changes them is wrong. Where calls are not enough (a
    loader, a class), `probe` turns an answer into what is compared, such as a list of complaints.
    """

    reference: Any
    mistakes: Sequence[Mistake]
    where: str
    cases: Sequence[tuple] | None = None
    keeps_arguments: bool = False
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


def check(number: str, answer: Any) -> Verdict:
    """Compare an answer with the exercise's right answer and with its known mistakes.

    The random states and the exercise's own data are left alone, whatever the answer does.

    Args:
        number: of the exercise, as in the lesson: "1.2", or "1.A" in the clinic.
        answer: the function or value that the exercise asks for.

    Returns:
        A verdict that passed, names the mistake, describes the difference, or says "not attempted yet".

    Raises:
        ValueError: there is no exercise of that number.
    """
    exercise = find_exercise(number)
    if exercise.cases is not None and not callable(answer) and not _untouched(answer):
        message = f"a function is asked for, and your answer is {shown(answer)} (see {exercise.where})"
        return Verdict(False, "no function", f"✗ {number}: {message}")
    with _random_states_kept():
        got = _outcome(exercise, answer)
        if _untouched(answer) or _untouched(got) or _is_empty(answer, exercise):
            return Verdict(False, "not attempted", f"… {number}: not attempted yet")
        expected = _outcome(exercise, exercise.reference)
        if same(got, expected):
            return Verdict(True, None, f"✓ {number}: right")
        found = next((m for m in exercise.mistakes if same(got, _outcome(exercise, m.answer))), None)
    name, message = (found.name, found.message) if found else _explain(exercise, answer, got, expected)
    return Verdict(False, name, f"✗ {number}: {message} (see {exercise.where})")


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


def _outcome(exercise: Exercise, answer: Any) -> Any:
    """Return what the answer comes to: itself, its probe, or its results case by case."""
    if exercise.probe is not None:
        return _attempt(exercise.probe, (answer,))
    if exercise.cases is None:
        return answer
    return [
        _attempt(answer, copy.deepcopy(case), case if exercise.keeps_arguments else None) for case in exercise.cases
    ]


def _attempt(function: Any, arguments: tuple, unchanged: tuple | None = None) -> Any:
    try:
        result = function(*arguments)
    except (Exception, SystemExit) as error:  # an answer may fail in any way: the failure is what is judged
        return Raised(type(error).__name__, one_line(_first_line, error))
    if unchanged is not None and not same(arguments, unchanged):
        return Raised("ChangedArgument", "the function changed what it was given; make a new object instead")
    try:
        return _kept(result)
    except RecursionError:  # lists in each other
        return result


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "")


def _kept(result: Any) -> Any:
    """Return a result as it is now: an answer may hand out one list or tensor again and again."""
    if isinstance(result, torch.Tensor):
        return result.detach().clone()
    if isinstance(result, (list, tuple)) and all(item is not result for item in result):
        kept = [_kept(item) for item in result]
        return tuple(kept) if isinstance(result, tuple) else kept
    return result


def _explain(exercise: Exercise, answer: Any, got: Any, expected: Any) -> tuple[str, str]:
    """Return the kind of difference and a sentence on the first place that shows it."""
    if exercise.probe is not None:
        complains = isinstance(got, list) and got and isinstance(got[0], str)
        return ("complaint", got[0]) if complains else difference("your answer", got, expected)
    if exercise.cases is None:
        return hint(got, expected)
    case, got, expected = next((c, g, e) for c, g, e in zip(exercise.cases, got, expected) if not same(g, e))
    name = getattr(answer, "__name__", "<lambda>").replace("<lambda>", "your function")
    call = f"{name}({', '.join(map(shown, case))})"
    if got is None:
        return "nothing returned", f"{call} returns None: is the `return` missing, or did you print instead?"
    return difference(call, got, expected)


def _untouched(outcome: Any, depth: int = 3) -> bool:
    """Whether a stub's `...` is still there, in a value or in what a function made of it."""
    if isinstance(outcome, Raised):
        return "ellipsis" in outcome.text.lower()
    if isinstance(outcome, Mapping):
        outcome = list(outcome.values())
    if isinstance(outcome, (list, tuple)):
        return depth > 0 and any(_untouched(item, depth - 1) for item in outcome)
    return outcome is ...


def _is_empty(answer: Any, exercise: Exercise) -> bool:
    """Whether the answer is a function with nothing but `...` in it, or a class of such functions."""
    if isinstance(answer, type) and isinstance(exercise.reference, type):
        methods = [item for item in vars(answer).values() if callable(item)]
        return all(_is_empty(method, exercise) for method in methods) if methods else answer.__bases__ == (object,)
    code = getattr(answer, "__code__", None)
    if code is None or code.co_name == "<lambda>":
        return False
    # Such a function returns the constant None, and does nothing else.
    return all(
        step.opname in ("RESUME", "NOP", "RETURN_VALUE") or (step.opname.endswith("CONST") and step.argval is None)
        for step in dis.get_instructions(code)
    )


@contextlib.contextmanager
def _random_states_kept() -> Iterator[None]:
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
