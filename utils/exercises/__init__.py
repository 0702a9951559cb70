"""Checks that say which mistake was made: each compares an answer with the right one and with known wrong ones."""

import contextlib
import html
import importlib.util
import inspect
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from utils.exercises.diagnosis import Diagnosis
from utils.exercises.limits import alone, limited
from utils.exercises.outcomes import demand, raised
from utils.exercises.shown import cut, one_line
from utils.exercises.slips import spelled
from utils.workbook.saved import passed, stored_verdicts

__all__ = ["Exercise", "Mistake", "Verdict", "check", "demand", "exercises_of", "find_exercise", "first_wrong"]

LONGEST = 200  # characters of a verdict

EXERCISES: dict[str, type["Exercise"]] = {}
CHECKED: dict[str, bool] = {}  # number -> whether its last check in this kernel passed


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that learners are known to give, and what to tell them."""

    name: str
    answer: Any
    message: str


class Exercise:
    """An exercise as a class body: what its answers are called with, the right one, and known wrong ones.

        class Scaled(Exercise, number="5.1", where="section 5.3", asks="a tensor of scores"):
            cases = {"two queries": (QUERIES[:2], KEYS)}

            def right(queries, keys):
                return queries @ keys.mT / keys.shape[-1] ** 0.5

            def not_divided(queries, keys):
                \"\"\"the scores are not divided by the square root of head_dim\"\"\"
                return queries @ keys.mT

    Every other function or class with a docstring is a known mistake: its name, what it does, and what is told to
    whoever does the same. Where the answer is a value that is typed in, `right` and the mistakes return it; a mistake
    with several spellings yields them.

    Attributes:
        asks: what the exercise asks for, in the words of its task: "a list of three numbers".
        cases: the arguments of each call, as a dict under names that complete "for …", or as a list where the
            arguments are short. They tell right answers from wrong ones, and the known mistakes from each other.
        edges: more cases, which right answers must pass: a mistake is recognised whatever happens in them.
        call: what is done with an answer and the arguments of a case, instead of calling it; `demand` complains.
        exact: whether types must agree: list or tensor, int or float, the dtype.
        may_change: whether an answer may change its arguments.
    """

    number: str
    where: str
    asks: str
    cases: Mapping[str, tuple] | Sequence[tuple] = ()
    edges: Mapping[str, tuple] | Sequence[tuple] = ()
    call: Callable | None = None
    exact = False
    may_change = False
    right: Any
    parameters: Sequence[str]  # of `right`, where it is a function
    mistakes: Sequence[Mistake]
    is_called: bool
    all_cases: Sequence[tuple[str | None, tuple]]

    def __init_subclass__(cls, number: str, where: str, asks: str) -> None:
        cls.number, cls.where, cls.asks = number, where, asks
        cls.mistakes = [
            Mistake(name.replace("_", " "), item, item.__doc__)
            for name, item in vars(cls).items()
            if callable(item) and item.__doc__ and name not in ("right", "call")
        ]
        cls.parameters = [] if isinstance(cls.right, type) else list(inspect.signature(cls.right).parameters)
        cls.is_called = bool(cls.cases) or cls.call is not None
        cls.all_cases = [*_labelled(cls.cases or ([()] if cls.call else [])), *_labelled(cls.edges)]
        EXERCISES[number] = cls


def _labelled(cases: Mapping[str, tuple] | Sequence[tuple]) -> list[tuple[str | None, tuple]]:
    return [*cases.items()] if isinstance(cases, Mapping) else [(None, case) for case in cases]


@dataclass(frozen=True)
class Verdict:
    """What a check found; shown as one line, in colour where HTML is shown.

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

    def _repr_html_(self) -> str:
        """Return the line with its mark on a coloured ground: white on each of the three can be read on any page."""
        mark, text = self.message.split(" ", 1)
        colour = {"✓": "#1a7f37", "✗": "#b45309", "…": "#5f6b7a"}[mark]
        parts = [
            f"<code>{html.escape(part)}</code>" if odd % 2 else html.escape(part)
            for odd, part in enumerate(re.split("`([^`]*)`", text))
        ]
        return (
            '<div class="verdict" style="display: flex; gap: 0.6em; align-items: baseline; white-space: normal">'
            f'<span style="background: {colour}; color: #ffffff; border-radius: 0.25em; padding: 0 0.4em">{mark}</span>'
            f"<span>{''.join(parts)}</span></div>"
        )


def check(number: str, answer: Any) -> Verdict:
    """Compare an answer with the exercise's right answer and with its known mistakes.

    The random states and the exercise's own data are left alone, whatever the answer does. What does not end within
    a few seconds, or takes gigabytes of memory, is stopped.

    Args:
        number: the exercise's number, as in the lesson: "1.2", or "1.A" in the clinic.
        answer: the function, class or value that the exercise asks for.

    Returns:
        A verdict that passed, names the mistake, describes the difference, or says "not attempted yet".

    Raises:
        ValueError: there is no exercise with that number.
    """
    exercise = find_exercise(number)
    diagnosis = Diagnosis(exercise, answer)
    try:
        with alone(), _random_states_kept():
            diagnosis.prepare()
            mistake, message = limited(diagnosis.verdict)
    except (TimeoutError, MemoryError) as error:
        mistake = "does not end" if isinstance(error, TimeoutError) else "too much memory"
        message = f"{diagnosis.current} {error}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an answer's own code also runs where the answer is merely compared or printed
        mistake, message = "raised", f"comparing your answer raises {spelled(raised(error))}"
    CHECKED[number] = mistake is None
    solved = "" if mistake else f" · {_solved(number.split('.')[0])} in this lesson"
    return worded(exercise, mistake, message, solved)


def worded(exercise: type[Exercise], mistake: str | None, message: str, solved: str = "") -> Verdict:
    """Return the verdict that says in one line what a diagnosis found."""
    number = exercise.number
    if mistake is None:
        return Verdict(True, None, f"✓ {number}: right{solved}")
    if mistake == "not attempted":
        return Verdict(False, mistake, f"… {number}: not attempted yet")
    start, end = f"✗ {number}: ", f" (see {exercise.where})"
    return Verdict(False, mistake, start + cut(one_line(str, message), LONGEST - len(start + end)) + end)


def _solved(lesson: str) -> str:
    """Count what was solved in this kernel, and earlier according to the saved notebook, in the kernel's folder."""
    known = exercises_of(lesson)
    earlier = stored_verdicts(int(lesson), Path())
    solved = [number for number in known if CHECKED.get(number, passed(earlier.get(number)))]
    return f"{len(solved)} of {len(known)}"


def find_exercise(number: str) -> type[Exercise]:
    """Return the exercise with that number, such as "1.2"; ValueError if there is none."""
    lesson = str(number).split(".")[0]
    known = exercises_of(lesson)
    if not known:
        raise ValueError(f"there is no exercise {number!r}: no lesson {lesson!r} has exercises")
    if not isinstance(number, str) or number not in known:
        raise ValueError(f"there is no exercise {number!r}: lesson {int(lesson)} has {', '.join(known)}")
    return known[number]


def first_wrong(right: Sequence[bool], index: int) -> Iterator[list[bool]]:
    """Yield each answer of True and False that is right up to an index, wrong at it, and anything after it."""
    for rest in itertools.product([True, False], repeat=len(right) - index - 1):
        yield [*right[:index], not right[index], *rest]


def exercises_of(lesson: str) -> dict[str, type[Exercise]]:
    """Return the exercises of a lesson, such as "4", by their numbers; none if there is no such lesson."""
    module = f"utils.exercises.lesson_{lesson:0>2}"
    if not lesson.isdecimal() or importlib.util.find_spec(module) is None:
        return {}
    importlib.import_module(module)
    return {number: exercise for number, exercise in EXERCISES.items() if number.split(".")[0] == str(int(lesson))}


@contextlib.contextmanager
def _random_states_kept() -> Iterator[None]:
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
