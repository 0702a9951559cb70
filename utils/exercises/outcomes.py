"""What comes of an answer: the result of each call, an error, a complaint, or an argument that was changed."""

import copy
import functools
import inspect
import random
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from utils.exercises.limits import Stopped
from utils.exercises.shown import one_line
from utils.exercises.values import Changed, Complained, Raised, identical

if TYPE_CHECKING:
    from utils.exercises import Exercise, Mistake


class Complaint(Exception):
    """Raised by `demand`."""


def demand(holds: Any, complaint: str) -> None:
    """Complain of an answer if something does not hold; what is nan does not."""
    if not bool(holds):
        raise Complaint(complaint)


EMPTY = ("empty", "empty_like", "new_empty")


class EmptyFilled(TorchFunctionMode):
    """While it is on, torch.empty is filled: no answer may be right by what lay in memory."""

    def __init__(self, with_zero: bool = False) -> None:
        super().__init__()
        self.with_zero = with_zero

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") not in EMPTY or made.is_meta or made.is_quantized:
            return made
        return made.zero_() if self.with_zero else made.fill_(unset(made.dtype))


def unset(dtype: torch.dtype) -> float:
    """Return what torch.empty is filled with: nan, or the largest integer."""
    if dtype.is_floating_point or dtype.is_complex:
        return torch.nan
    return True if dtype == torch.bool else torch.iinfo(dtype).max


@functools.cache
def expected_of(exercise: "type[Exercise]") -> list:
    """Return the outcomes of the right answer; where it raises, any error of that kind is right."""
    [found] = _outcomes_of(exercise, exercise.right)
    return [Raised(item.kind, None) if isinstance(item, Raised) else item for item in found]


@functools.cache
def known_of(exercise: "type[Exercise]") -> list[tuple["Mistake", list]]:
    """Return each mistake with its outcomes; one that yields several typed-in values, once with each."""
    return [(known, outcomes) for known in exercise.mistakes for outcomes in _outcomes_of(exercise, known.answer)]


def _outcomes_of(exercise: "type[Exercise]", known: Callable) -> list[list]:
    if not exercise.is_called:
        return [[kept(value)] for value in (known() if inspect.isgeneratorfunction(known) else [known()])]
    with warnings.catch_warnings(action="ignore"):  # what a known mistake warns of is not the learner's doing
        return [[attempt(exercise, known, case) for _, case in exercise.all_cases]]


def attempt(exercise: "type[Exercise]", answer: Any, case: tuple) -> Any:
    """Return what comes of one call; the same random numbers are drawn in each."""
    arguments, before = copy.deepcopy(case), copy.deepcopy(case)
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    dtype = torch.get_default_dtype()
    try:
        with torch.enable_grad():  # which ends what an answer has set
            result = exercise.call(answer, *arguments) if exercise.call else answer(*arguments)
    except (KeyboardInterrupt, Stopped):
        raise
    except Complaint as complaint:
        return Complained(str(complaint))
    except BaseException as error:  # an answer may fail in any way: the failure is then its outcome
        return raised(error)
    finally:
        torch.set_default_dtype(dtype)
    result = kept(result)
    if exercise.may_change or identical(arguments, before):
        return result
    names = [] if exercise.call else exercise.parameters
    return Changed(result, tuple(n for n, a, b in zip(names, arguments, before) if not identical(a, b)))


def raised(error: BaseException) -> Raised:
    def first_line(error: BaseException) -> str:
        return next(iter(str(error).strip().splitlines()), "")

    return Raised(type(error), one_line(first_line, error))


def kept(result: Any) -> Any:
    """Return a copy of a result, since an answer may return the same list or tensor again and change it."""
    try:
        return _copied(result)
    except RecursionError:  # lists that contain each other
        return result


def _copied(result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return result.detach().clone()
    if isinstance(result, np.ndarray):
        return result.copy()
    if isinstance(result, (list, tuple)):
        copied = [_copied(item) for item in result]
        return tuple(copied) if isinstance(result, tuple) else copied
    return result
