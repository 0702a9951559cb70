"""When two answers are the same, and how to say in one line where they differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Raised:
    """An error as an outcome: some known mistakes show as errors."""

    kind: str
    text: str


def same(a: Any, b: Any) -> bool:
    """Return whether two outcomes agree: tensors in dtype, shape and (nearly) values; lists and tuples are alike."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
            return False
        return bool(_agree(a, b).all())
    if isinstance(a, Raised) and isinstance(b, Raised):
        # torch has one kind of error for everything: there the text tells them apart.
        return a.kind == b.kind and (a.kind != "RuntimeError" or a.text[:20] == b.text[:20])
    if _differ_in_kind(a, b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-4, equal_nan=True))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b)


def hint(got: Any, expected: Any) -> tuple[str, str]:
    """Return the kind of difference of plain values and a sentence that does not give the right one away."""
    kind, sentence = difference("your answer", got, expected)
    if kind != "wrong value":
        return kind, sentence
    if _kind(got) != "list":
        return "wrong value", f"your answer is {shown(got)}, which is not it"
    if all(isinstance(item, bool) for item in expected):
        wrong = sum(not same(g, e) for g, e in zip(got, expected))
        written = all(isinstance(item, bool) for item in got)
        return "wrong value", f"{wrong} of {len(expected)} are not right" if written else "write True or False for each"
    wrong = [(str(place), shown(g)) for place, (g, e) in enumerate(zip(got, expected)) if not same(g, e)]
    places, values = zip(*wrong)
    return (
        "wrong value",
        f"not right yet: {_cut(', '.join(values))} at place {_cut(', '.join(places))} (counted from 0)",
    )


def difference(subject: str, got: Any, expected: Any) -> tuple[str, str]:
    """Return the kind of difference and a sentence on the first place that shows it."""
    if isinstance(got, Raised) and got.kind == "ChangedArgument":
        return "changed argument", f"{subject}: {got.text}"
    if isinstance(got, Raised):
        return "raised", f"{subject} stops with {got.kind}" + (f": {_cut(got.text)}" if got.text else "")
    if isinstance(expected, Raised):
        return "no error", f"{subject} is {shown(got)}, where a {expected.kind} is asked for"
    if _differ_in_kind(got, expected):
        return "wrong type", f"{subject} is {shown(got)}, {_article(got)}, where {_article(expected)} is asked for"
    if isinstance(got, Tensor):
        return _difference_of_tensors(subject, got, expected)
    if isinstance(got, (list, tuple)):
        if len(got) != len(expected):
            return "wrong length", f"{subject} is {shown(got)}, of length {len(got)}, not {len(expected)}"
        if len(expected) > 16 or any(isinstance(item, (list, tuple, Tensor)) for item in expected):
            place = next(place for place, (g, e) in enumerate(zip(got, expected)) if not same(g, e))
            return difference(f"item {place} of {subject}", got[place], expected[place])
    if isinstance(got, Mapping):
        return _difference_of_mappings(subject, got, expected)
    if isinstance(got, str) and max(len(got), len(expected)) > 80:
        place = next((place for place, (g, e) in enumerate(zip(got, expected)) if g != e), min(len(got), len(expected)))
        ends = (repr(text[place : place + 20]) for text in (got, expected))
        return "wrong value", f"{subject} goes on with {next(ends)} at place {place}, not with {next(ends)}"
    return "wrong value", f"{subject} is {shown(got)}, not {shown(expected)}"


def _difference_of_mappings(subject: str, got: Mapping, expected: Mapping) -> tuple[str, str]:
    for key in expected:
        if key not in got:
            return "wrong value", f"{subject} has no key {shown(key)}"
    for key in got:
        if key not in expected:
            return "wrong value", f"{subject} has a key {shown(key)} too many"
    key = next(key for key in expected if not same(got[key], expected[key]))
    return difference(f"the value of {shown(key)} in {subject}", got[key], expected[key])


def _difference_of_tensors(subject: str, got: Tensor, expected: Tensor) -> tuple[str, str]:
    if got.layout != expected.layout:
        return "wrong type", f"{subject} is a tensor of layout {got.layout}, not {expected.layout}"
    if got.shape != expected.shape:
        return "wrong shape", f"{subject} has shape {tuple(got.shape)}, not {tuple(expected.shape)}"
    if got.dtype != expected.dtype:
        return "wrong dtype", f"{subject} holds {got.dtype}, not {expected.dtype}"
    if got.numel() <= 8:
        return "wrong value", f"{subject} is {shown(got)}, not {shown(expected)}"
    place = tuple((~_agree(got, expected)).nonzero()[0].tolist())
    return "wrong value", f"{subject} has {shown(got[place])} at {list(place)}, not {shown(expected[place])}"


def _agree(a: Tensor, b: Tensor) -> Tensor:
    """Return, entry by entry, whether tensors of one dtype and shape agree: decimals nearly, whole numbers exactly."""
    if a.is_floating_point() or a.is_complex():
        return torch.isclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    return a == b


def shown(value: Any) -> str:
    """Return a value on one printable line, cut in the middle where it is long."""
    text = one_line(_text, value)
    if not text or " at 0x" in text:  # an address says nothing, and is another one each time
        return f"<{type(value).__name__}>"
    return _cut(text)


def one_line(spell: Callable[[Any], str], value: Any) -> str:
    """Return what `spell` (str, say) makes of a value, with all that is not printable turned into blanks."""
    try:
        text = spell(value)
    except Exception:  # somebody's own __repr__ or __str__ may fail, and there is nothing to show then
        return ""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def _cut(text: str) -> str:
    return text if len(text) <= 90 else f"{text[:60]} … {text[-20:]}"


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        if value.numel() > 16 or value.layout != torch.strided:
            return f"a tensor of shape {tuple(value.shape)}"
        return _numbers(value.tolist())
    if isinstance(value, torch.nn.Module):
        return _article(value)
    if callable(value):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    return repr(value)


def _numbers(value: Any) -> str:
    """Return (lists of) numbers with six digits that count: what the comparison can tell apart."""
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    return str(float(f"{value:.6g}")) if isinstance(value, float) else str(value)


def _article(value: Any) -> str:
    name = "tensor" if isinstance(value, Tensor) else type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _differ_in_kind(got: Any, expected: Any) -> bool:
    """Whether two values cannot be compared; a whole number will do where any number is asked for."""
    return _kind(got) != _kind(expected) and not (_kind(got) == "int" and _kind(expected) == "float")


def _kind(value: Any) -> str:
    """Return a value's kind; numbers of Python and NumPy count as the same, lists and tuples too."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    return "list" if isinstance(value, (list, tuple)) else type(value).__name__
