"""The induction head set by hand: exact where a token has been followed by one other token only."""

import pytest
import torch

from utils.induction import InductionByHand
from utils.known_answers import attention_at_sources, divergence, find_tasks, task_accuracy, true_probabilities
from utils.little_world import WORDS, write_pages

RIGHT_BEFORE = torch.arange(1, 24), torch.arange(23)


@pytest.fixture(scope="module")
def model():
    return InductionByHand(len(WORDS), 24)


@pytest.fixture(scope="module")
def pages():
    return write_pages(300, seed=11)


def said_twice(num_rows, num_words=11):
    """Return rows of "¶" and random words, all different, that are then said again, (num_rows, 1 + 2 · num_words)."""
    generator = torch.Generator().manual_seed(0)
    words = torch.stack([torch.randperm(len(WORDS) - 1, generator=generator)[:num_words] + 1 for _ in range(num_rows)])
    return torch.cat([torch.zeros(num_rows, 1, dtype=torch.int64), words, words], dim=1)


@torch.no_grad()
def test_each_layer_attends_to_what_it_must(model, pages):
    previous, induction = model.attention_weights(pages)
    assert previous.shape == induction.shape == (300, 1, 24, 24)
    assert previous[:, 0, *RIGHT_BEFORE].min() > 0.999999
    tasks = find_tasks(pages)
    for name in ("surname", "surname again"):
        assert attention_at_sources(induction, tasks[name]).item() == pytest.approx(1, abs=1e-6)


@torch.no_grad()
def test_surnames_are_certain_and_what_needs_more_than_copying_is_not(model, pages):
    predicted, tasks = model(pages), find_tasks(pages)
    assert torch.allclose(predicted.sum(dim=-1), torch.ones(300, 24), atol=1e-5)
    again = tasks["surname again"]
    for name in ("surname", "surname again"):
        assert task_accuracy(predicted, tasks[name]) == 1
    assert max(task_accuracy(predicted, tasks[name]) for name in ("who", "whom", "why", "it", "page end")) == 0
    truth = true_probabilities(pages)[again.pages, again.positions]
    assert divergence(truth, (predicted[again.pages, again.positions] + 1e-12).log()).max() < 1e-5


@torch.no_grad()
def test_random_words_said_twice(model):
    rows = said_twice(200)
    predicted = model(rows).argmax(dim=-1)
    assert torch.equal(predicted[:, 12:-1], rows[:, 13:])
    assert (predicted[:, :12] == rows[:, 1:13]).float().mean() < 0.05  # said for the first time


@torch.no_grad()
def test_one_layer_alone_cannot(pages):
    model = InductionByHand(len(WORDS), 24)
    model.previous.out_proj.weight.zero_()
    again, rows = find_tasks(pages)["surname again"], said_twice(200)
    assert task_accuracy(model(pages), again) < 0.1
    assert (model(rows)[:, 12:-1].argmax(dim=-1) == rows[:, 13:]).float().mean() < 0.1
    _, induction = model.attention_weights(pages)
    assert torch.allclose(induction[:, 0, 23], torch.full((300, 24), 1 / 24))  # no token matches: it attends to all


@torch.no_grad()
def test_sizes_of_any_kind_and_a_prefix_alone(model, pages):
    small = InductionByHand(vocab_size=5, context_length=6)
    assert small(torch.tensor([[3, 1, 4, 2, 3, 1]])).argmax(dim=-1)[0, 4:].tolist() == [1, 4]
    assert torch.allclose(model(pages[:, :10]), model(pages)[:, :10], atol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((0, 24), "vocab_size must be at least 1, not 0"), ((84, 1), "context_length must be at least 2, not 1")],
)
def test_bad_sizes_are_named(sizes, message):
    with pytest.raises(ValueError, match=message):
        InductionByHand(*sizes)
