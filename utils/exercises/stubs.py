"""What of a stub is still untouched: its `...`."""

import dis
import functools
import inspect
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

# What Python, torch and NumPy call a `...` used as a value. Their error for a float as an index also
# says "ellipsis (`...`)", and that of a dictionary for the key x[..., 0] "(Ellipsis, 0)": there it was an index.
_ELLIPSIS = re.compile(r"\bellipsis\b(?! \(`)|\bEllipsis\b(?![,)])")


def code_of(answer: Any) -> CodeType | None:
    """Return the code of a function, also of a decorated one; None for anything else."""
    try:
        code = getattr(inspect.unwrap(answer), "__code__", None) if callable(answer) else None
    except ValueError:  # it claims to wrap itself
        return None
    return code if isinstance(code, CodeType) else None


def gaps(value: Any) -> tuple[int, int]:
    """Return how many items of a list are still `...`, at least in part, and how many items there are."""
    if isinstance(value, Mapping):
        value = list(value.values())
    values = value if isinstance(value, (list, tuple)) else [value]
    return sum(any(item is ... for item in leaves(part)) for part in values), len(values)


def leaves(value: Any, depth: int = 4) -> Iterator[Any]:
    """Yield the items of a value and of the lists in it, to a depth: a list may contain itself."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item, depth - 1)
    else:
        yield value


def fails_on_a_gap(text: str, answer: Any) -> bool:
    """Return whether an error with this text comes from a `...` that is used as a value in the answer's code."""
    return bool(_ELLIPSIS.search(text)) and _has_ellipsis(answer)


def assigns_a_gap(answer: Any) -> bool:
    """Return whether a function still has a line such as `scores = ...`."""
    code = code_of(answer)
    steps = itertools.pairwise(dis.get_instructions(code)) if code else ()
    return any(step.argval is ... and after.opname.startswith("STORE") for step, after in steps)


def empty_method(answer: Any) -> str | None:
    """Return the name of the first method of a class that does nothing."""
    methods = vars(answer).items() if isinstance(answer, type) else ()
    return next((name for name, method in methods if inspect.isfunction(method) and is_empty(method)), None)


def is_empty(answer: Any) -> bool:
    """Return whether a function does nothing but return `...` or None, or a class has only such methods."""
    if isinstance(answer, type):
        methods = [item for item in vars(answer).values() if callable(item)]
        return all(map(is_empty, methods)) if methods else answer.__bases__ == (object,)
    code = getattr(answer, "__code__", None)
    if not isinstance(code, CodeType) or not (code.co_name != "<lambda>" or ... in code.co_consts):
        return False
    return _does_nothing(code)


def _does_nothing(code: CodeType) -> bool:
    return all(
        step.opname in ("RESUME", "NOP", "RETURN_VALUE")
        or (step.opname.endswith("CONST") and step.argval in (None, ...))
        for step in dis.get_instructions(code)
    )


def is_untouched(answer: Any, number: str) -> bool:
    """Return whether an answer is empty as the lesson's stub is: code that was given may have been emptied."""
    stub, code = _stub(number), getattr(answer, "__code__", None)
    given = _inside(stub).values() if stub and code else ()
    emptied = bool(given) and ... not in code.co_consts and not any(map(_does_nothing, given))
    return is_empty(answer) and not emptied


def is_as_given(answer: Any, number: str) -> bool:
    """Return whether a function or class has the code of the lesson's own stub; True where there is none to compare."""
    stub = _stub(number)
    if stub is None:
        return True
    given = _inside(stub).get(getattr(answer, "__name__", ""))
    if isinstance(answer, type):
        methods = {name: item.__code__ for name, item in vars(answer).items() if hasattr(item, "__code__")}
        stubs = _inside(given) if given else {}
        return methods.keys() == stubs.keys() and all(_same_code(methods[name], stubs[name]) for name in stubs)
    code = code_of(answer)
    return code is not None and given is not None and _same_code(code, given)


def _inside(code: CodeType) -> dict[str, CodeType]:
    """Return the functions and classes that some code defines, by their names."""
    return {const.co_name: const for const in code.co_consts if isinstance(const, CodeType)}


@functools.cache
def _stub(number: str) -> CodeType | None:
    """Return the compiled stub of an exercise, the cell above its check; None where the lesson has none."""
    for path in NOTEBOOKS.glob(f"{int(number.split('.')[0]):02d}_*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
        for stub, check in itertools.pairwise(sources):
            if check.startswith(f'check("{number}"'):
                return compile(stub, number, "exec")
    return None


def _same_code(one: CodeType, other: CodeType) -> bool:
    if (one.co_code, one.co_names, len(one.co_consts)) != (other.co_code, other.co_names, len(other.co_consts)):
        return False
    pairs = zip(one.co_consts, other.co_consts)
    return all(
        _same_code(*pair) if all(isinstance(c, CodeType) for c in pair) else pair[0] == pair[1] for pair in pairs
    )


def _has_ellipsis(part: Any) -> bool:
    """Whether `...` is written in a function or class, or in what it defines; where no code can be seen, it may be."""
    if isinstance(part, type):
        return any(_has_ellipsis(item) for item in vars(part).values() if callable(item) or item is ...)
    if callable(part):
        part = code_of(part) or ...
    if isinstance(part, CodeType):
        part = part.co_consts
    return any(map(_has_ellipsis, part)) if isinstance(part, tuple) else part is ...
