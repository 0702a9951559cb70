"""How a value of any kind is written in one line."""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor, nn

from utils.exercises.values import kind_of

ENOUGH = 10_000  # characters of a text that are looked at: a message leaves out its middle anyway
WIDTH = 42  # of a value in a message: both values, the call and the rest stay within 200 characters


def shown(value: Any) -> str:
    """Return a value on one printable line, cut in the middle where it is long."""
    text = one_line(written, value)
    if not text or " at 0x" in text:  # an address says nothing and differs from run to run
        return f"<{type(value).__name__}>"
    return cut(text, WIDTH)


def one_line(spell: Callable[[Any], str], value: Any) -> str:
    """Return what `spell` (str, say) returns for a value, with spaces for all that cannot be printed."""
    try:
        text = spell(value)
    except Exception:  # a learner's own __repr__ or __str__ may fail; then there is nothing to show
        return ""
    if len(text) > ENOUGH:
        text = f"{text[:ENOUGH]}{text[-WIDTH:]}"
    return "".join(c if c.isprintable() else " " for c in text).strip()


def cut(text: str, width: int) -> str:
    """Return a text that is too long without its middle, cut between words where there are some."""
    if len(text) <= width:
        return text
    head, tail = text[: width - width // 4 - 3], text[-(width // 4) :]
    if " " in head[width // 3 :]:
        head = head.rsplit(" ", 1)[0]
    return f"{head} … {tail.split(' ', 1)[-1]}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def written(value: Any) -> str:
    """Return a value as it is written in a message, however long."""
    if isinstance(value, Tensor):
        if kind_of(value) not in ("sequence", "number", "bool") or value.numel() > 16:
            return described(value)
        return _numbers(value.detach().tolist())
    if isinstance(value, np.ndarray) and value.size > 16:
        return described(value)
    if isinstance(value, (nn.Module, type)):
        return described(value)
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    if isinstance(value, range) and len(value) <= 16:
        return _numbers(list(value))
    return _numbers(value)


def _numbers(value: Any) -> str:
    """Return floats, alone or in lists, to six significant digits: what the comparison can tell apart."""
    if type(value) in (list, tuple) and len(value) < 1000:
        inside = ", ".join(written(item) if isinstance(item, Tensor) else _numbers(item) for item in value)
        return f"[{inside}]" if type(value) is list else f"({inside}{',' * (len(value) == 1)})"
    value = value.item() if isinstance(value, np.generic) else value
    return str(float(f"{value:.6g}")) if type(value) is float else repr(value)


def described(value: Any, type_only: bool = False) -> str:
    """Return a value and its type, or only one of them where it says both."""
    if isinstance(value, Tensor):
        kind = kind_of(value)
        if "tensor" in kind:
            return f"a {kind}".replace("torch.", "")
        if value.dim():
            return f"a tensor of shape {tuple(value.shape)} and dtype {value.dtype}".replace("torch.", "")
        return f"{shown(value)}, a tensor without axes"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = {"int": "integer", "str": "string", "bytes": "bytes object"}.get(type(value).__name__, type(value).__name__)
    article = f"{'an' if name.lower().startswith((*'aeiou', 'nd')) else 'a'} {name}"
    if type_only or isinstance(value, nn.Module):
        return article
    text = shown(value)
    says_both = value is None or text.startswith(("the function", article, "<"))
    return text if says_both else f"{text}, {article}"
