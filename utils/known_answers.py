"""What is true in the little world: next words, best possible losses, mistakes, and tasks whose answer is known."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from utils.little_world import IDS, PAGE_LENGTH, WORDS, Step, ids_to_words, page_grammar

TASKS = ("who", "surname", "whom", "surname again", "why", "it", "verb clash", "verb same", "page end")


def read_along(words: Sequence[str]) -> Iterator[Step]:
    """Yield the grammar's Step before each word of a text of pages, then the one after the last word.

    Raises:
        ValueError: a word that the grammar cannot say there (named, with its position and what is allowed).
    """
    said: list[str] = []
    for position, word in enumerate([*words, None]):
        if position % PAGE_LENGTH == 0:
            said = []
            grammar = page_grammar(said)
            step = next(grammar)
        else:
            step = grammar.send(said[-1])
        yield step
        if word is not None and word not in step.probabilities:
            raise ValueError(f"word {position} is {word!r}: only {', '.join(step.probabilities)} may come there")
        said.append(word)


def next_probabilities(words: str | Sequence[str]) -> dict[str, float]:
    """Return {word: probability} of the word after any beginning of a text of pages, also the empty one.

    Raises:
        ValueError: as for `read_along`.
    """
    *_, step = read_along(words.split() if isinstance(words, str) else words)
    return step.probabilities


class Mistake(NamedTuple):
    """A word that the grammar cannot say: its position, counted from 0, and what is allowed there."""

    position: int
    word: str
    allowed: list[str]


def first_mistake(words: str | Sequence[str]) -> Mistake | None:
    """Return the first word of a text of pages that the grammar cannot say, or None."""
    words = words.split() if isinstance(words, str) else words
    for position, (word, step) in enumerate(zip(words, read_along(words))):
        if word not in step.probabilities:
            return Mistake(position, word, list(step.probabilities))
    return None


def true_probabilities(pages: Tensor) -> Tensor:
    """Return the true probabilities of the next word after each word of (num_pages, 24) IDs.

    Returns:
        (num_pages, 24, vocab_size), in step with a model's logits: the last ones of a page are about the next "¶".

    Raises:
        ValueError: another shape, or a page that the grammar cannot write.
    """
    truth = torch.zeros(*_checked(pages).shape, len(WORDS))
    for page, row in zip(pages, truth):
        for step, probabilities in zip(list(read_along(ids_to_words(page)))[1:], row):
            probabilities[[IDS[word] for word in step.probabilities]] = torch.tensor([*step.probabilities.values()])
    return truth


def entropy(probabilities: Tensor) -> Tensor:
    """Return the mean of −ln p in nats, (…) of (…, vocab_size): the loss to expect of a model that knows them."""
    return torch.special.entr(probabilities).sum(dim=-1)


def divergence(probabilities: Tensor, logits: Tensor) -> Tensor:
    """Return how much more loss than `entropy` to expect of a model's logits: (…) of (…, vocab_size), never below 0.

    This is the Kullback-Leibler divergence (KL) of the model's probabilities from the true ones, in nats.
    """
    return -(probabilities * torch.log_softmax(logits, dim=-1)).sum(dim=-1) - entropy(probabilities)


def next_ids(pages: Tensor) -> Tensor:
    """Return the target of each word, (num_pages, 24) IDs: the next word on the page, and at its end the next "¶"."""
    return torch.cat([pages[:, 1:], torch.full_like(pages[:, :1], IDS["¶"])], dim=1)


def best_loss(pages: Tensor) -> float:
    """Return the mean of −ln p of the words written, in nats per word: the loss of a model that knows the grammar."""
    written = true_probabilities(pages).gather(-1, next_ids(pages).unsqueeze(-1))  # (num_pages, 24, 1)
    return -written.log().mean().item()


class Task(NamedTuple):
    """The words of some pages that one kind of knowledge decides: where each is predicted, and from what.

    `logits[task.pages, task.positions]` are the predictions, (num_cases, vocab_size): those at the word before.
    """

    pages: Tensor  # (num_cases,)
    positions: Tensor  # (num_cases,), from 0
    answers: Tensor  # (num_cases,) IDs
    sources: Tensor  # (num_cases, 24) bool: the words that tell the answer
    between: Tensor  # IDs: a prediction counts as right if the answer's logit is the highest of these


def find_tasks(pages: Tensor) -> dict[str, Task]:
    """Return the tasks in (num_pages, 24) IDs, by the names in TASKS; raises as `true_probabilities` does."""
    cases: dict[str, list] = {name: [] for name in TASKS}
    for number, words in enumerate(map(ids_to_words, _checked(pages))):
        following = zip([*words[1:], "¶"], list(read_along(words))[1:])
        for position, (word, step) in enumerate(following):
            if step.task and word in step.between:  # "near" in place of a verb is not wrong: no case
                cases[step.task].append((number, position, word, step))
    return {name: _task(found) for name, found in cases.items() if found}


def _task(cases: list) -> Task:
    numbers, positions, words, steps = zip(*cases)
    sources = torch.zeros(len(cases), PAGE_LENGTH, dtype=torch.bool)
    for row, step in zip(sources, steps):
        row[list(step.sources)] = True
    ids = torch.tensor([IDS[word] for word in words])
    return Task(
        torch.tensor(numbers), torch.tensor(positions), ids, sources, torch.tensor([IDS[w] for w in steps[0].between])
    )


def task_accuracy(logits: Tensor, task: Task) -> float:
    """Return the fraction of a task's cases that (num_pages, 24, vocab_size) logits predict right."""
    predicted = logits[task.pages, task.positions][:, task.between].argmax(dim=-1)  # (num_cases,)
    return (task.between[predicted] == task.answers).float().mean().item()


def attention_at_sources(attn_weights: Tensor, task: Task) -> Tensor:
    """Return the mean weight that each head gives to the sources, (num_heads,), of (num_pages, num_heads, 24, 24)."""
    weights = attn_weights[task.pages, :, task.positions]  # (num_cases, num_heads, 24)
    return (weights * task.sources.unsqueeze(1)).sum(dim=-1).mean(dim=0)


def chance_at_sources(task: Task) -> float:
    """Return the mean weight of the sources if attention were the same for all words up to the position."""
    return (task.sources.sum(dim=-1) / (task.positions + 1)).mean().item()


def _checked(pages: Tensor) -> Tensor:
    if not isinstance(pages, Tensor) or pages.dim() != 2 or pages.shape[1] != PAGE_LENGTH:
        shape = tuple(pages.shape) if isinstance(pages, Tensor) else type(pages).__name__
        raise ValueError(f"pages must have shape (num_pages, {PAGE_LENGTH}), not {shape}")
    return pages
