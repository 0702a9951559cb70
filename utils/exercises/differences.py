"""How to say where an answer first differs from the right one, and how much of it may be told."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from utils.exercises.shown import WIDTH, counted, cut, described, shown, written
from utils.exercises.values import (
    Changed,
    Complained,
    Raised,
    agree,
    as_number,
    form_of,
    items,
    kind_of,
    same,
    shape_of,
)

DIGITS = 3  # that have to be right where a number is typed in


def for_a_value(got: Any, expected: Any, asks: str) -> tuple[str, str]:
    """Return how a typed-in answer differs, and a sentence that does not give away the right one."""
    if kind_of(got) != kind_of(expected):
        if callable(got):
            return "wrong type", f"your answer is {shown(got)}; the exercise asks for {asks}"
        return "wrong type", f"your answer is {described(got)}; the exercise asks for {asks}"
    if kind_of(expected) != "sequence":
        return _slip(got, expected, []) or ("wrong value", f"your answer is {shown(got)}, which is not right")
    got, expected = items(got), items(expected)
    if len(got) == 1 and same(got[0], expected, digits=DIGITS):
        return "one value in a list", "right, but inside another list: are there brackets too many?"
    if len(got) != len(expected):
        odd = [item for item in got if kind_of(item) not in map(kind_of, expected)]
        what = f"{described(odd[0])}, in it" if odd else counted(len(got), "item")
        return "wrong type" if odd else "wrong length", f"your answer has {what}: the exercise asks for {asks}"
    wrong = [index for index, (g, e) in enumerate(zip(got, expected)) if not same(g, e, digits=DIGITS)]
    for index in wrong:
        if slip := _slip(got[index], expected[index], [index]):
            return slip
    if all(kind_of(item) == "number" for item in expected):
        where = ("index " if len(wrong) == 1 else "indices ") + cut(", ".join(map(str, wrong)), 60)
        return "wrong value", f"not right yet: what is at {where}, counted from 0"
    return "wrong value", f"{len(wrong)} of {len(expected)} {'is' if len(wrong) == 1 else 'are'} wrong"


def _slip(got: Any, expected: Any, path: list[int]) -> tuple[str, str] | None:
    """Return what is told of an item of the wrong type, of an inner list, or of a number that was rounded too far."""
    item = f"the item at index {path[0]}" if len(path) == 1 else f"the item at {path}"
    if kind_of(got) != kind_of(expected):
        return "wrong type", f"{item} is {described(got)}: there should be {_wanted(expected)}"
    if kind_of(expected) == "sequence":
        if len(got) != len(expected):
            return "wrong length", f"{item} has {counted(len(got), 'item')}: {shown(got)}"
        pairs = zip(items(got), items(expected))
        return next(filter(None, (_slip(*pair, [*path, index]) for index, pair in enumerate(pairs))), None)
    if not isinstance(expected, float) or same(got, expected, digits=DIGITS):
        return None
    ends = sorted([0.95 * expected, 1.05 * expected])
    if ends[0] < as_number(got) < ends[1]:
        return "rounded", f"{shown(got)} is close, but not right when rounded to three digits"
    return None


def _wanted(expected: Any) -> str:
    """Return what an item should be, without its value."""
    if isinstance(expected, (list, tuple)):
        return "a list"
    known = {"bool": "True or False", "number": "a number", "str": "a string"}
    return known.get(kind_of(expected)) or described(expected, type_only=True)


def difference(call: str, got: Any, expected: Any, asks: str, exact: bool = False) -> tuple[str, str]:
    """Return the kind of difference and a sentence on the first index or key that shows it."""
    if isinstance(got, Complained):
        return "complaint", got.text
    if isinstance(got, Changed):
        several, names = len(got.names) > 1, " and ".join(f"`{name}`" for name in got.names)
        what = f"its argument{'s' if several else ''} {names}" if names else "what it is given"
        keep = "leave them as they are" if several else "leave it as it is"
        return "changed argument", f"{call} changes {what}: {keep}, and make something new"
    if isinstance(expected, Raised):
        if isinstance(got, BaseException) or (isinstance(got, type) and issubclass(got, BaseException)):
            return "returned error", f"{call} returns the error: raise it, do not return it"
        return "no error", f"{call} returns {shown(got)}, but it should raise {expected.kind.__name__}"
    if got is None:
        return "nothing returned", f"{call} returns None: is the `return` missing, or did you print instead?"
    if isinstance(got, tuple) and isinstance(expected, Tensor) and any(isinstance(item, Tensor) for item in got):
        return "several values", f"{call} returns {counted(len(got), 'value')}; the exercise asks for {asks}"
    if isinstance(expected, tuple) and _is_one(got, expected):
        return "one value", f"{call} returns one value, {described(got)}; the exercise asks for {asks}"
    path, got, expected = _first(got, expected, exact)
    at = f" at {path}" if path else ""
    if kind_of(got).startswith("tensor of dtype") and kind_of(expected) == "sequence":
        return "wrong type", f"{call} returns {described(got)}{at}: use float32 or float64"
    if kind_of(got) != kind_of(expected) or (exact and form_of(got) != form_of(expected) and same(got, expected)):
        if path:
            return "wrong type", f"{call} returns {described(got)}{at}, where there should be {_wanted(expected)}"
        if hasattr(got, "__next__") and kind_of(expected) == "sequence":
            return "wrong type", f"{call} returns {described(got)}: list(…) turns it into a list"
        return "wrong type", f"{call} returns {described(got)}{at}; the exercise asks for {asks}"
    if shape_of(got) is not None and shape_of(expected) is not None and shape_of(got) != shape_of(expected):
        only = same(np.ravel(got), np.ravel(expected), exact)
        rest = ": the entries themselves are right" if only else ""
        return "wrong shape", f"{call} has shape {shape_of(got)}{at}, not {shape_of(expected)}{rest}"
    if kind_of(expected) == "sequence" and len(got) != len(expected):
        return "wrong length", f"{call} has {counted(len(got), 'item')}{at}, not {len(expected)}: {shown(got)}"
    return "wrong value", f"{call} returns {_pair(got, expected, at)}"


def _is_one(got: Any, expected: tuple) -> bool:
    """Whether one value came where several were asked for."""
    return not isinstance(got, (list, tuple)) and (
        kind_of(got) != "sequence" or all(kind_of(item) == "sequence" for item in expected)
    )


def _pair(got: Any, expected: Any, at: str) -> str:
    if isinstance(got, Mapping):
        missing = [key for key in expected if key not in got]
        extra = [key for key in got if key not in expected]
        return f"no key {shown(missing[0])}{at}" if missing else f"the extra key {shown(extra[0])}{at}"
    if isinstance(got, (str, bytes)) and max(len(got), len(expected)) > WIDTH - 4:
        shorter = min(len(got), len(expected))
        index = next((index for index, (g, e) in enumerate(zip(got, expected)) if g != e), shorter)
        ends = [repr(text[index : index + 16]) for text in (got, expected)]
        return f"a text that continues with {ends[0]} at index {index}{at}, not with {ends[1]}"
    return f"{shown(got)}{at}, not {shown(expected)}"


def _first(got: Any, expected: Any, exact: bool, path: str = "") -> tuple[str, Any, Any]:
    """Return where two values first differ, and the two parts that differ there; the whole where it is short."""
    if kind_of(got) != kind_of(expected):
        return path, got, expected
    if kind_of(got) == "mapping" and got.keys() == expected.keys():
        key = next(key for key in expected if not same(got[key], expected[key], exact))
        return _first(got[key], expected[key], exact, f"{path}[{shown(key)}]")
    if kind_of(got) != "sequence" or len(got) != len(expected) or shape_of(got) != shape_of(expected):
        return path, got, expected
    if exact and form_of(got) != form_of(expected):
        return path, got, expected
    whole = max(len(written(value)) for value in (got, expected)) <= WIDTH and np.prod(shape_of(expected) or 1) <= 16
    if whole and shown(got) != shown(expected) and not (exact and same(got, expected)):
        return path, got, expected
    if shape_of(got) is not None:
        index = (~agree(got, expected)).nonzero()[0].tolist()
        return path + str(index), got[tuple(index)], expected[tuple(index)]
    index = next((i for i, (g, e) in enumerate(zip(got, expected)) if not same(g, e, exact)), 0)
    return _first(got[index], expected[index], exact, f"{path}[{index}]")
