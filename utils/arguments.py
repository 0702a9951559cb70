"""Arguments parsed once: each function returns the plain value, or names the argument and what is allowed."""

import math
import operator
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor


def as_integer(name: str, value: Any, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return an integer of any library as an int.

    Raises:
        TypeError: `value` is not an integer; a bool does not count as one.
        ValueError: `value` is outside at_least..at_most.
    """
    try:
        # An int is taken as it is: operator.index would bind a compiled model to this one value.
        integer = value if type(value) is int else None if _is_bool(value) else operator.index(value)
    except TypeError:
        integer = None
    if integer is None:
        raise TypeError(f"{name} must be an integer, not {value!r}")
    _check_range(name, integer, at_least, at_most)
    return integer


def as_number(name: str, value: Any, at_least: float | None = None, at_most: float | None = None) -> float:
    """Return a finite real number (`numbers.Real`) as a float; raises as `as_integer` does."""
    if _is_bool(value) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not abs(value) < math.inf:  # nan neither
        raise ValueError(f"{name} must be finite, not {value}")
    _check_range(name, value, at_least, at_most)
    return float(value)


def as_fraction(name: str, value: Any) -> float:
    """Return a fraction, such as a dropout probability, as a float in 0..1; raises as `as_number` does."""
    return as_number(name, value, at_least=0, at_most=1)


def as_bool(name: str, value: Any) -> bool:
    """Return True or False; TypeError for anything else, such as the string "False"."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, Tensor) and value.dtype is torch.bool)


def _check_range(name: str, value: float, at_least: float | None, at_most: float | None) -> None:
    low, high = (value if bound is None else bound for bound in (at_least, at_most))
    if low <= value <= high:
        return
    if at_least is None or at_most is None:
        allowed = f"at most {at_most}" if at_least is None else f"at least {at_least}"
    else:
        allowed = f"from {at_least} to {at_most}"
    raise ValueError(f"{name} must be {allowed}, not {value}")
