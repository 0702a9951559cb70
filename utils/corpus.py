"""Token IDs of texts larger than memory, in a file; `python -m utils.corpus TEXT.txt IDS.npy` writes one."""

import argparse
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from utils.arguments import as_bool
from utils.files import replacing
from utils.progress_bar import progress_bar
from utils.tokenizer import END_OF_TEXT_ID, check_text, find_text, get_tokenizer, stream_text

UINT16 = np.dtype("<u2")  # the less significant byte first, on every machine
CHARACTERS = 2**16  # that are encoded at once, at least
LISTS_PER_CORE = 8  # of pieces, together with that many characters: what is in memory at a time
Piece = tuple[str, bool]  # part of a document, and whether the document ends with it


def write_ids(texts: Iterable[str] | Path, path: str | Path, *, progress: bool = True) -> int:
    """Write the token IDs of texts to a file that `open_ids` opens, and return how many there are.

    They are those of `text_to_ids` (`<|endoftext|>` in a text is plain text), with token 50256 at the end of each text.
    All cores encode, and memory stays flat: a text is encoded in pieces, cut where GPT-2's tokenizer splits it anyway.
    Only what it never splits, such as a run of letters or of spaces, is in memory as a whole. The file is NumPy's .npy
    of uint16. It gets its name when it is whole: after an error or Ctrl+C, what had that name before is still there.

    Args:
        texts: the documents, from a list or a generator; or the Path of one in a file of any size, read as `read_text`
            reads it. For many files: (read_text(path) for path in paths).
        path: the file to write; its name ends in .npy.
        progress: show a bar meanwhile, in a terminal or a notebook, as `train` does.

    Raises:
        TypeError: `texts` is one string or not iterable, or one of the texts is not a string (its index is named).
        ValueError: there are no texts, a text is not valid Unicode (UTF-8 in a file), or `path` does not end in .npy.
        OSError: a file cannot be read or written.
    """
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"path must end in .npy, not {str(path)!r}")
    if path.is_dir():  # better missed now than when all is encoded
        raise IsADirectoryError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for {path.name}")
    pieces, total, unit = _source(texts)
    with progress_bar(total, as_bool("progress", progress), unit) as bar, replacing(path) as file:
        num_tokens = 0
        _write_header(file, num_tokens)
        for some, ids in _in_order(pieces):
            file.write(ids)
            num_tokens += len(ids)
            bar.update(sum(len(text.encode()) if unit == "B" else ends for text, ends in some))
        if num_tokens == 0:
            raise ValueError("texts is empty: there is no document whose tokens could be written")
        file.seek(0)
        _write_header(file, num_tokens)  # as long as the first one: NumPy leaves space for more digits
    return num_tokens


def open_ids(path: str | Path) -> np.memmap:
    """Return the token IDs in a file of `write_ids`, or of NumPy, without reading them: (num_tokens,) uint16.

    They are read where and when they are used. `TokenWindows` and `make_loader` take them as they are.

    Raises:
        ValueError: the file is not a whole .npy file of flat uint16, or it has no IDs; what is wrong is named.
        OSError: there is no such file, or it cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            if (version := np.lib.format.read_magic(file)) != (1, 0):
                raise ValueError(f"its format has version {version}, not (1, 0)")
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except Exception as error:  # NumPy has several for a damaged header
            raise ValueError(f"{path} is not a .npy file with token IDs: {error}") from None
        start, size = file.tell(), file.seek(0, os.SEEK_END)
    if dtype != UINT16 or len(shape) != 1:
        raise ValueError(f"{path} must have one row of uint16 ({UINT16.str}), not {dtype.str} of shape {shape}")
    if (expected := start + UINT16.itemsize * shape[0]) != size:
        damage = "is cut short" if size < expected else "goes on past its end"
        raise ValueError(f"{path} {damage}: with its {shape[0]} token IDs it should have {expected} bytes, not {size}")
    if shape[0] == 0:
        raise ValueError(f"{path} has no token IDs")
    return np.memmap(path, UINT16, mode="r", offset=start, shape=shape)


def main(arguments: list[str] | None = None) -> int:
    """Write the token IDs of a text file; return 0, or 2 for what cannot be done, or 130 after Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m utils.corpus", description=main.__doc__.split(";")[0] + ".")
    parser.add_argument("text", type=Path, help="a text in UTF-8, of any size")
    parser.add_argument("ids", type=Path, help="the file to write; its name ends in .npy")
    options = parser.parse_args(arguments)
    try:
        num_tokens = write_ids(options.text, options.ids)
        print(f"{options.ids}: {num_tokens:,} tokens, {options.ids.stat().st_size:,} bytes")
        return 0
    except KeyboardInterrupt:
        print(f"interrupted: {options.ids} was not written", file=sys.stderr)
        return 130
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _source(texts: Iterable[str] | Path) -> tuple[Iterator[Piece], int | None, str]:
    """Return the pieces of all documents, and for the bar, of what unit there are how many."""
    if isinstance(texts, os.PathLike):
        path = find_text(texts)
        return _pieces(stream_text(path)), path.stat().st_size, "B"
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(
            "texts must be strings, such as the list [text], or Path('text.txt') for the text in that file, "
            f"not {type(texts).__name__}"
        )
    pieces = chain.from_iterable(map(_pieces, _in_parts(texts)))
    return pieces, len(texts) if isinstance(texts, Sized) else None, " documents"


def _in_parts(texts: Iterable[str]) -> Iterator[Iterator[str]]:
    for index, text in enumerate(texts):
        check_text(text, f"texts[{index}]")
        yield (text[start : start + CHARACTERS] for start in range(0, len(text), CHARACTERS))


def _pieces(parts: Iterable[str]) -> Iterator[Piece]:
    """Yield one document in pieces with together the same token IDs."""
    rest, searched = "", 1  # no cut is possible at an index below `searched`
    for part in parts:
        rest += part
        if len(rest) >= CHARACTERS:
            indices = range(len(rest) - 1, searched - 1, -1)
            cut = next((index for index in indices if _always_splits(rest[index - 1], rest[index])), 0)
            if cut:
                yield rest[:cut], False
            rest = rest[cut:]
            searched = len(rest)
    yield rest, True


def _always_splits(before: str, after: str) -> bool:
    """Return whether GPT-2's pattern splits between two characters, whatever comes before and after them.

    In a pre-token, whitespace comes after nothing but whitespace, a letter is followed only by a letter, and a digit by
    a digit. So one pre-token ends there, with or without what follows, and the next one begins.
    """
    if after in " \n":
        return not before.isspace()
    # tiktoken has a version of Unicode of its own: only what was a letter, or none, in 2002 and still is, is certain.
    kinds = [{version.category(one)[0] for version in (unicodedata, unicodedata.ucd_3_2_0)} for one in (before, after)]
    return kinds[0] in ({"L"}, {"N"}) and not kinds[1] & {*kinds[0], "C"}


def _lists(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces in lists that are worth a thread's while, however short the documents are."""
    some, size = [], 0
    for piece in pieces:
        some.append(piece)
        size += len(piece[0]) + 1
        if size >= CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


def _in_order(pieces: Iterable[Piece]) -> Iterator[tuple[list[Piece], np.ndarray]]:
    """Yield lists of pieces with their token IDs, which threads encode: tiktoken works without Python's lock."""
    lists = _lists(pieces)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        while batch := list(islice(lists, LISTS_PER_CORE * cores)):
            yield from zip(batch, pool.map(_encoded, batch))


def _encoded(pieces: list[Piece]) -> np.ndarray:
    found = []
    for text, ends in pieces:
        found.append(get_tokenizer().encode_to_numpy(text, disallowed_special=()))
        found.append(np.full(int(ends), END_OF_TEXT_ID))
    return np.concatenate(found, dtype=UINT16, casting="unsafe")


def _write_header(file: BinaryIO, num_tokens: int) -> None:
    header = {"descr": UINT16.str, "fortran_order": False, "shape": (num_tokens,)}
    np.lib.format.write_array_header_1_0(file, header)


if __name__ == "__main__":
    sys.exit(main())
