"""Text to token IDs and back, with GPT-2's own vocabulary and without the network."""

import base64
import codecs
import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import regex
import tiktoken
import torch
from tiktoken_ext.openai_public import r50k_pat_str
from torch import Tensor

from utils.arguments import as_bool, as_integer

DATA = Path(__file__).resolve().parent.parent / "data"
VOCABULARY_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
END_OF_TEXT = "<|endoftext|>"
END_OF_TEXT_ID = 50256
BYTES_PER_READ = 2**16


@cache
def get_tokenizer() -> tiktoken.Encoding:
    """Return GPT-2's tokenizer, read from the course's own `data/gpt2.tiktoken`.

    The file is read and checked once per process. It is never fetched, and nothing is written.

    Raises:
        FileNotFoundError: the file is missing.
        ValueError: the file is not GPT-2's vocabulary (its sha256 differs).
    """
    return tiktoken.Encoding(
        name="gpt2",
        pat_str=r50k_pat_str,
        mergeable_ranks=_ranks(DATA / "gpt2.tiktoken"),
        special_tokens={END_OF_TEXT: END_OF_TEXT_ID},
        explicit_n_vocab=50257,
    )


@cache
def _ranks(path: Path) -> dict[bytes, int]:
    """Return each token's bytes and its rank; the lower it is, the earlier its merge was learned."""
    # Not tiktoken's own loader: it keeps a copy in the temporary folder and would serve
    # that copy when the file here is damaged.
    restore = "Restore it with:  git checkout -- data/gpt2.tiktoken"
    if not path.is_file():
        raise FileNotFoundError(f"GPT-2's vocabulary is missing: {path}. {restore if DATA.is_dir() else _no_data()}")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != VOCABULARY_SHA256:
        raise ValueError(f"GPT-2's vocabulary is damaged: the sha256 of {path} is wrong. {restore}")
    pairs = (line.split() for line in content.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def _no_data() -> str:
    return f"There is no folder {DATA}: the course runs from its own folder. Install it there with:  pip install -e ."


def text_to_ids(text: str, allow_special: bool = False) -> Tensor:
    """Return the token IDs of a text, in text order.

    Args:
        text: any valid Unicode; an empty text gives no IDs.
        allow_special: read `<|endoftext|>` in the text as GPT-2's special token 50256.
            By default it is plain text, so that a text can never smuggle in a command.

    Returns:
        (num_tokens,) int64.

    Raises:
        TypeError: `text` is not a string, or `allow_special` is not a bool.
        ValueError: `text` has a surrogate, half of a character in UTF-16, which UTF-8 cannot spell.

    >>> text_to_ids("Every effort moves you")
    tensor([6109, 3626, 6100,  345])
    """
    check_text(text)
    allowed = "all" if as_bool("allow_special", allow_special) else set()
    ids = get_tokenizer().encode(text, allowed_special=allowed, disallowed_special=())
    return torch.tensor(ids, dtype=torch.int64)  # an empty list would become float32


def ids_to_text(ids: Tensor | np.ndarray | Sequence[int]) -> str:
    """Return the text that token IDs spell.

    Bytes that make no whole character come out as U+FFFD, the replacement character.

    Args:
        ids: (num_tokens,) integers in 0..50256; tensor, array or list.

    Raises:
        TypeError: an ID is not an integer.
        ValueError: an ID is outside 0..50256 (named, with its index), or `ids` is not flat.

    >>> ids_to_text([6109, 3626, 6100, 345])
    'Every effort moves you'
    """
    return get_tokenizer().decode(_checked_ids(ids))


def token_texts(ids: Tensor | np.ndarray | Sequence[int]) -> list[str]:
    r"""Return one readable piece for each token ID.

    A token is bytes: those that make no whole character are shown as escapes.

    Args:
        ids: (num_tokens,) integers in 0..50256; raises as `ids_to_text` does.

    >>> token_texts([6109, 3626])
    ['Every', ' effort']
    >>> token_texts([24861, 102])  # the two tokens of one character, U+2229
    ['\\xe2\\x88', '\\xa9']
    """
    pieces = get_tokenizer().decode_tokens_bytes(_checked_ids(ids))
    return [piece.decode("utf-8", errors="backslashreplace") for piece in pieces]


def texts_to_batch(texts: Sequence[str]) -> Tensor:
    """Stack the token IDs of texts with the same number of tokens.

    Returns:
        (batch_size, num_tokens) int64.

    Raises:
        ValueError: no texts, an empty text, or unequal numbers of tokens (all are named).

    >>> texts_to_batch(["Every effort moves you", "Every day holds a"])
    tensor([[6109, 3626, 6100,  345],
            [6109, 1110, 6622,  257]])
    """
    rows = _rows_of_ids(texts)
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        raise ValueError(f"the texts have {lengths} tokens: equal lengths can be stacked; see pad_texts")
    return torch.stack(rows)  # batch_size rows of (num_tokens,) -> (batch_size, num_tokens)


def pad_texts(texts: Sequence[str], pad_id: int = END_OF_TEXT_ID) -> tuple[Tensor, Tensor]:
    """Stack the token IDs of texts of any lengths, the short ones filled up on the right.

    Returns:
        batch: (batch_size, num_tokens) int64, num_tokens that of the longest text.
        is_token: (batch_size, num_tokens) bool, False where `batch` holds padding.

    Raises:
        ValueError: no texts, an empty text, or a `pad_id` outside 0..50256.

    >>> batch, is_token = pad_texts(["Hello,", "Hello"])
    >>> batch
    tensor([[15496,    11],
            [15496, 50256]])
    >>> is_token
    tensor([[ True,  True],
            [ True, False]])
    """
    rows = _rows_of_ids(texts)
    pad_id = _checked_id("pad_id", pad_id)
    num_tokens = max(len(row) for row in rows)
    batch = torch.full((len(rows), num_tokens), pad_id)
    is_token = torch.zeros((len(rows), num_tokens), dtype=torch.bool)
    for index, row in enumerate(rows):
        batch[index, : len(row)] = row
        is_token[index, : len(row)] = True
    return batch, is_token


def bpe_merge_steps(text: str) -> list[list[bytes]]:
    """Replay GPT-2's merges for one pre-token, from single bytes to its tokens.

    Byte-pair encoding after Sennrich et al. 2016, on bytes as in Radford et al. 2019:
    the neighbours whose merge was learned earliest (lowest rank) are merged first.

    Args:
        text: one pre-token, that is, a piece that GPT-2 never splits further before merging:
            a word with the space before it, a run of digits, a run of symbols.

    Returns:
        One list of byte pieces for each step; the first holds single bytes, the last the tokens.

    Raises:
        ValueError: `text` is empty or falls into several pre-tokens (they are named).

    >>> bpe_merge_steps("cat")
    [[b'c', b'a', b't'], [b'c', b'at'], [b'cat']]
    """
    check_text(text)
    pre_tokens = regex.findall(r50k_pat_str, text)
    if len(pre_tokens) != 1:
        raise ValueError(f"text must be one pre-token; {text!r} falls into {pre_tokens}")
    ranks = _ranks(DATA / "gpt2.tiktoken")
    pieces = [bytes([byte]) for byte in text.encode("utf-8")]
    steps = [pieces]
    while True:
        pairs = [left + right for left, right in pairwise(pieces)]
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)), default=b"")
        if best not in ranks:
            return steps
        pieces = _merge(pieces, best)
        steps.append(pieces)


def read_text(path_or_name: str | Path) -> str:
    """Return the text of a file, read as UTF-8 on every machine.

    Line ends become "\\n"; a byte-order mark at the start is dropped.

    Args:
        path_or_name: a path of your own, or the name of a text in the course's `data/`.

    Raises:
        FileNotFoundError: neither exists; the texts of the course are listed.
        ValueError: the file is not UTF-8 (the index of the byte is named) or is empty.

    >>> read_text("the_night_ferry.txt").splitlines()[0]
    'The Night Ferry'
    """
    return "".join(stream_text(find_text(path_or_name)))


def find_text(path_or_name: str | Path) -> Path:
    """Return where a text is: a path of your own, or the name of a text in the course's `data/`; as `read_text`."""
    path = next((p for p in (Path(path_or_name), DATA / path_or_name) if _is_file(p)), None)
    if path is None:
        texts = f"data/ has {sorted(p.name for p in DATA.glob('*.txt'))}" if DATA.is_dir() else _no_data()
        raise FileNotFoundError(f"there is no file {str(path_or_name)[:300]!r} here, nor in data/. {texts}")
    return path


def stream_text(path: Path) -> Iterator[str]:
    """Yield the text of a file part by part, as `read_text` returns the whole, which may be too large for memory."""
    decoder, empty = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True), True
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        for content in chain(iter(lambda: file.read(BYTES_PER_READ), b""), [b""]):
            try:
                text = decoder.decode(content, final=not content)
            except UnicodeDecodeError as error:
                index = file.tell() - len(error.object) + error.start
                raise ValueError(
                    f"{path} is not UTF-8: byte {index} is {error.object[error.start]:#04x} ({error.reason}). "
                    "Save it as UTF-8 in your editor and read it again."
                ) from None
            if text:
                empty = False
                yield text
    if empty:
        raise ValueError(f"{path} is empty: there is no text to read")


def check_text(text: str, name: str = "text") -> None:
    """Raise a TypeError if `text` is not a string, and a ValueError if it has a surrogate; as `text_to_ids`."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, not {type(text).__name__}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half, other = text[error.start], text[error.start + 1 : error.start + 2]
        if half < "\udc00" <= other <= "\udfff":
            character = (half + other).encode("utf-16", "surrogatepass").decode("utf-16")
            raise ValueError(
                f"{name} has a surrogate pair at index {error.start}: {half + other!r} are the two halves of "
                f"{character!r} (U+{ord(character):X}) in UTF-16. "
                "Join all pairs with:  text.encode('utf-16', 'surrogatepass').decode('utf-16')"
            ) from None
        raise ValueError(
            f"{name} has a lone surrogate at index {error.start}: {half!r} is half of a character"
        ) from None


def _merge(pieces: list[bytes], pair: bytes) -> list[bytes]:
    """Join each two neighbours that spell `pair`, from left to right."""
    merged = []
    for piece in pieces:
        if merged and merged[-1] + piece == pair:
            merged[-1] = pair
        else:
            merged.append(piece)
    return merged


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long for a file name: a text, not a path
        return False


def _rows_of_ids(texts: Sequence[str]) -> list[Tensor]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a list of strings, not {type(texts).__name__}")
    rows = [text_to_ids(text) for text in texts]
    if not rows:
        raise ValueError("texts is empty: a batch needs at least one text")
    for index, row in enumerate(rows):
        if len(row) == 0:
            raise ValueError(f"texts[{index}] is empty: a row of a batch needs at least one token")
    return rows


def _checked_ids(ids: Tensor | np.ndarray | Sequence[int]) -> list[int]:
    """Return the IDs as a list of int, or say which one GPT-2 does not have."""
    if isinstance(ids, (Tensor, np.ndarray)):
        ids = ids.tolist()
    if not isinstance(ids, (list, tuple, range)):
        raise TypeError(f"ids must be a row of integers, not {type(ids).__name__}")
    ids = list(ids)
    if set(map(type, ids)) == {int} and min(ids) >= 0 and max(ids) <= END_OF_TEXT_ID:
        return ids
    if any(isinstance(row, (list, tuple)) for row in ids):
        raise ValueError("ids must have shape (num_tokens,), not rows in a row")
    # Integers of another type are converted one by one; else one of them is wrong, and is named.
    return [_checked_id(f"ids[{index}]", token_id) for index, token_id in enumerate(ids)]


def _checked_id(name: str, token_id: int) -> int:
    token_id = as_integer(name, token_id)
    if not 0 <= token_id <= END_OF_TEXT_ID:
        raise ValueError(f"{name} is {token_id}: GPT-2's IDs are 0..{END_OF_TEXT_ID}")
    return token_id
