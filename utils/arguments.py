"""Checks of arguments that all of utils shares: what is wrong is said with the argument's name and value."""

import operator

import numpy as np


def as_integer(name: str, value: int, at_least: int | None = None) -> int:
    """Return a whole number of any library as an int.

    Raises:
        TypeError: `value` is no integer (a bool is none either).
        ValueError: `value` is smaller than `at_least`.
    """
    try:
        integer = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        integer = None
    if integer is None:
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if at_least is not None and integer < at_least:
        raise ValueError(f"{name} must be at least {at_least}, not {integer}")
    return integer


def as_share(name: str, value: float) -> float:
    """Return a share, such as a dropout, as a float; ValueError outside 0..1, TypeError for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number from 0 to 1, not {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be from 0 to 1, not {value}")
    return float(value)
