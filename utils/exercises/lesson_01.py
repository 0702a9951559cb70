"""The exercises of lesson 1, text to token IDs."""

import regex
import torch

from utils.exercises import Exercise, Mistake
from utils.tokenizer import END_OF_TEXT, END_OF_TEXT_ID, get_tokenizer, pad_texts, text_to_ids

# 1.A  Cut a text into pieces that join to the same text.

_SPLIT = Exercise(
    reference=lambda text: regex.findall(r"\w+|\s+|[^\w\s]+", text),
    cases=[("hello--world",), ("two  spaces",), ("“Stop?!” he said…\n",), (" café a_b ",), ("",)],
    mistakes=[
        Mistake(
            "spaces lost",
            str.split,
            "two  spaces comes out as two pieces that join to twospaces, and hello--world as one piece",
        ),
        Mistake(
            "spaces dropped",
            lambda text: [piece for piece in regex.findall(r"\w+|\s+|[^\w\s]+", text) if piece.strip()],
            "words and punctuation are there, but the spaces are dropped: two  spaces cannot be restored",
        ),
        Mistake(
            "punctuation lost",
            lambda text: regex.findall(r"\w+|\s+", text),
            "words and spaces are there, but the punctuation between them is lost",
        ),
        Mistake(
            "cut at single spaces",
            lambda text: text.split(" "),
            "the spaces are gone, a run of them leaves empty pieces, and punctuation sticks to the words",
        ),
        Mistake(
            "spaces mixed with punctuation",
            lambda text: regex.findall(r"\w+|\W+", text),
            "nothing is lost, but a punctuation mark and the space after it form one piece: they are two runs",
        ),
        Mistake(
            "English letters only",
            lambda text: regex.findall(r"[A-Za-z0-9_]+|\s+|[^A-Za-z0-9_\s]+", text),
            "café is cut in two: é is a letter too, and \\w knows that",
        ),
        Mistake(
            "words only",
            lambda text: regex.findall(r"\w+", text),
            "only the words are left: spaces and punctuation are part of the text too",
        ),
        Mistake(
            "runs broken up",
            lambda text: regex.findall(r"\w+|\s|[^\w\s]", text),
            "nothing is lost, but every space and every punctuation mark is its own piece: keep each run together",
        ),
        Mistake(
            "empty pieces",
            lambda text: regex.split(r"(\s+|[^\w\s]+)", text),
            "nothing is lost, but splitting at the separators leaves empty pieces, for example at the ends",
        ),
    ],
    where="section 1.2",
)

# 1.B  Decode the list, not its pieces.


def _bytes_of(token_id: int) -> bytes:
    return get_tokenizer().decode_single_token_bytes(token_id)


_DECODE = Exercise(
    reference=lambda ids: get_tokenizer().decode(ids),
    cases=[(get_tokenizer().encode_ordinary(text),) for text in ("Good night.\n", "猫が好き", "が猫", "∩ and Zoë")],
    mistakes=[
        Mistake(
            "token by token",
            lambda ids: "".join(get_tokenizer().decode([token_id]) for token_id in ids),
            "the English text is right, but 猫が好き comes out as a row of �",
        ),
        Mistake(
            "half characters ignored",
            lambda ids: "".join(_bytes_of(token_id).decode("utf-8", errors="ignore") for token_id in ids),
            "characters that take several tokens disappear silently: their bytes are dropped, not joined",
        ),
        Mistake(
            "spaces inserted",
            lambda ids: " ".join(get_tokenizer().decode([token_id]) for token_id in ids),
            "there is a space between every two tokens: a token already contains its own space where there is one",
        ),
        Mistake(
            "bytes as letters",
            lambda ids: "".join(_bytes_of(token_id).decode("latin-1") for token_id in ids),
            "each byte became a letter: UTF-8 uses up to four bytes for one character",
        ),
    ],
    where="section 1.7",
)

# 1.C  Bytes written as UTF-8 must be read as UTF-8.

_READ = Exercise(
    reference=lambda content: content.decode("utf-8"),
    cases=[(text.encode("utf-8"),) for text in ("plain", "“Zoë,” said Émile — 5.5", "∩")],
    mistakes=[
        Mistake(
            "Windows code page",
            lambda content: content.decode("cp1252", errors="replace"),
            "Zoë comes out as ZoÃ«, and “ as three strange letters",
        ),
        Mistake(
            "code page fails",
            lambda content: content.decode("cp1252"),
            "your function raises an error, or returns ZoÃ« for Zoë: the bytes are UTF-8, not a Windows code page",
        ),
        Mistake(
            "Latin-1",
            lambda content: content.decode("latin-1"),
            "Zoë still comes out as ZoÃ«: Latin-1 also turns each byte into a letter",
        ),
        Mistake(
            "letters dropped",
            lambda content: content.decode("ascii", errors="ignore"),
            "Zoë comes out as Zo: ASCII has no ë, and errors='ignore' hides the loss",
        ),
        Mistake(
            "letters replaced",
            lambda content: content.decode("ascii", errors="replace"),
            "ë comes out as � for each of its bytes: ASCII has no ë",
        ),
        Mistake(
            "ASCII fails",
            lambda content: content.decode("ascii"),
            "your function raises an error at the first non-ASCII character: ASCII has only 128 characters",
        ),
    ],
    where="section 1.3",
)

# 1.1  One line: encode with the learned merges.

_MERGES = {(97, 97): 256, (256, 97): 257, (257, 98): 258}
_MERGES_OF_FOUR = {(97, 97): 256, (98, 99): 257, (256, 97): 258, (100, 100): 259}


def _merge(ids: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
    merged: list[int] = []
    for place, token_id in enumerate(ids):
        if merged and merged[-1] == -1:  # the left part was just met: this is the right part
            merged[-1] = new_id
        elif tuple(ids[place : place + 2]) == pair:
            merged.append(-1)
        else:
            merged.append(token_id)
    return merged


def _apply(ids: list[int], merges: dict[tuple[int, int], int]) -> list[int]:
    for pair, new_id in merges.items():
        ids = _merge(ids, pair, new_id)
    return ids


_APPLY = Exercise(
    reference=_apply,
    cases=[(list(text), _MERGES_OF_FOUR) for text in (b"aaabcddaaabcacb", b"aaaa", b"cbdd", b"")],
    mistakes=[
        Mistake(
            "only the last merge",
            lambda ids, merges: _merge(ids, *list(merges.items())[-1]),
            "only the last merge had an effect: each merge has to start from the result of the one before",
        ),
        Mistake(
            "only the first merge",
            lambda ids, merges: _merge(ids, *next(iter(merges.items()))),
            "only the first merge was applied: apply all the others before you return",
        ),
        Mistake(
            "last learned first",
            lambda ids, merges: _apply(ids, dict(reversed(merges.items()))),
            "the merges were applied from last to first: a later one needs what an earlier one has produced",
        ),
        Mistake(
            "nothing merged",
            lambda ids, merges: ids,
            "the bytes came back unchanged: assign the result of merge to ids",
        ),
        Mistake(
            "pair swapped",
            lambda ids, merges: _apply(ids, {(right, left): new for (left, right), new in merges.items()}),
            "the two parts of each pair are swapped",
        ),
    ],
    where="section 1.4",
)

# 1.2  Merge "there" by hand: 0 er, 1 th, 2 the, 3 re, 4 he, 5 here.

_BY_HAND = Exercise(
    reference=["th", "er", "e"],
    mistakes=[
        Mistake(
            "left to right",
            ["the", "re"],
            "you merged from left to right, th and then the: always merge the pair of lowest rank, wherever it is",
        ),
        Mistake(
            "longest piece",
            ["t", "here"],
            "you looked for the longest piece in the table: merge only neighbours, lowest rank first",
        ),
        Mistake(
            "bytes",
            [b"th", b"er", b"e"],
            "right, but as bytes: the exercise asks for a list of strings",
        ),
        Mistake(
            "piece not in the table",
            ["th", "ere"],
            "ere is not in the table: you can only merge into a piece that is",
        ),
        Mistake(
            "re before er",
            ["th", "e", "re"],
            "you merged re, of rank 3, although er, of rank 0, was there: the r can merge with only one neighbour",
        ),
        Mistake(
            "one merge",
            ["t", "h", "er", "e"],
            "you stopped after one merge: continue until no pair of neighbours is in the table",
        ),
        Mistake(
            "letters",
            ["t", "h", "e", "r", "e"],
            "these are the single letters, which is where merging starts",
        ),
        Mistake(
            "whole word",
            ["there"],
            "the table has no merge for the whole word: a token must be in the vocabulary",
        ),
        Mistake(
            "pair not in the table",
            ["ther", "e"],
            "th and er are neighbours, but ther is not in the table, so they stay separate",
        ),
    ],
    where="section 1.5",
)

# 1.3  From merged IDs back to bytes.


def _unmerge(ids: list[int], merges: dict[tuple[int, int], int]) -> list[int]:
    for pair, new_id in reversed(merges.items()):
        ids = _unmerge_once(ids, {pair: new_id})
    return ids


def _unmerge_once(ids: list[int], merges: dict[tuple[int, int], int]) -> list[int]:
    parts = {new_id: pair for pair, new_id in merges.items()}
    return [part for token_id in ids for part in parts.get(token_id, (token_id,))]


def _unmerge_swapped(ids: list[int], merges: dict[tuple[int, int], int]) -> list[int]:
    for (left, right), new_id in reversed(merges.items()):
        ids = _unmerge_once(ids, {(right, left): new_id})
    return ids


_UNMERGE = Exercise(
    reference=_unmerge,
    cases=[([258, 100, 258, 97, 99], _MERGES), ([99, 98], _MERGES), ([257], _MERGES), ([], _MERGES), ([97], {})],
    mistakes=[
        Mistake(
            "one level",
            _unmerge_once,
            "you undid one level: a part of a merged ID can itself be a merged ID (258 contains 257)",
        ),
        Mistake(
            "two levels",
            lambda ids, merges: _unmerge_once(_unmerge_once(ids, merges), merges),
            "you undid two levels: 258 contains 257, which contains 256; continue until nothing is left to undo",
        ),
        Mistake(
            "pairs as items",
            lambda ids, merges: [
                {new: pair for pair, new in merges.items()}.get(token_id, token_id) for token_id in ids
            ],
            "the list contains the pairs themselves: put their two parts in the list instead",
        ),
        Mistake(
            "parts swapped",
            _unmerge_swapped,
            "the two parts of a pair are swapped: the left one comes first",
        ),
        Mistake(
            "bytes dropped",
            lambda ids, merges: [byte for token_id in ids if token_id > 255 for byte in _unmerge([token_id], merges)],
            "IDs below 256 are missing: they are already bytes and stay as they are",
        ),
        Mistake(
            "nothing undone",
            lambda ids, merges: ids,
            "the IDs came back unchanged: split every ID of 256 or more into its parts",
        ),
    ],
    where="section 1.4",
)

# 1.4  Count tokens without running the tokenizer.

_TEXTS = ("12:30", "the  cat", "ice-cream", "I'm", "hello--world", "a\n\nb")

_COUNTS = Exercise(
    reference=[3, 3, 3, 2, 3, 4],
    mistakes=[
        Mistake(
            "words",
            [len(text.split()) for text in _TEXTS],
            "you counted what is between spaces: punctuation marks and newlines are tokens too",
        ),
        Mistake(
            "characters",
            [len(text) for text in _TEXTS],
            "you counted characters: a run of letters or of digits is one pre-token",
        ),
        Mistake(
            "letters only",
            [2, 2, 2, 2, 2, 2],
            "you counted runs of letters and digits: punctuation, runs of spaces and newlines are pieces too",
        ),
        Mistake(
            "newlines together",
            [3, 3, 3, 2, 3, 3],
            "all right except the last: before a word, a run of spaces or newlines leaves its last one separate",
        ),
        Mistake(
            "punctuation one by one",
            [3, 3, 3, 2, 4, 4],
            "all right except hello--world: a run of punctuation is one pre-token",
        ),
        Mistake(
            "ending split up",
            [3, 3, 3, 3, 3, 4],
            "all right except I'm: 'm is one of the English contractions that the pattern knows",
        ),
        Mistake(
            "both spaces with the word",
            [3, 2, 3, 2, 3, 4],
            "all right except the two spaces: only one goes with the word, the other is a piece of its own",
        ),
        Mistake(
            "both spaces separate",
            [3, 4, 3, 2, 3, 4],
            "all right except the two spaces: the last one goes with the word after it",
        ),
    ],
    where="section 1.5",
)

# 1.5  Untrusted documents in one row.


def _ids(text: str, allow_special: bool = False) -> list[int]:
    return text_to_ids(text, allow_special).tolist()


def _join(documents: list[str], after_last: bool = False, allow_special: bool = False) -> list[int]:
    ids = [token_id for document in documents for token_id in [*_ids(document, allow_special), END_OF_TEXT_ID]]
    return ids if after_last else ids[:-1]


_DOCUMENTS = Exercise(
    reference=_join,
    cases=[
        (["Mind the step", "ladders are wet"],),
        (["One only."],),
        (["He typed <|endoftext|> here.", "And then?", "Nothing."],),
        (["", "Yes.", "", "No.", "Yes."],),
    ],
    mistakes=[
        Mistake(
            "text trusted",
            lambda documents: _ids(END_OF_TEXT.join(documents), allow_special=True),
            "a document that only *mentions* <|endoftext|> was cut in two: a text must not be able to do that",
        ),
        Mistake(
            "separator as text",
            lambda documents: _ids(END_OF_TEXT.join(documents)),
            "the end of a document became seven ordinary tokens, because the separator was joined in as text",
        ),
        Mistake(
            "empty document swallowed",
            lambda documents: _join([document for document in documents if document]),
            "an empty document has lost its 50256: it is a document like any other",
        ),
        Mistake(
            "start decided by content",
            lambda documents: _join(documents[next((i for i, d in enumerate(documents) if d), 0) :]),
            "empty documents at the start have lost their 50256: go by the index, not by what is in the list so far",
        ),
        Mistake(
            "refused",
            lambda documents: [token_id for document in documents for token_id in get_tokenizer().encode(document)],
            "a document that contains <|endoftext|> makes your function raise an error: treat it as ordinary text",
        ),
        Mistake(
            "a list of lists",
            lambda documents: [_ids(document) for document in documents],
            "that is one list per document: the exercise asks for one list of IDs",
        ),
        Mistake(
            "no separator",
            lambda documents: [token_id for document in documents for token_id in _ids(document)],
            "nothing separates the documents: the model would read them as one",
        ),
        Mistake(
            "joined as one text",
            lambda documents: _ids("".join(documents)),
            "the documents were joined before encoding: nothing separates them, and tokens may cross the boundary",
        ),
        Mistake(
            "after the last too",
            lambda documents: _join(documents, after_last=True),
            "50256 also follows the last document: here it goes only between two documents",
        ),
        Mistake(
            "before each",
            lambda documents: [END_OF_TEXT_ID, *_join(documents)],
            "50256 also precedes the first document: here it goes only between two documents",
        ),
    ],
    where="section 1.8",
)

# 1.6  Padding on the left.


def _pad_left(texts: list[str], pad_id: int = END_OF_TEXT_ID) -> tuple[torch.Tensor, torch.Tensor]:
    batch, is_token = pad_texts(texts, pad_id)
    shifts = (~is_token).sum(dim=1).tolist()
    rows = list(zip(batch, is_token, shifts))
    return torch.stack([b.roll(s) for b, _, s in rows]), torch.stack([m.roll(s) for _, m, s in rows])


def _cut(texts: list[str], pad_id: int = END_OF_TEXT_ID) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [text_to_ids(text) for text in texts]
    batch = torch.stack([row[: min(map(len, rows))] for row in rows])
    return batch, torch.ones_like(batch, dtype=torch.bool)


_PAD_LEFT = Exercise(
    reference=_pad_left,
    cases=[
        (["Every effort moves you forward", "Every day"],),
        (["Good night, and mind the", "Last boat!", "Finish!"], 0),
        (["one", "two"],),
    ],
    mistakes=[
        Mistake(
            "padded right",
            pad_texts,
            "the padding is on the right: every text must end in the last column",
        ),
        Mistake(
            "texts reversed",
            lambda texts, pad_id=END_OF_TEXT_ID: tuple(tensor.flip(1) for tensor in pad_texts(texts, pad_id)),
            "the padding is on the left, but the texts run backwards: flip reverses them too",
        ),
        Mistake(
            "integer mask",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], _pad_left(texts, pad_id)[1].long()),
            "the mask is right, but made of 0 and 1: use True and False (torch.bool), which can select entries",
        ),
        Mistake(
            "mask not moved",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], pad_texts(texts, pad_id)[1]),
            "the IDs moved to the right, but the mask still says that the tokens are on the left",
        ),
        Mistake(
            "mask inverted",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], ~_pad_left(texts, pad_id)[1]),
            "the mask is inverted: True means that the entry is a token",
        ),
        Mistake(
            "mask from the IDs",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], _pad_left(texts, pad_id)[0] != pad_id),
            "the mask was made from the IDs: a real token whose ID equals pad_id is taken for padding",
        ),
        Mistake(
            "pad_id ignored",
            lambda texts, pad_id=END_OF_TEXT_ID: _pad_left(texts),
            "the rows are always filled with 50256: fill them with pad_id",
        ),
        Mistake(
            "cut",
            _cut,
            "the long rows were cut to the length of the shortest: padding must keep every token",
        ),
        Mistake(
            "mask forgotten",
            lambda texts, pad_id=END_OF_TEXT_ID: _pad_left(texts, pad_id)[0],
            "the batch is right, but the mask is missing: return (batch, is_token)",
        ),
    ],
    where="section 1.10",
)

EXERCISES = {
    "1.A": _SPLIT,
    "1.B": _DECODE,
    "1.C": _READ,
    "1.1": _APPLY,
    "1.2": _BY_HAND,
    "1.3": _UNMERGE,
    "1.4": _COUNTS,
    "1.5": _DOCUMENTS,
    "1.6": _PAD_LEFT,
}
