"""What a figure is given: words that its font can draw, numbers of any library, and no more than it can show."""

import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from unicodedata import bidirectional

import numpy as np
from matplotlib.font_manager import FontProperties, findfont, get_font
from torch import Tensor


@cache
def _characters(family: str) -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=[family]))).get_charmap())


def spelt(text: str, family: str = "sans-serif") -> str:
    """Return a text with each character that cannot be drawn spelt out as an escape: \\u306e for の.

    These are what the font lacks, what cannot be seen, and letters written from right to left, whose
    order only some versions of Matplotlib know, and which would reorder the escapes beside them.
    """
    if text.isascii() and text.isprintable():
        return text
    has = _characters(family)

    def drawn(c: str) -> bool:
        return c == "\n" or (c.isprintable() and ord(c) in has and bidirectional(c) not in ("R", "AL", "AN"))

    return "".join(c if drawn(c) else c.encode("unicode_escape").decode() for c in text)


def one_line(name: Any, family: str = "sans-serif", most: int = 40) -> str:
    """Return a name of any kind as one line; where it is cut to at most `most` characters, it ends in "…"."""
    line = spelt(str(name.item() if isinstance(name, Tensor) else name).replace("\n", "↵"), family)
    return line if len(line) <= most else line[: most - 1] + "…"


def visible(piece: Any, family: str = "monospace") -> str:
    """Return a piece of text as one line with its spaces visible."""
    return one_line(str(piece).replace(" ", "␣"), family)


def wrapped(words: Any, inches: float) -> str:
    """Return a title of any kind as at most three lines, none wider than its chart; "…" ends one that is cut."""
    words = spelt(str(words))
    if len(words) <= 14 * inches:
        return words
    return "\n".join(textwrap.wrap(words, int(10 * inches), max_lines=3, placeholder=" …"))


def as_names(argument: str, names: Any, count: int) -> list[str]:
    """Return names of any kind as lines of text; ValueError if there are more or fewer than `count`."""
    names = [one_line(name) for name in as_list(argument, names)]
    if len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names for {count} rows, columns or bars")
    return names


def as_list(argument: str, data: Any) -> list:
    """Return an iterable of any library as a list; TypeError if it is not one."""
    data = _values(argument, data).tolist() if isinstance(data, Tensor) else data
    if not isinstance(data, Iterable) and not hasattr(data, "__getitem__"):  # by the latter, Python reads a Dataset
        raise TypeError(f"{argument} must be a list, not {data!r}")
    return list(data)


def as_dict(argument: str, value: Any) -> dict:
    """Return a mapping of any kind as a dict."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument} must be a dict, not {type(value).__name__}")
    return dict(value)


def check_size(argument: str, count: int, things: str, most: int) -> None:
    """Raise ValueError where there is nothing to draw, or more than can be read (and drawn within about a second)."""
    if not count:
        raise ValueError(f"{argument} is empty: there is nothing to draw")
    if count > most:
        raise ValueError(f"{argument} has {count:,} {things}: a figure shows at most {most:,}")


def as_array(argument: str, data: Any, dims: int, finite: bool = True) -> np.ndarray:
    """Return numbers of any library, nested or not, as an array of floating-point numbers.

    Raises:
        TypeError: `data` holds something else than real numbers.
        ValueError: `data` does not have `dims` dimensions, its rows differ in length, its values are
            on the meta device, or one is beyond ±1e100, or nan or infinite where `finite` is True.
    """
    try:
        array = np.array(_plain(argument, data))
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"{argument} has rows of different lengths") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{argument} must hold real numbers, not {array.dtype.name}: {data!r:.60}")
    if array.ndim != dims:
        raise ValueError(f"{argument} must have {dims} dimensions, not the shape {array.shape}")
    array = array.astype(float)
    wrong = array[~(np.abs(array) <= 1e100) & (finite | np.isfinite(array))]
    if wrong.size:
        raise ValueError(f"{argument} holds {wrong[0]}: only finite numbers up to 1e100 can be drawn")
    return array


def _plain(argument: str, data: Any) -> Any:
    """Return what NumPy can read: it knows neither bfloat16 nor tensors with a gradient, nor lists of them."""
    if isinstance(data, Tensor):
        data = _values(argument, data)
        return data.numpy() if data.is_complex() else data.double().numpy()
    if isinstance(data, Iterable) and not hasattr(data, "__array__") and not isinstance(data, str | bytes | Mapping):
        return [_plain(argument, item) for item in data]
    return data


def _values(argument: str, tensor: Tensor) -> Tensor:
    if tensor.is_meta:
        raise ValueError(f"{argument} is on the meta device, where tensors have a shape but no values")
    return tensor.detach().cpu().to_dense()
