"""The exercises of lesson 1, text to token IDs."""

import regex
import torch

from utils.exercises import Exercise, Mistake
from utils.tokenizer import END_OF_TEXT, END_OF_TEXT_ID, get_tokenizer, pad_texts, text_to_ids

# 1.A  Cut a text so that the pieces join to it again.

_SPLIT = Exercise(
    reference=lambda text: regex.findall(r"\w+|\s+|[^\w\s]+", text),
    cases=[("hello--world",), ("two  blanks",), ("“Stop?!” he said…\n",), (" café a_b ",), ("",)],
    mistakes=[
        Mistake(
            "blanks lost",
            str.split,
            "two  blanks comes out as two pieces that join to twoblanks, and hello--world as one piece",
        ),
        Mistake(
            "blanks dropped",
            lambda text: [piece for piece in regex.findall(r"\w+|\s+|[^\w\s]+", text) if piece.strip()],
            "words and signs are there, but the blanks are dropped: two  blanks cannot come back",
        ),
        Mistake(
            "signs lost",
            lambda text: regex.findall(r"\w+|\s+", text),
            "words and blanks are there, but the signs between them are lost",
        ),
        Mistake(
            "cut at single blanks",
            lambda text: text.split(" "),
            "the blanks are gone, a run of them leaves empty pieces, and signs stick to the words",
        ),
        Mistake(
            "blanks among the signs",
            lambda text: regex.findall(r"\w+|\W+", text),
            "nothing is lost, but a sign and the blank after it are one piece: they are two runs",
        ),
        Mistake(
            "English letters only",
            lambda text: regex.findall(r"[A-Za-z0-9_]+|\s+|[^A-Za-z0-9_\s]+", text),
            "café is cut in two: é is a letter as well, and \\w knows that",
        ),
        Mistake(
            "words only",
            lambda text: regex.findall(r"\w+", text),
            "only the words are left: blanks and signs belong to the text too",
        ),
        Mistake(
            "runs broken up",
            lambda text: regex.findall(r"\w+|\s|[^\w\s]", text),
            "nothing is lost, but each blank and each sign is a piece of its own: a run of them is to be one piece",
        ),
        Mistake(
            "empty pieces",
            lambda text: regex.split(r"(\s+|[^\w\s]+)", text),
            "nothing is lost, but there are empty pieces, which splitting at a sign leaves at the ends",
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
            "characters that take several tokens vanish without a trace: the bytes are dropped, not joined",
        ),
        Mistake(
            "blanks put in",
            lambda ids: " ".join(get_tokenizer().decode([token_id]) for token_id in ids),
            "blanks stand between all tokens: a token brings its own blank along where there is one",
        ),
        Mistake(
            "bytes as letters",
            lambda ids: "".join(_bytes_of(token_id).decode("latin-1") for token_id in ids),
            "each byte became a letter: UTF-8 takes up to four bytes for one character",
        ),
    ],
    where="section 1.7",
)

# 1.C  Bytes were written as UTF-8 and must be read as UTF-8.

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
            "code page stops",
            lambda content: content.decode("cp1252"),
            "your function stops, or gives ZoÃ« for Zoë: a Windows code page is not the rule the bytes were made with",
        ),
        Mistake(
            "Latin-1",
            lambda content: content.decode("latin-1"),
            "Zoë still comes out as ZoÃ«: Latin-1, too, makes a letter of each byte",
        ),
        Mistake(
            "letters dropped",
            lambda content: content.decode("ascii", errors="ignore"),
            "Zoë comes out as Zo: ASCII has no ë, and errors='ignore' hides that it is lost",
        ),
        Mistake(
            "letters replaced",
            lambda content: content.decode("ascii", errors="replace"),
            "ë comes out as � for each of its bytes: ASCII cannot spell it",
        ),
        Mistake(
            "ASCII stops",
            lambda content: content.decode("ascii"),
            "your function stops at the first letter that is not English: ASCII has only 128 characters",
        ),
    ],
    where="section 1.3",
)

# 1.1  One line: encode with learned merges.

_MERGES = {(97, 97): 256, (256, 97): 257, (257, 98): 258}
_MERGES_OF_FOUR = {(97, 97): 256, (98, 99): 257, (256, 97): 258, (100, 100): 259}


def _merge(ids: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
    merged: list[int] = []
    for place, token_id in enumerate(ids):
        if merged and merged[-1] == -1:  # the left part was met: this is the right one
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
            "only the last merge had an effect: each has to work on what the one before has left",
        ),
        Mistake(
            "only the first merge",
            lambda ids, merges: _merge(ids, *next(iter(merges.items()))),
            "only the first merge was applied: go on with all the others before you return",
        ),
        Mistake(
            "last learned first",
            lambda ids, merges: _apply(ids, dict(reversed(merges.items()))),
            "the merges were applied from the last to the first: a late one needs what an early one has made",
        ),
        Mistake(
            "nothing merged",
            lambda ids, merges: ids,
            "the bytes came back as they went in: give the result of merge to ids",
        ),
        Mistake(
            "changed places",
            lambda ids, merges: _apply(ids, {(right, left): new for (left, right), new in merges.items()}),
            "the two parts of a pair have changed places",
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
            "you merged from the left, th and then the: of all pairs the one of lowest rank goes first, wherever it is",
        ),
        Mistake(
            "longest piece",
            ["t", "here"],
            "you looked for the longest piece of the table: only neighbours are merged, lowest rank first",
        ),
        Mistake(
            "bytes",
            [b"th", b"er", b"e"],
            "right, but as bytes: a list of strings is asked for",
        ),
        Mistake(
            "piece that is not in the table",
            ["th", "ere"],
            "ere is not in the table: what is merged has to be there",
        ),
        Mistake(
            "re before er",
            ["th", "e", "re"],
            "you took re, of rank 3, while er, of rank 0, was there: the r can go with one neighbour only",
        ),
        Mistake(
            "one merge",
            ["t", "h", "er", "e"],
            "you stopped after one merge: go on until no pair of neighbours is in the table",
        ),
        Mistake(
            "letters",
            ["t", "h", "e", "r", "e"],
            "these are the single letters, where the merging starts",
        ),
        Mistake(
            "whole word",
            ["there"],
            "there is no merge for the whole word in the table: a token must be in the vocabulary",
        ),
        Mistake(
            "pair that is not in the table",
            ["ther", "e"],
            "th and er stand together, but ther is not in the table, so they stay apart",
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
            "you undid one level: a part of a merged ID can be a merged ID itself (258 holds 257)",
        ),
        Mistake(
            "two levels",
            lambda ids, merges: _unmerge_once(_unmerge_once(ids, merges), merges),
            "you undid two levels: 258 holds 257, which holds 256; go on until nothing is left to undo",
        ),
        Mistake(
            "pairs as items",
            lambda ids, merges: [
                {new: pair for pair, new in merges.items()}.get(token_id, token_id) for token_id in ids
            ],
            "the pairs stand in the list as pairs: their two parts have to stand there instead",
        ),
        Mistake(
            "parts swapped",
            _unmerge_swapped,
            "the two parts of a pair have changed places: the left one comes first",
        ),
        Mistake(
            "bytes dropped",
            lambda ids, merges: [byte for token_id in ids if token_id > 255 for byte in _unmerge([token_id], merges)],
            "IDs below 256 are missing: they are bytes already and stay as they are",
        ),
        Mistake(
            "nothing undone",
            lambda ids, merges: ids,
            "the IDs came back as they went in: those of 256 and more have to be taken apart",
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
            "you counted what stands between blanks: signs and line ends are tokens too",
        ),
        Mistake(
            "characters",
            [len(text) for text in _TEXTS],
            "you counted characters: a run of letters or of digits is one pre-token",
        ),
        Mistake(
            "letters only",
            [2, 2, 2, 2, 2, 2],
            "you counted runs of letters and digits: a sign, a run of blanks and a line end are pieces as well",
        ),
        Mistake(
            "line ends together",
            [3, 3, 3, 2, 3, 3],
            "all right but the last: before a word, a run of blanks or line ends leaves its last one over",
        ),
        Mistake(
            "signs one by one",
            [3, 3, 3, 2, 4, 4],
            "all right but hello--world: a run of signs is one pre-token",
        ),
        Mistake(
            "ending in pieces",
            [3, 3, 3, 3, 3, 4],
            "all right but I'm: 'm is one of the English endings that the pattern knows",
        ),
        Mistake(
            "both blanks with the word",
            [3, 2, 3, 2, 3, 4],
            "all right but the two blanks: only one goes with the word, the other stays alone",
        ),
        Mistake(
            "both blanks alone",
            [3, 4, 3, 2, 3, 4],
            "all right but the two blanks: the last one goes with the word after it",
        ),
    ],
    where="section 1.5",
)

# 1.5  Documents from strangers in one row.


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
            "a document that merely *mentions* <|endoftext|> was cut in two: a text must not be able to do that",
        ),
        Mistake(
            "separator as text",
            lambda documents: _ids(END_OF_TEXT.join(documents)),
            "the end of a document came out as seven plain tokens, because it was joined in as text",
        ),
        Mistake(
            "empty document swallowed",
            lambda documents: _join([document for document in documents if document]),
            "an empty document has lost its 50256: it is a document like any other",
        ),
        Mistake(
            "start judged by what is there",
            lambda documents: _join(documents[next((i for i, d in enumerate(documents) if d), 0) :]),
            "empty documents at the start have lost their 50256: ask which document it is, not what is there yet",
        ),
        Mistake(
            "refused",
            lambda documents: [token_id for document in documents for token_id in get_tokenizer().encode(document)],
            "a document that contains <|endoftext|> stops your function: take it as plain text",
        ),
        Mistake(
            "a list of lists",
            lambda documents: [_ids(document) for document in documents],
            "that is one list for each document: asked is one list of IDs",
        ),
        Mistake(
            "no separator",
            lambda documents: [token_id for document in documents for token_id in _ids(document)],
            "nothing stands between the documents: the model would read them as one",
        ),
        Mistake(
            "joined as one text",
            lambda documents: _ids("".join(documents)),
            "the documents were joined before encoding: nothing stands between them, and tokens may cross the border",
        ),
        Mistake(
            "after the last too",
            lambda documents: _join(documents, after_last=True),
            "50256 stands after the last document too: here it goes only between two",
        ),
        Mistake(
            "before each",
            lambda documents: [END_OF_TEXT_ID, *_join(documents)],
            "50256 stands before the first document too: here it goes only between two",
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
            "the padding is on the right: the texts are to end in the last column",
        ),
        Mistake(
            "texts turned round",
            lambda texts, pad_id=END_OF_TEXT_ID: tuple(tensor.flip(1) for tensor in pad_texts(texts, pad_id)),
            "the padding is on the left, but the texts run backwards: flip turns them round as well",
        ),
        Mistake(
            "mask of numbers",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], _pad_left(texts, pad_id)[1].long()),
            "the mask is right, but made of 0 and 1: True and False (torch.bool) can pick entries",
        ),
        Mistake(
            "mask not moved",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], pad_texts(texts, pad_id)[1]),
            "the IDs moved to the right, but the mask still says the tokens are on the left",
        ),
        Mistake(
            "mask inverted",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], ~_pad_left(texts, pad_id)[1]),
            "the mask is the wrong way round: True says that the entry is a token",
        ),
        Mistake(
            "mask from the IDs",
            lambda texts, pad_id=END_OF_TEXT_ID: (_pad_left(texts, pad_id)[0], _pad_left(texts, pad_id)[0] != pad_id),
            "the mask was made from the IDs: where a real token has the padding's ID, it is taken for padding",
        ),
        Mistake(
            "pad_id ignored",
            lambda texts, pad_id=END_OF_TEXT_ID: _pad_left(texts),
            "the rows are always filled with 50256: pad_id says what to fill with",
        ),
        Mistake(
            "cut",
            _cut,
            "the long rows were cut to the shortest: padding is to keep every token",
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
