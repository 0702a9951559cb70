"""Checks that say which mistake was made: each compares an answer with the right one and with known wrong ones."""

import contextlib
import copy
import dis
import importlib.util
import inspect
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
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
    with `keeps_arguments`, a function that changes its arguments is wrong. Where calls are not
    enough (a loader, a class), `probe` turns an answer into what is compared, such as a list of
    complaints.
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
        number: the exercise's number, as in the lesson: "1.2", or "1.A" in the clinic.
        answer: the function or value that the exercise asks for.

    Returns:
        A verdict that passed, names the mistake, describes the difference, or says "not attempted yet".

    Raises:
        ValueError: there is no exercise with that number.
    """
    exercise = find_exercise(number)
    try:
        with _random_states_kept(), torch.device("cpu"):  # where the exercises' data is, whatever the default device
            mistake, message = _diagnose(exercise, answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an answer's own code also runs where the answer is merely compared or printed
        raised = Raised(type(error).__name__, one_line(_first_line, error))
        mistake, message = difference("comparing your answer", raised, None)
    if mistake is None:
        return Verdict(True, None, f"✓ {number}: right")
    if mistake == "not attempted":
        return Verdict(False, mistake, f"… {number}: not attempted yet")
    return Verdict(False, mistake, f"✗ {number}: {message} (see {exercise.where})")


def find_exercise(number: str) -> Exercise:
    """Return the exercise with that number, such as "1.2"; ValueError if there is none."""
    lesson = str(number).split(".")[0]
    module = f"utils.exercises.lesson_{lesson:0>2}"
    if not lesson.isdecimal() or importlib.util.find_spec(module) is None:
        raise ValueError(f"there is no exercise {number!r}: no lesson {lesson!r} has exercises")
    exercises = importlib.import_module(module).EXERCISES
    if number not in exercises:
        raise ValueError(f"there is no exercise {number!r}: lesson {lesson} has {', '.join(exercises)}")
    return exercises[number]


def _diagnose(exercise: Exercise, answer: Any) -> tuple[str | None, str]:
    """Return the name of the mistake, None if the answer is right, and what to tell the learner."""
    if _untouched(answer) or _is_empty(answer, exercise):
        return "not attempted", ""
    if exercise.cases is not None and not callable(answer):
        return "no function", f"the exercise asks for a function, and your answer is {shown(answer)}"
    got, expected = _outcome(exercise, answer), _outcome(exercise, exercise.reference)
    if _untouched(got, answer):
        return "not attempted", ""
    if same(got, expected):
        return None, ""
    for known in exercise.mistakes:
        if same(got, _outcome(exercise, known.answer)):
            return known.name, known.message
    return _explain(exercise, answer, got, expected)


def _outcome(exercise: Exercise, answer: Any) -> Any:
    """Return what is compared: the answer itself, its probe, or its results case by case."""
    if exercise.probe is not None:
        return _attempt(exercise.probe, (answer,))
    if exercise.cases is None:
        return _kept(answer)
    return [
        _attempt(answer, copy.deepcopy(case), case if exercise.keeps_arguments else None) for case in exercise.cases
    ]


def _attempt(function: Any, arguments: tuple, unchanged: tuple | None = None) -> Any:
    try:
        result = function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an answer may fail in any way: the failure is then its outcome
        return Raised(type(error).__name__, one_line(_first_line, error))
    if unchanged is not None and not same(arguments, unchanged):
        return Raised("ChangedArgument", "the function changed its arguments; make a new object instead")
    return _kept(result)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "")


def _kept(result: Any) -> Any:
    """Return a copy of a result, since an answer may return the same list or tensor again and change it."""
    try:
        return _copied(result)
    except RecursionError:  # lists that contain each other
        return result


def _copied(result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return result.detach().clone()
    if isinstance(result, (list, tuple)):
        copied = [_copied(item) for item in result]
        return tuple(copied) if isinstance(result, tuple) else copied
    return result


def _explain(exercise: Exercise, answer: Any, got: Any, expected: Any) -> tuple[str, str]:
    """Return the kind of difference and a sentence on the first case that shows it."""
    if exercise.probe is not None:
        complains = isinstance(got, list) and got and isinstance(got[0], str)
        return ("complaint", one_line(str, got[0])) if complains else difference("your answer", got, expected)
    if exercise.cases is None:
        return hint(got, expected)
    case, got, expected = next((c, g, e) for c, g, e in zip(exercise.cases, got, expected) if not same(g, e))
    name = getattr(answer, "__name__", "<lambda>")
    name = name if isinstance(name, str) and name.isidentifier() else "your function"
    call = f"{name}({', '.join(map(shown, case))})"
    if got is None:
        return "nothing returned", f"{call} returns None: is the `return` missing, or did you print instead?"
    return difference(call, got, expected)


# What Python, torch and NumPy call a `...` used as a value. Their error for a float as an index also
# says "ellipsis (`...`)", and that of a dictionary for the key x[..., 0] "(Ellipsis, 0)": there it was an index.
_ELLIPSIS = re.compile(r"\bellipsis\b(?! \(`)|\bEllipsis\b(?![,)])")


def _untouched(outcome: Any, answer: Any = None, depth: int = 3) -> bool:
    """Whether a stub's `...` is still there: in a value, in what a function returned, or as the cause of its error."""
    if isinstance(outcome, Raised):
        return bool(_ELLIPSIS.search(outcome.text)) and _has_ellipsis(answer)
    if isinstance(outcome, Mapping):
        outcome = list(outcome.values())
    if isinstance(outcome, (list, tuple)):
        return depth > 0 and any(_untouched(item, answer, depth - 1) for item in outcome)
    return outcome is ...


def _has_ellipsis(part: Any) -> bool:
    """Whether `...` is written in a function or class, or in what it defines; where no code can be seen, it may be."""
    if isinstance(part, type):
        return any(_has_ellipsis(item) for item in vars(part).values() if callable(item) or item is ...)
    if callable(part):
        part = getattr(inspect.unwrap(part), "__code__", ...)
    if isinstance(part, CodeType):
        part = part.co_consts
    return any(map(_has_ellipsis, part)) if isinstance(part, tuple) else part is ...


def _is_empty(answer: Any, exercise: Exercise) -> bool:
    """Whether the answer is a function with nothing but `...` in it, or a class of such functions."""
    if isinstance(answer, type) and isinstance(exercise.reference, type):
        methods = [item for item in vars(answer).values() if callable(item)]
        return all(_is_empty(method, exercise) for method in methods) if methods else answer.__bases__ == (object,)
    code = getattr(answer, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name == "<lambda>":
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
