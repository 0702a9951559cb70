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
    """Return whether two outcomes agree: tensors in dtype, shape and (nearly) values; a tuple may equal a list."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _make(a) == _make(b) and a.shape == b.shape and bool(_agree(a, b).all())
    if isinstance(a, Raised) and isinstance(b, Raised):
        # torch raises RuntimeError for almost everything: there the text tells the errors apart.
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
    """Return the kind of difference of plain values and a sentence that does not give away the right one."""
    kind, sentence = difference("your answer", got, expected)
    if kind != "wrong value":
        return kind, sentence
    if _kind(got) != "list":
        return "wrong value", f"your answer is {shown(got)}, which is not right"
    wrong = [(str(index), shown(g)) for index, (g, e) in enumerate(zip(got, expected)) if not same(g, e)]
    if all(isinstance(item, bool) for item in expected):
        if not all(_kind(item) == "bool" for item in got):
            return "wrong value", "write True or False for each"
        return "wrong value", f"{len(wrong)} of {len(expected)} {'is' if len(wrong) == 1 else 'are'} wrong"
    indices, values = (_cut(", ".join(texts)) for texts in zip(*wrong))
    where = f"{'index' if len(wrong) == 1 else 'indices'} {indices}"
    return "wrong value", f"not right yet: {values} at {where} (counted from 0)"


def difference(subject: str, got: Any, expected: Any) -> tuple[str, str]:
    """Return the kind of difference and a sentence on the first index or key that shows it."""
    if isinstance(got, Raised) and got.kind == "ChangedArgument":
        return "changed argument", f"{subject}: {got.text}"
    if isinstance(got, Raised):
        return "raised", f"{subject} raises {got.kind}" + (f": {_cut(got.text)}" if got.text else "")
    if isinstance(expected, Raised):
        return "no error", f"{subject} is {shown(got)}, but it should raise {expected.kind}"
    if _differ_in_kind(got, expected):
        return "wrong type", f"{subject} is {_described(got)}; the exercise asks for {_article(expected)}"
    if isinstance(got, Tensor):
        return _difference_of_tensors(subject, got, expected)
    if isinstance(got, (list, tuple)):
        if len(got) != len(expected):
            return "wrong length", f"{subject} is {shown(got)}, of length {len(got)}, not {len(expected)}"
        nested = any(isinstance(item, (list, tuple, Tensor)) for item in expected)
        if nested or len(expected) > 16 or shown(got) == shown(expected):
            index = next(index for index, (g, e) in enumerate(zip(got, expected)) if not same(g, e))
            return difference(f"the item at index {index} of {subject}", got[index], expected[index])
    if isinstance(got, Mapping):
        return _difference_of_mappings(subject, got, expected)
    if isinstance(got, (str, bytes)) and max(len(got), len(expected)) > 80:
        shorter = min(len(got), len(expected))
        index = next((index for index, (g, e) in enumerate(zip(got, expected)) if g != e), shorter)
        ends = (repr(text[index : index + 20]) for text in (got, expected))
        return "wrong value", f"{subject} continues with {next(ends)} at index {index}, not with {next(ends)}"
    return "wrong value", f"{subject} is {shown(got)}, not {shown(expected)}"


def _difference_of_mappings(subject: str, got: Mapping, expected: Mapping) -> tuple[str, str]:
    for key in expected:
        if key not in got:
            return "wrong value", f"{subject} has no key {shown(key)}"
    for key in got:
        if key not in expected:
            return "wrong value", f"{subject} has the extra key {shown(key)}"
    key = next(key for key in expected if not same(got[key], expected[key]))
    return difference(f"the value of {shown(key)} in {subject}", got[key], expected[key])


def _difference_of_tensors(subject: str, got: Tensor, expected: Tensor) -> tuple[str, str]:
    if got.device.type != expected.device.type:
        return "wrong device", f"{subject} is on the device {got.device.type}, not {expected.device.type}"
    if got.is_nested != expected.is_nested:
        return "wrong type", f"{subject} is a nested tensor, not an ordinary one"
    if got.layout != expected.layout:
        return "wrong type", f"{subject} is a tensor of layout {got.layout}, not {expected.layout}"
    if got.shape != expected.shape:
        return "wrong shape", f"{subject} has shape {tuple(got.shape)}, not {tuple(expected.shape)}"
    if got.dtype != expected.dtype:
        return "wrong dtype", f"{subject} has dtype {got.dtype}, not {expected.dtype}"
    if got.numel() <= 8:
        return "wrong value", f"{subject} is {shown(got)}, not {shown(expected)}"
    index = tuple((~_agree(got, expected)).nonzero()[0].tolist())
    return "wrong value", f"{subject} has {shown(got[index])} at {list(index)}, not {shown(expected[index])}"


def _make(tensor: Tensor) -> tuple:
    """Return what must agree, beside the shape, before the values of two tensors can be compared."""
    return tensor.device.type, tensor.is_nested, tensor.layout, tensor.dtype


def _agree(a: Tensor, b: Tensor) -> Tensor:
    """Return, entry by entry, whether tensors of one dtype and shape agree: floats nearly, integers exactly."""
    if a.is_floating_point() or a.is_complex():
        return torch.isclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    return a == b


def shown(value: Any) -> str:
    """Return a value on one printable line, cut in the middle where it is long."""
    text = one_line(_text, value)
    if not text or " at 0x" in text:  # an address says nothing and differs from run to run
        return f"<{type(value).__name__}>"
    return _cut(text)


def one_line(spell: Callable[[Any], str], value: Any) -> str:
    """Return what `spell` (str, say) returns for a value, with spaces for all that cannot be printed."""
    try:
        text = spell(value)
    except Exception:  # a learner's own __repr__ or __str__ may fail; then there is nothing to show
        return ""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def _cut(text: str) -> str:
    return text if len(text) <= 90 else f"{text[:60]} … {text[-20:]}"


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        if value.is_nested:
            return "a nested tensor"
        if value.numel() > 16 or value.layout != torch.strided or value.is_meta or value.is_quantized:
            return f"a tensor of shape {tuple(value.shape)}"
        return _numbers(value.tolist())
    if isinstance(value, torch.nn.Module):
        return _article(value)
    if callable(value):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    return repr(value)


def _numbers(value: Any) -> str:
    """Return numbers, or lists of them, to six significant digits: what the comparison can tell apart."""
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    return str(float(f"{value:.6g}")) if isinstance(value, float) else str(value)


def _described(value: Any) -> str:
    """Return a value and its type, or only one of them where it says both."""
    text = shown(value)
    says_both = value is None or text.startswith(("a tensor", "a nested", "the function", _article(value), "<"))
    return text if says_both else f"{text}, {_article(value)}"


def _article(value: Any) -> str:
    name = "tensor" if isinstance(value, Tensor) else type(value).__name__
    return f"{'an' if name.lower().startswith((*'aeiou', 'nd')) else 'a'} {name}"


def _differ_in_kind(got: Any, expected: Any) -> bool:
    """Whether two values cannot be compared; an integer is accepted where a float is expected."""
    return _kind(got) != _kind(expected) and not (_kind(got) == "int" and _kind(expected) == "float")


def _kind(value: Any) -> str:
    """Return a value's kind: the same for Python's and NumPy's numbers, and for lists and tuples."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    return "list" if isinstance(value, (list, tuple)) else type(value).__name__
