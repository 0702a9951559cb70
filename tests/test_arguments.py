"""Arguments parsed once: what each function accepts, and what it says about everything else."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from utils.arguments import as_bool, as_fraction, as_integer, as_number

INTEGERS = [3, -7, np.int64(3), np.uint8(3), torch.tensor(3), torch.tensor([3]), np.array(3)]
NUMBERS = [3, -2.5, np.float32(2.5), np.int64(3), Fraction(5, 2)]


@pytest.mark.parametrize(
    ("parse", "kind", "value"),
    [
        *((as_integer, int, value) for value in INTEGERS),
        *((as_number, float, value) for value in NUMBERS),
        *((as_bool, bool, value) for value in (True, False, np.True_, np.False_)),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_a_value_of_any_library_becomes_a_plain_one(parse, kind, value):
    parsed = parse("size", value)
    assert type(parsed) is kind
    assert parsed == value


NOT_INTEGERS = [True, np.False_, torch.tensor(True), 3.0, np.float64(3), torch.tensor(3.0), "3", None, [3], Fraction(3)]
NOT_NUMBERS = [True, np.False_, torch.tensor(True), "0.5", None, [0.5], 1j, Decimal("0.5")]
NOT_BOOLS = [0, 1, np.int64(1), torch.tensor(True), "False", None]


@pytest.mark.parametrize(
    ("parse", "value", "wanted"),
    [
        *((as_integer, value, "an integer") for value in NOT_INTEGERS),
        *((parse, value, "a number") for parse in (as_number, as_fraction) for value in NOT_NUMBERS),
        *((as_bool, value, "True or False") for value in NOT_BOOLS),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_a_value_of_another_kind_is_refused_with_its_name(parse, value, wanted):
    with pytest.raises(TypeError, match=re.escape(f"size must be {wanted}, not {value!r}")):
        parse("size", value)


@pytest.mark.parametrize("parse", [as_integer, as_number])
@pytest.mark.parametrize(
    ("bounds", "value", "allowed"),
    [
        ({"at_least": 1}, 0, "at least 1"),
        ({"at_most": 5}, 6, "at most 5"),
        ({"at_least": 0}, -1, "at least 0"),
        ({"at_most": 0}, 1, "at most 0"),
        ({"at_least": 1, "at_most": 5}, 0, "from 1 to 5"),
        ({"at_least": 1, "at_most": 5}, 6, "from 1 to 5"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_name_and_the_range(parse, bounds, value, allowed):
    with pytest.raises(ValueError, match=re.escape(f"size must be {allowed}, not {value}")):
        parse("size", value, **bounds)
    for bound in bounds.values():  # is itself in range
        assert parse("size", bound, **bounds) == bound


def test_a_fraction_is_from_0_to_1():
    assert [as_fraction("dropout", value) for value in (0, 1, 0.25)] == [0, 1, 0.25]
    for value in (-0.1, 1.5):
        with pytest.raises(ValueError, match=f"dropout must be from 0 to 1, not {value}"):
            as_fraction("dropout", value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, np.float32("nan")])
def test_a_number_is_finite(value):
    for parse in (as_number, as_fraction):
        with pytest.raises(ValueError, match=f"temperature must be finite, not {value}"):
            parse("temperature", value)
