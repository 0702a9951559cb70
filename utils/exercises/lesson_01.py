"""The exercises of lesson 1, text to token IDs."""

import regex
import torch

from utils.exercises import Exercise, Mistake
from utils.tokenizer import END_OF_TEXT, END_OF_TEXT_ID, get_tokenizer, pad_texts, text_to_ids

# 1.A  Cut a text so that the pieces join to it again.

_SPLIT = Exercise(
    reference=lambda text: regex.findall(r"\w+|\s+|[^\w\s]+", text),
    cases=[("hello--world",), ("two  blanks",), ("Hello, world!\n",), (" café ",), ("",)],
    mistakes=[
        Mistake(
            "blanks lost",
            str.split,
            "the blanks are gone and hello--world is one piece: joined again, your pieces are another text",
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
    cases=[(get_tokenizer().encode_ordinary(text),) for text in ("Good night.", "猫が好き", "∩ and Zoë")],
    mistakes=[
        Mistake(
            "token by token",
            lambda ids: "".join(get_tokenizer().decode([token_id]) for token_id in ids),
            "English is right, but 猫 comes out as �: a token can end in the middle of a character",
        ),
        Mistake(
            "half characters ignored",
            lambda ids: "".join(_bytes_of(token_id).decode("utf-8", errors="ignore") for token_id in ids),
            "characters that take several tokens vanish without a trace: the bytes are dropped, not joined",
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
            "Zoë comes out as ZoÃ«: UTF-8 bytes were read with a Windows code page, one letter a byte",
        ),
        Mistake(
            "Latin-1",
            lambda content: content.decode("latin-1"),
            "Zoë comes out as ZoÃ«: UTF-8 bytes were read as Latin-1, one letter a byte",
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

# 1.1  One line: a word dictionary with an entry for what is unknown.

_VOCABULARY = {"a": 0, "day": 1, "every": 2, "<|unk|>": 3, "holds": 4}

_UNKNOWN = Exercise(
    reference=lambda text, vocabulary: [vocabulary.get(word, vocabulary["<|unk|>"]) for word in text.split()],
    cases=[("every day holds a", _VOCABULARY), ("every effort moves you", _VOCABULARY), ("Every  day", _VOCABULARY)],
    mistakes=[
        Mistake(
            "stops at unknown",
            lambda text, vocabulary: [vocabulary[word] for word in text.split()],
            "your function stops with KeyError at a word that the vocabulary does not have",
        ),
        Mistake(
            "unknown dropped",
            lambda text, vocabulary: [vocabulary[word] for word in text.split() if word in vocabulary],
            "unknown words are left out, so there are fewer IDs than words: each should leave its mark",
        ),
        Mistake(
            "ID of no token",
            lambda text, vocabulary: [vocabulary.get(word, len(vocabulary)) for word in text.split()],
            "an unknown word gets len(vocabulary), which is nobody's ID: look the ID of <|unk|> up",
        ),
        Mistake(
            "None as ID",
            lambda text, vocabulary: [vocabulary.get(word) for word in text.split()],
            "an unknown word gets None: .get needs to be told what to give instead",
        ),
        Mistake(
            "letters for words",
            lambda text, vocabulary: [vocabulary.get(letter, vocabulary["<|unk|>"]) for letter in text],
            "you went through the letters: a text has to be split into words first",
        ),
        Mistake(
            "small letters",
            lambda text, vocabulary: [vocabulary.get(word, vocabulary["<|unk|>"]) for word in text.lower().split()],
            "Every became every: the text was turned into small letters, which nobody asked for",
        ),
    ],
    where="section 1.2",
)

# 1.2  From merged IDs back to bytes.


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


_MERGES = {(97, 97): 256, (256, 97): 257, (257, 98): 258}

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

# 1.3  Count tokens without running the tokenizer.

_TEXTS = ("cat", " cat", "CAT", "cats", "Hello,", "\n\n", "∩", "  Hello World.")

_COUNTS = Exercise(
    reference=[len(get_tokenizer().encode_ordinary(text)) for text in _TEXTS],
    mistakes=[
        Mistake(
            "words",
            [len(text.split()) for text in _TEXTS],
            "you counted words: signs and line ends are tokens too, and a word can be several",
        ),
        Mistake(
            "one each",
            [1] * len(_TEXTS),
            "you took each text for one token: rare pieces fall into several",
        ),
        Mistake(
            "characters",
            [len(text) for text in _TEXTS],
            "you counted characters: common runs of them are merged into one token",
        ),
        Mistake(
            "bytes",
            [len(text.encode("utf-8")) for text in _TEXTS],
            "you counted bytes: those are where the merging starts, not where it ends",
        ),
        Mistake(
            "a sign is a token",
            [1, 1, 2, 1, 2, 1, 1, 4],
            "all right but ∩: one character, but three bytes, and only two of them were merged",
        ),
        Mistake(
            "the blank apart",
            [1, 2, 2, 1, 2, 1, 2, 6],
            "you counted blanks as tokens of their own: a blank belongs to the token that follows it",
        ),
        Mistake(
            "capitals alike",
            [1, 1, 1, 1, 2, 1, 2, 4],
            "all right but CAT: capitals are other bytes, and this run of them is rare",
        ),
    ],
    where="sections 1.6 and 1.7",
)

# 1.4  Documents from strangers in one row.


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
            "the separator came out as seven plain tokens, because it was joined in as text: add the number 50256",
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

# 1.5  Padding on the left.


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
    "1.1": _UNKNOWN,
    "1.2": _UNMERGE,
    "1.3": _COUNTS,
    "1.4": _DOCUMENTS,
    "1.5": _PAD_LEFT,
}
