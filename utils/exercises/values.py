"""The policy of values: when two answers are the same, said once for all exercises.

Numbers are compared as numbers, whatever type they have: int, float, Fraction, NumPy's, a tensor without axes.
Sequences are compared as sequences: list, tuple, range, array, tensor. A bool is not a number, and nan equals
only nan. float32 and float64 are both right. An exercise that is about the type says `exact`.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Raised:
    """An error as an outcome; with None for its text, any error of that kind or of a subclass."""

    kind: type[BaseException]
    text: str | None


@dataclass(frozen=True)
class Complained:
    """What an exercise's own `demand` found."""

    text: str


@dataclass(frozen=True)
class Changed:
    """A result of a function that changed what it was given."""

    result: Any
    names: tuple[str, ...]


def same(got: Any, expected: Any, exact: bool = False, digits: int | None = None) -> bool:
    """Return whether two outcomes agree.

    Args:
        exact: the types must agree too: int or float, the dtype, list or tensor.
        digits: how many correct digits are enough in what was typed in; the letter of a choice may then be small.
    """
    kind = kind_of(expected)
    if kind_of(got) != kind or (exact and form_of(got) != form_of(expected)):
        return False
    match kind:
        case "error":
            if expected.text is None:
                return issubclass(got.kind, expected.kind)
            return got.kind is expected.kind and expected.text in ("", got.text)
        case "changed":
            return got.names == expected.names and same(got.result, expected.result, exact, digits)
        case "number":
            return _same_number(as_number(got), as_number(expected), digits)
        case "bool":
            return bool(got) == bool(expected)
        case "sequence":
            if isinstance(got, (Tensor, np.ndarray)) and isinstance(expected, (Tensor, np.ndarray)):
                return tuple(got.shape) == tuple(expected.shape) and bool(agree(got, expected).all())
            return len(got) == len(expected) and all(
                same(g, e, exact, digits) for g, e in zip(items(got), items(expected))
            )
        case "mapping":
            return got.keys() == expected.keys() and all(
                same(got[key], expected[key], exact, digits) for key in expected
            )
        case "str" if digits and len(expected) == 1 and expected.isupper():
            return got.upper() == expected
    return bool(got == expected)


def kind_of(value: Any) -> str:
    """Return what a value counts as: values of two kinds are never the same."""
    if isinstance(value, (Raised, Changed)):
        return "error" if isinstance(value, Raised) else "changed"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, float, Fraction, Decimal, np.integer, np.floating)):
        return "number"
    if isinstance(value, Tensor):
        return _kind_of_tensor(value)
    if isinstance(value, np.ndarray):
        if value.ndim:
            return "sequence"
        return "bool" if value.dtype == bool else "number" if value.dtype.kind in "iuf" else "array"
    if isinstance(value, (list, tuple, range)):
        return "sequence"
    if isinstance(value, str):
        return "str"
    if isinstance(value, Mapping):
        return "mapping"
    return "set" if isinstance(value, Set) else type(value).__name__


def _kind_of_tensor(tensor: Tensor) -> str:
    if tensor.is_nested:
        return "nested tensor"
    if tensor.is_meta or tensor.device.type != "cpu":
        return f"tensor on the device {tensor.device.type}"
    if tensor.layout != torch.strided:
        return f"tensor of layout {tensor.layout}"
    if tensor.is_quantized:
        return "quantized tensor"
    if tensor.is_complex() or tensor.dtype in _IMPRECISE:
        return f"tensor of dtype {tensor.dtype}"
    if tensor.dim():
        return "sequence"
    return "bool" if tensor.dtype == torch.bool else "number"


_IMPRECISE = {
    getattr(torch, name) for name in dir(torch) if name.startswith(("float16", "bfloat16", "float8", "float4"))
}


def form_of(value: Any) -> Any:
    """Return what `exact` compares besides the values."""
    if kind_of(value) == "number":
        return "int" if "int" in str(getattr(value, "dtype", type(value).__name__)) else "float"
    if isinstance(value, (Tensor, np.ndarray)):
        return type(value) is np.ndarray, value.dtype
    return "list" if type(value) is tuple else type(value).__name__


def shape_of(value: Any) -> tuple | None:
    """Return the shape of a tensor or array, None for anything else."""
    return tuple(value.shape) if isinstance(value, (Tensor, np.ndarray)) else None


def items(sequence: Any) -> list:
    """Return a sequence as a list."""
    return sequence.detach().tolist() if isinstance(sequence, Tensor) else list(sequence)


def agree(got: Any, expected: Any) -> Tensor:
    """Return, entry by entry, whether tensors or arrays of one shape agree: floats nearly, integers exactly."""
    got, expected = (torch.as_tensor(value).detach() for value in (got, expected))
    if (got.dtype == torch.bool) != (expected.dtype == torch.bool):
        return torch.zeros(expected.shape, dtype=torch.bool)
    if not expected.is_floating_point():
        return got == expected
    return torch.isclose(got.double(), expected.double(), rtol=1e-4, atol=1e-5, equal_nan=True)


def as_number(value: Any) -> int | float:
    """Return a number of any type as Python's own; an integer too large for a float stays one."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        value = value.item()
    return int(value) if isinstance(value, int) else float(value)


def _same_number(got: int | float, expected: int | float, digits: int | None) -> bool:
    if isinstance(expected, int) or abs(got) > 1e300:
        precision = 1e-6 if digits else 1e-12
        return got == expected or (isinstance(got, float) and math.isclose(got, expected, rel_tol=precision))
    if math.isnan(got) or math.isnan(expected):
        return math.isnan(got) and math.isnan(expected)
    near = math.isclose(got, expected, rel_tol=1e-4, abs_tol=1e-5)
    if near or not digits or math.isinf(expected) or not expected:
        return near
    # Half a unit of the last digit that counts: 0.333 and 0.667 for thirds; and 0.666, cut rather than rounded.
    unit = 10.0 ** (math.floor(math.log10(abs(expected))) + 1 - digits)
    return abs(got - expected) <= 0.5 * unit or math.isclose(got, math.trunc(expected / unit) * unit, rel_tol=1e-9)


def identical(value: Any, before: Any) -> bool:
    """Return whether an argument is just as it was before a call; of what cannot be compared, True."""
    if isinstance(value, Tensor) and isinstance(before, Tensor):
        if value.layout != torch.strided:
            return True
        if any(getattr(value, name) != getattr(before, name) for name in ("shape", "dtype", "requires_grad")):
            return False
        return value.is_meta or bool(((value == before) | ((value != value) & (before != before))).all())
    if type(value) is not type(before):
        return False
    if isinstance(value, nn.Module):
        states = [
            [(module.training, module.extra_repr()) for module in model.modules()]
            + [parameter.requires_grad for parameter in model.parameters()]
            for model in (value, before)
        ]
        return states[0] == states[1] and identical(dict(value.state_dict()), dict(before.state_dict()))
    if isinstance(value, Mapping):
        return value.keys() == before.keys() and all(identical(value[key], before[key]) for key in before)
    if isinstance(value, (list, tuple)):
        return len(value) == len(before) and all(map(identical, value, before))
    if isinstance(value, np.ndarray):
        return value.tobytes() == before.tobytes() and value.shape == before.shape
    if isinstance(value, (str, bytes, int, float, set)):
        return value == before or value != value
    return True
