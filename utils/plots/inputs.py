"""What a figure is given: words that its font can draw, numbers of any library, and no more than it can show."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from unicodedata import bidirectional

import numpy as np
from matplotlib.font_manager import FontProperties, findfont, get_font
from torch import Tensor


@cache
def _characters() -> frozenset[int]:
    """Return what can be drawn: the characters that both fonts of the course have."""
    fonts = (findfont(FontProperties(family=[family])) for family in ("sans-serif", "monospace"))
    return frozenset.intersection(*(frozenset(get_font(font).get_charmap()) for font in fonts))


def one_line(words: Any, most: int = 40) -> str:
    """Return words of any kind as one line that can be drawn; cut to `most` characters, it ends in "…".

    Escapes, such as \\u306e for の, stand for what the fonts lack, what cannot be seen, and letters
    written from right to left, which would reorder the escapes beside them.
    """

    def drawn(c: str) -> bool:
        return c.isprintable() and ord(c) in _characters() and bidirectional(c) not in ("R", "AL", "AN")

    words = str(words.item() if isinstance(words, Tensor) else words).replace("\n", "↵")
    line = "".join(c if drawn(c) else c.encode("unicode_escape").decode() for c in words[: most + 1])
    return line if len(line) <= most else line[: most - 1] + "…"


def visible(piece: Any) -> str:
    """Return a piece of text as one line with its spaces visible."""
    return one_line(str(piece).replace(" ", "␣"))


def as_names(argument: str, names: Any, count: int) -> list[str]:
    """Return names of any kind as lines of text; ValueError if there are more or fewer than `count`."""
    names = as_list(argument, names)
    if len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names for {count} rows, columns or bars")
    return [one_line(name) for name in names]


def some_of(names: Sequence[str], most: int) -> tuple[range, Sequence[str]]:
    """Return the indices and the names of at most `most` of the names, at equal steps."""
    step = math.ceil(len(names) / most)
    return range(0, len(names), step), names[::step]


def as_list(argument: str, data: Any) -> list:
    """Return an iterable of any library as a list; TypeError if it is not one."""
    data = data.tolist() if isinstance(data, Tensor) else data
    if not isinstance(data, Iterable) and not hasattr(data, "__getitem__"):  # by the latter, Python reads a Dataset
        raise TypeError(f"{argument} must be a list, not {data!r}")
    return list(data)


def as_dict(argument: str, data: Any, parse: Callable[[str, Any], Any], things: str = "charts", most: int = 12) -> dict:
    """Return a mapping of 1 to `most` things as a dict, each value parsed under its own name."""
    if not isinstance(data, Mapping):
        raise TypeError(f"{argument} must be a dict, not {type(data).__name__}")
    check_size(argument, len(data), things, most)
    return {name: parse(f"{argument}[{name!r}]", value) for name, value in data.items()}


def as_mask(argument: str, data: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return booleans of any library, of the given shape, as an array."""
    mask = np.asarray(_plain(data) if not isinstance(data, Tensor) else data.numpy(force=True))
    if mask.dtype.kind != "b":
        raise TypeError(f"{argument} must hold booleans, not {mask.dtype.name}")
    if mask.shape != shape:
        raise ValueError(f"{argument} has the shape {mask.shape}, its map {shape}")
    return mask


def check_size(argument: str, count: int, things: str, most: int) -> None:
    """Raise ValueError where there is nothing to draw, or more than can be read (and drawn within about a second)."""
    if not count:
        raise ValueError(f"{argument} is empty: there is nothing to draw")
    if count > most:
        raise ValueError(f"{argument} has {count:,} {things}: a figure shows at most {most:,}")


def finite_range(numbers: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest of the finite numbers; 0 and 1 where there are none."""
    known = numbers[np.isfinite(numbers)]
    return (known.min(), known.max()) if known.size else (0, 1)


def as_array(argument: str, data: Any, dims: int = 1, most: int = 10_000, finite: bool = True) -> np.ndarray:
    """Return 1 to `most` real numbers of any library, nested `dims` deep, none beyond ±1e100, as an array of float.

    Where `finite` is False, they may be nan or infinite. Raises TypeError for other things than numbers.
    """
    if isinstance(data, Tensor) and (data.is_complex() or data.is_meta):  # on the meta device there are no values
        raise TypeError(f"{argument} must hold real numbers, not {data.dtype} on {data.device}")
    try:
        array = np.asarray(_plain(data))
    except ValueError as error:
        raise ValueError(f"{argument} has rows of different lengths") from error
    check_size(argument, array.size, "numbers", most)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{argument} must hold real numbers, not {array.dtype.name}: {data!r:.60}")
    if array.ndim != dims:
        raise ValueError(f"{argument} must have {dims} dimensions, not the shape {array.shape}")
    array = array.astype(float)
    wrong = array[~(np.abs(array) <= 1e100) & (finite | np.isfinite(array))]
    if wrong.size:
        raise ValueError(f"{argument} holds {wrong[0]}: only finite numbers up to 1e100 can be drawn")
    return array


def _plain(data: Any) -> Any:
    """Return what NumPy can read: it knows neither bfloat16 nor tensors with a gradient, nor lists of them."""
    if isinstance(data, Tensor):
        return data.double().numpy(force=True)
    if isinstance(data, Iterable) and not hasattr(data, "__array__") and not isinstance(data, str | bytes | Mapping):
        return [_plain(item) for item in data]
    return data
