"""A little world: pages of 24 words by a grammar that knows, before each word, which may come and how probably."""

import random
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from utils.arguments import as_integer

PAGE_LENGTH = 24  # a page that is full ends, in the middle of a sentence if need be
CLASSES = {
    "punctuation": ["¶", "."],
    "fixed": ["the", "it", "thanked", "is", "are", "did", "not", "cross", "because", "was", "went", "home", "closed"],
    "given name": ["Anna", "Tom", "Mira", "Omar", "Nora", "Bram", "Ruth", "Leo"],
    "surname": ["Tolk", "Penn", "Vale", "Finch", "Hale", "Marsh", "Stone", "Wren"],
    "helped": ["helped", "taught", "rescued"],
    "when": ["today", "twice"],
    "did": ["slept", "laughed", "sang"],
    "animal": ["dog", "cat", "horse", "cow", "goat", "fox"],
    "way": ["road", "street", "bridge", "path", "lane", "square"],
    "of an animal": ["tired", "hungry", "sleepy", "nervous"],
    "of a way": ["icy", "crowded", "flooded", "slippery"],
    "thing": ["key", "letter", "box", "lamp", "map", "cup"],
    "things": ["keys", "letters", "boxes", "lamps", "maps", "cups"],
    "furniture": ["cabinet", "door", "window", "desk"],
    "pieces of furniture": ["cabinets", "doors", "windows", "desks"],
    "where": ["near", "behind"],
    "of a thing": ["dusty", "old", "green"],
}
WORDS = [word for members in CLASSES.values() for word in members]  # a word's index is its token ID
IDS = {word: index for index, word in enumerate(WORDS)}


class Step(NamedTuple):
    """What the grammar says before a word: which may come, and for a word that can be known, from where."""

    probabilities: dict[str, float]
    task: str | None = None
    sources: Sequence[int] = ()  # positions on the page of the words that tell it
    between: Sequence[str] = WORDS  # a prediction counts as right if it is the most probable one of these


def evenly(words: Collection[str], total: float = 1.0) -> dict[str, float]:
    """Return {word: probability}, the same for each of the words; their sum is total."""
    return {word: total / len(words) for word in words}


def page_grammar(said: list[str]) -> Iterator[Step]:
    """Speak one page, endlessly: yield a Step before each word, and be sent the word that was said.

    `said` is the page so far: whoever runs the grammar appends each word to it before sending that word.
    """
    yield Step({"¶": 1.0}, "page end")  # the end of the page before this one
    first = yield Step(evenly(CLASSES["given name"], 0.4) | {"the": 0.6})
    yield from _people(said, first) if first != "the" else _things(said)


def _people(said: list[str], name: str) -> Iterator[Step]:  # ¶ Anna Tolk helped Tom Penn . Tom Penn thanked …
    surname = yield Step(evenly(CLASSES["surname"]))
    yield Step(evenly(CLASSES["helped"]))
    other = yield Step(evenly([word for word in CLASSES["given name"] if word != name]))
    other_surname = yield Step(evenly([word for word in CLASSES["surname"] if word != surname]))
    if (yield Step({".": 0.5} | evenly(CLASSES["when"], 0.5))) != ".":
        yield from _fixed(".")
    yield _copied(said, other, "who")
    yield _copied(said, other_surname, "surname")
    yield from _fixed("thanked")
    yield _copied(said, name, "whom")
    yield _copied(said, surname, "surname")
    yield from _fixed(".")
    surnames = {name: surname, other: other_surname}
    while True:
        yield _copied(said, surnames[(yield Step(evenly(surnames)))], "surname again")
        yield Step(evenly(CLASSES["did"]))
        yield from _fixed(".")


def _things(said: list[str]) -> Iterator[Step]:
    while True:  # "the" has been said
        noun = yield Step(evenly(CLASSES["animal"], 0.6) | evenly(CLASSES["thing"] + CLASSES["things"], 0.4))
        yield from _crossing(said, noun) if noun in CLASSES["animal"] else _agreement(said, noun)
        yield from _fixed(". the")


def _crossing(said: list[str], animal: str) -> Iterator[Step]:  # the dog did not cross the road because it was …
    yield from _fixed("did not cross the")
    way = yield Step(evenly(CLASSES["way"]))
    yield from _fixed("because it was")
    reason = yield Step(evenly(CLASSES["of an animal"] + CLASSES["of a way"]))
    yield from _fixed(". the")
    yield _copied(said, reason, "why")
    noun, did = (animal, "went home") if reason in CLASSES["of an animal"] else (way, "was closed")
    yield _copied(said, noun, "it")
    yield from _fixed(did)


def _agreement(said: list[str], subject: str) -> Iterator[Step]:  # the key near the windows is old
    subject_at, many = len(said) - 1, subject in CLASSES["things"]
    verb, last_is_many = ("are" if many else "is"), many
    for probability in (0.25, 0.5, 1.0):  # of the verb now, rather than after one more "near the …"
        task = "verb same" if last_is_many == many else "verb clash"
        options = {verb: probability} | (evenly(CLASSES["where"], 1 - probability) if probability < 1 else {})
        if (yield Step(options, task, [subject_at], ("is", "are"))) == verb:
            break
        yield from _fixed("the")
        nouns = CLASSES["furniture"] + CLASSES["pieces of furniture"]
        last_is_many = (yield Step(evenly(nouns))) in CLASSES["pieces of furniture"]
    yield Step(evenly(CLASSES["of a thing"]))


def _fixed(words: str) -> Iterator[Step]:
    for word in words.split():
        yield Step({word: 1.0})


def _copied(said: list[str], word: str, task: str) -> Step:
    return Step({word: 1.0}, task, [position for position, earlier in enumerate(said) if earlier == word])


def write_pages(num_pages: int, seed: int = 0) -> Tensor:
    """Return pages written by the grammar, (num_pages, 24) IDs; the same seed writes the same pages."""
    rng, pages = random.Random(as_integer("seed", seed)), []
    for _ in range(as_integer("num_pages", num_pages, at_least=1)):
        said: list[str] = []
        grammar = page_grammar(said)
        step = next(grammar)
        while len(said) < PAGE_LENGTH:
            said += rng.choices(list(step.probabilities), list(step.probabilities.values()))
            step = grammar.send(said[-1])
        pages.append([IDS[word] for word in said])
    return torch.tensor(pages)


def end_to_end(pages: Tensor) -> Tensor:
    """Return pages as one row, (num_pages · 24 + 1,) IDs: its last one is the next page's "¶", a target like any."""
    return torch.cat([pages.flatten(), torch.tensor([IDS["¶"]])])


def words_to_ids(words: str | Sequence[str]) -> Tensor:
    """Return (num_words,) IDs of a list of words, or of one string with spaces between them."""
    words = words.split() if isinstance(words, str) else words
    if unknown := [word for word in words if word not in IDS]:
        raise ValueError(f"{unknown[0]!r} is not one of the {len(WORDS)} words of the little world")
    return torch.tensor([IDS[word] for word in words], dtype=torch.int64)


def ids_to_words(ids: Tensor | Sequence[int]) -> list[str]:
    """Return the words of a row of IDs."""
    return [WORDS[as_integer("an ID", index, at_least=0, at_most=len(WORDS) - 1)] for index in ids]
