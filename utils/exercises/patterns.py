"""What may be true of all results of an answer: that they are transposed, too large by 1, the same in every call."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from utils.exercises.outcomes import unset
from utils.exercises.shown import shown
from utils.exercises.stubs import leaves
from utils.exercises.values import items, kind_of, same, shape_of


def pattern(where: str, answers: list, expected: list, given: Mapping[str, tuple]) -> tuple[str, str] | None:
    """Return a sentence that is true of the results of all calls: how they differ from what they should be.

    Args:
        where: the first call with a wrong result.
        given: what each parameter was in these calls.
    """
    wrong = [(got, right) for got, right in zip(answers, expected) if not same(got, right)]
    if not wrong:  # they differ in their types only
        return None
    if _has_nan(wrong[0][0]) and not _has_nan(wrong[0][1]):
        return "nan", f"{where}: there is nan in the result"
    alike = kind_of(answers[0]) == kind_of(expected[0])
    by_luck = len(answers) == 1 or (kind_of(answers[0]) == "number" and not alike)
    for name, values in given.items():
        if not by_luck and all(map(_unchanged, answers, values)):
            return "argument returned", f"your function returns the same as its argument `{name}`"
    if len(wrong) == len(answers) > 1 and all(_inverted(got, right) for got, right in wrong):
        return "inverted", f"{where}: True and False are swapped"
    for kind, sentence, fits in _PATTERNS:
        if all(fits(got, right) for got, right in wrong):
            return kind, f"{where}: {sentence}"
    alike = alike and shape_of(answers[0]) == shape_of(expected[0])
    differ = not all(same(right, expected[0]) for right in expected)
    if len(wrong) > 1 and alike and differ and all(same(got, answers[0]) for got in answers):
        return "always the same", f"your function returns {shown(answers[0])} in every call"
    single = kind_of(expected[0]) == "number"
    if single and len(wrong) < len(answers):
        return None
    return _constant(wrong, f"{where}: {'the result' if single else 'every number'}")


def _unchanged(got: Any, given: Any) -> bool:
    return same(got, given, exact=True)


def has_unset(value: Any) -> bool:
    """Return whether a tensor still has entries that torch.empty is filled with during a check."""
    return isinstance(value, Tensor) and (_has_nan(value) or bool((value == unset(torch.int64)).any()))


def _has_nan(value: Any) -> bool:
    flat = _flat(value)
    return flat is not None and bool(flat.isnan().any())


def _flat(value: Any) -> Tensor | None:
    """Return the numbers of a value in one row; None where it is not made of numbers."""
    if kind_of(value) not in ("number", "sequence"):
        return None
    try:
        flat = torch.as_tensor(value if isinstance(value, (Tensor, np.ndarray)) else [*leaves(value)]).flatten()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    return None if flat.dtype == torch.bool or flat.is_complex() else flat.double()


def _layout(value: Any) -> Any:
    """Return how a value is nested: its shape, or the layouts of its items where they differ."""
    if isinstance(value, (list, tuple)):
        inner = [_layout(item) for item in value]
        regular = all(layout == inner[0] and isinstance(layout, tuple) for layout in inner)
        return (len(value), *inner[0]) if inner and regular else inner
    return shape_of(value) or ()


def _constant(wrong: list, what: str) -> tuple[str, str] | None:
    """Return a sentence if all numbers are off by the same amount, or the same factor."""
    pairs = [(_flat(got), _flat(right)) for got, right in wrong]
    if any(g is None or r is None or g.shape != r.shape or not len(r) for g, r in pairs):
        return None
    if any(_layout(g) != _layout(r) for g, r in wrong):
        return None
    got, right = (torch.cat(parts) for parts in zip(*pairs))
    if len(right) < 2 or not torch.isfinite(got).all() or not torch.isfinite(right).all():
        return None
    off, factor = got - right, got / right
    if off.all() and torch.allclose(off, off[0], rtol=1e-5) and float(off[0]) == round(float(off[0]), 3):
        size = "large" if off[0] > 0 else "small"
        return "off by a constant", f"{what} is too {size} by {abs(float(off[0])):g}"
    if not got.any():
        return "all zero", f"{what} is 0"
    if not torch.isfinite(factor).all() or not torch.allclose(factor, factor[0], rtol=1e-3):
        return None
    if abs(factor[0] + 1) < 1e-3:
        return "sign", f"{what} has the wrong sign"
    if factor[0] > 0 and abs(factor[0] - 1) > 0.01 and len(set(right.tolist())) > 1:
        return "off by a factor", f"{what} is {float(factor[0]):.3g} times what it should be"
    return None


def _inverted(got: Any, right: Any) -> bool:
    dtypes = {getattr(value, "dtype", None) for value in (got, right)}
    boolean = kind_of(got) == kind_of(right) == "bool" or dtypes == {torch.bool}
    return boolean and shape_of(got) == shape_of(right) and bool((torch.as_tensor(got) != torch.as_tensor(right)).all())


def _numbers_for_booleans(got: Any, right: Any) -> bool:
    flat = _flat(got)
    if flat is None or getattr(right, "dtype", None) != torch.bool or _layout(got) != shape_of(right):
        return False
    return torch.equal(flat.bool(), right.flatten()) and set(flat.tolist()) <= {0.0, 1.0}


def _array(change: Callable[[Tensor], Tensor]) -> Callable[[Any, Any], bool]:
    """Return whether a change makes the result right, for tensors of more than one axis."""

    def fits(got: Any, right: Any) -> bool:
        return all(isinstance(value, Tensor) and value.dim() > 1 for value in (got, right)) and same(change(got), right)

    return fits


def _sequences(fits: Callable[[list, list], bool]) -> Callable[[Any, Any], bool]:
    def both(got: Any, right: Any) -> bool:
        return kind_of(got) == kind_of(right) == "sequence" and fits(items(got), items(right))

    return both


_PATTERNS = [
    ("numbers for booleans", "right, but as numbers: use True and False (torch.bool)",
     _numbers_for_booleans),
    ("transposed", "the result is transposed: rows and columns are swapped", _array(lambda got: got.mT)),
    ("swapped", "the parts are right, but swapped", _sequences(
        lambda got, right: len(got) == len(right) == 2 and kind_of(right[0]) != "number" and same(got[::-1], right))),
    ("reversed", "the right items, in reverse order", _sequences(
        lambda got, right: len(right) > 1 and same(got[::-1], right))),
    ("another order", "the right items, in another order", _sequences(
        lambda got, right: len(right) > 1 and all(kind_of(item) in ("number", "str") for item in got + right)
        and len({kind_of(item) for item in got + right}) == 1 and same(sorted(got), sorted(right)))),
    ("end missing", "right as far as it goes, but the end is missing", _sequences(
        lambda got, right: 0 < len(got) < len(right) and same(got, right[:len(got)]))),
    ("start missing", "the end is right, but the start is missing", _sequences(
        lambda got, right: 0 < len(got) < len(right) and same(got, right[len(right) - len(got):]))),
    ("too much at the end", "it begins right, but goes on too long", _sequences(
        lambda got, right: 0 < len(right) < len(got) and same(got[:len(right)], right))),
    ("too much at the start", "it ends right, but begins too early", _sequences(
        lambda got, right: 0 < len(right) < len(got) and same(got[len(got) - len(right):], right))),
    ("one value in a list", "the right result, but inside another list or tuple: is there a comma or bracket too many?",
     lambda got, right: isinstance(got, (list, tuple)) and len(got) == 1 and same(got[0], right)),
]  # fmt: skip
