"""The little world: its probabilities by hand and by counting, its mistakes, its losses and its tasks."""

import math
import random
import time
from collections import Counter

import pytest
import torch
from states import random_states

from utils.batches import make_loader
from utils.known_answers import (
    TASKS,
    Mistake,
    attention_at_sources,
    best_loss,
    chance_at_sources,
    divergence,
    entropy,
    find_tasks,
    first_mistake,
    next_ids,
    next_probabilities,
    read_along,
    task_accuracy,
    true_probabilities,
)
from utils.little_world import CLASSES, IDS, PAGE_LENGTH, WORDS, end_to_end, ids_to_words, words_to_ids, write_pages

PEOPLE = (
    "¶ Anna Tolk helped Tom Penn . Tom Penn thanked Anna Tolk . Anna Tolk sang . Anna Tolk slept . Tom Penn laughed"
)
TWICE = "¶ Leo Hale taught Nora Vale twice . Nora Vale thanked Leo Hale . Nora Vale slept . Leo Hale sang . Leo Hale"
TIRED = "¶ the dog did not cross the road because it was tired . the tired dog went home . the key is old ."
ICY = "¶ the lamps are old . the cat did not cross the path because it was icy . the icy path was closed ."
THINGS = "¶ the keys near the door behind the window are old . the box near the desks is green . the map near the"
PAGES = torch.stack([words_to_ids(page) for page in (PEOPLE, TWICE, TIRED, ICY, THINGS)])


@pytest.fixture(scope="module")
def written():
    return write_pages(20_000, seed=7)


def first_words(page, num_words):
    return " ".join(page.split()[:num_words])


def test_the_words():
    assert len(WORDS) == len(set(WORDS)) == len(IDS) == 84
    assert WORDS[0] == "¶"
    assert all(ids_to_words(words_to_ids(page)) == page.split() for page in (PEOPLE, ICY))
    assert words_to_ids("").shape == (0,)
    assert words_to_ids(["¶", "the"]).tolist() == [0, 2]


def test_pages_are_written_the_same_for_the_same_seed_and_leave_other_random_states_alone():
    before, python = random_states(), random.getstate()
    pages = write_pages(50, seed=3)
    assert random_states() == before
    assert random.getstate() == python
    assert pages.shape == (50, PAGE_LENGTH)
    assert pages.dtype == torch.int64
    assert torch.equal(pages, write_pages(50, seed=3))
    assert torch.equal(pages[:20], write_pages(20, seed=3))
    assert not torch.equal(pages, write_pages(50, seed=4))
    assert not pages[:, 0].any()
    used = write_pages(2_000).unique()
    assert len(used) == len(WORDS)


def test_five_thousand_pages_take_less_than_two_seconds(one_thread):
    start = time.process_time()
    write_pages(5_000)
    assert time.process_time() - start < 2


def test_a_loader_cuts_the_pages_one_by_one():
    pages = write_pages(12)
    loader = make_loader(end_to_end(pages), context_length=24, stride=24, batch_size=4, shuffle=False)
    inputs, targets = (torch.cat(parts) for parts in zip(*loader))
    assert torch.equal(inputs, pages)
    assert torch.equal(targets, next_ids(pages))
    assert not targets[:, -1].any()


def by_class(name, total=1.0):
    return {word: total / len(CLASSES[name]) for word in CLASSES[name]}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {"¶": 1}),
        ("¶", by_class("given name", 0.4) | {"the": 0.6}),
        ("¶ Anna", by_class("surname")),
        ("¶ Anna Tolk", by_class("helped")),
        ("¶ Anna Tolk helped", {name: 1 / 7 for name in CLASSES["given name"] if name != "Anna"}),
        ("¶ Anna Tolk helped Tom", {name: 1 / 7 for name in CLASSES["surname"] if name != "Tolk"}),
        ("¶ Anna Tolk helped Tom Penn", {".": 0.5, "today": 0.25, "twice": 0.25}),
        ("¶ Anna Tolk helped Tom Penn twice", {".": 1}),
        (first_words(PEOPLE, 7), {"Tom": 1}),
        (first_words(PEOPLE, 10), {"Anna": 1}),
        (first_words(PEOPLE, 13), {"Anna": 0.5, "Tom": 0.5}),
        (first_words(PEOPLE, 14), {"Tolk": 1}),
        (first_words(PEOPLE, 15), by_class("did")),
        ("¶ the", by_class("animal", 0.6) | by_class("thing", 0.2) | by_class("things", 0.2)),
        ("¶ the key", {"is": 0.25, "near": 0.375, "behind": 0.375}),
        ("¶ the keys near the", by_class("furniture", 0.5) | by_class("pieces of furniture", 0.5)),
        ("¶ the keys near the door", {"are": 0.5, "near": 0.25, "behind": 0.25}),
        ("¶ the keys near the door near the desk", {"are": 1}),
        (first_words(TIRED, 11), by_class("of an animal", 0.5) | by_class("of a way", 0.5)),
        (first_words(TIRED, 14), {"tired": 1}),
        (first_words(TIRED, 15), {"dog": 1}),
        (first_words(ICY, 20), {"path": 1}),
        (PEOPLE, {"¶": 1}),
        (f"{PEOPLE} ¶ the key", {"is": 0.25, "near": 0.375, "behind": 0.375}),
    ],
)
def test_what_may_come_and_how_probably(words, expected):
    assert next_probabilities(words) == pytest.approx(expected, rel=1e-12)
    assert next_probabilities(words.split()) == next_probabilities(words)


def test_probabilities_sum_to_one_before_each_word_and_agree_with_counting(written):
    for page in written[:300]:
        for step in read_along(ids_to_words(page)):
            assert sum(step.probabilities.values()) == pytest.approx(1, abs=1e-12)
            assert min(step.probabilities.values()) > 0
    pages = written.tolist()
    for words in ("¶", "¶ the", "¶ the dog did not cross the", "¶ Anna", "¶ the boxes", "¶ the maps behind the"):
        ids = words_to_ids(words).tolist()
        found = Counter(WORDS[page[len(ids)]] for page in pages if page[: len(ids)] == ids)
        number, expected = found.total(), next_probabilities(words)
        assert set(found) <= set(expected)
        for word, probability in expected.items():  # four standard deviations
            assert abs(found[word] / number - probability) < 4 * math.sqrt(probability / number)


def test_no_page_that_is_written_has_a_mistake(written):
    assert all(first_mistake(ids_to_words(page)) is None for page in written[:2_000])
    assert first_mistake(ids_to_words(written[:50].flatten())) is None
    assert all(first_mistake(ids_to_words(page)) is None for page in PAGES)
    assert first_mistake("¶ the dog did not") is None


@pytest.mark.parametrize(
    ("page", "position", "word", "allowed"),
    [
        (PEOPLE, 0, "the", ["¶"]),
        (PEOPLE, 4, "Anna", ["Tom", "Mira", "Omar", "Nora", "Bram", "Ruth", "Leo"]),
        (PEOPLE, 5, "Tolk", ["Penn", "Vale", "Finch", "Hale", "Marsh", "Stone", "Wren"]),
        (PEOPLE, 7, "Anna", ["Tom"]),
        (PEOPLE, 8, "Tolk", ["Penn"]),
        (PEOPLE, 10, "Tom", ["Anna"]),
        (PEOPLE, 14, "Penn", ["Tolk"]),
        (TWICE, 23, "Vale", ["Hale"]),
        (TIRED, 15, "road", ["dog"]),
        (TIRED, 14, "hungry", ["tired"]),
        (TIRED, 21, "are", ["is", "near", "behind"]),
        (ICY, 20, "cat", ["path"]),
        (THINGS, 9, "is", ["are"]),
        (THINGS, 17, "are", ["is", "near", "behind"]),
        (THINGS, 22, "¶", ["is", "near", "behind"]),
    ],
)
def test_a_planted_mistake_is_found(page, position, word, allowed):
    words = page.split()
    words[position] = word
    assert first_mistake(words) == Mistake(position, word, allowed)
    assert first_mistake(PEOPLE.split() + words) == Mistake(24 + position, word, allowed)
    with pytest.raises(ValueError, match=f"word {position} is '{word}': only {', '.join(allowed)} may come there"):
        next_probabilities(words)


def test_any_planted_word_is_found_where_it_is_not_allowed(written):
    rng = random.Random(0)
    for page in written[:1_000]:
        words, position, word = ids_to_words(page), rng.randrange(PAGE_LENGTH), rng.choice(WORDS)
        allowed = next_probabilities(words[:position])
        words[position] = word
        mistake = first_mistake(words)
        if word in allowed:
            assert mistake is None or mistake.position > position
        else:
            assert mistake == Mistake(position, word, list(allowed))


def test_entropy_by_hand():
    first = -0.6 * math.log(0.6) - 0.4 * math.log(0.05)
    openings = [first, math.log(8), math.log(3), math.log(7), math.log(7), 1.5 * math.log(2), *[0] * 6]
    sentences = [math.log(2), 0, math.log(3), 0] * 2 + [math.log(2), 0, math.log(3), 0]
    probabilities = true_probabilities(PAGES[:1])
    assert entropy(probabilities)[0].tolist() == pytest.approx(openings + sentences, abs=1e-6)
    surprise = [math.log(20), math.log(8), math.log(3), math.log(7), math.log(7), math.log(2), 3 * math.log(6)]
    assert best_loss(PAGES[:1]) == pytest.approx(sum(surprise) / 24, abs=1e-6)


def test_the_true_probabilities_are_those_of_each_next_word(written):
    pages = written[:100]
    truth = true_probabilities(pages)
    assert truth.shape == (100, PAGE_LENGTH, len(WORDS))
    assert torch.allclose(truth.sum(dim=-1), torch.ones(100, PAGE_LENGTH), atol=1e-6)
    assert (truth.gather(-1, next_ids(pages).unsqueeze(-1)) > 0).all()
    words = ids_to_words(pages[5])
    for position in range(PAGE_LENGTH):
        row = {WORDS[index]: truth[5, position, index].item() for index in truth[5, position].nonzero().flatten()}
        assert row == pytest.approx(next_probabilities(words[: position + 1]), rel=1e-6)


def test_the_divergence_is_what_a_model_loses_against_the_truth(written):
    pages = written[:100]
    truth = true_probabilities(pages)
    assert divergence(truth, (truth + 1e-12).log()).abs().max() < 1e-5
    equal = divergence(truth, torch.zeros_like(truth))
    assert torch.allclose(equal, math.log(len(WORDS)) - entropy(truth), atol=1e-5)
    logits = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0))
    assert divergence(truth, logits).min() > 0
    peer = torch.distributions.kl_divergence(
        torch.distributions.Categorical(truth), torch.distributions.Categorical(logits=logits)
    )
    assert torch.allclose(divergence(truth, logits), peer, atol=1e-4)


def test_the_best_loss_is_close_to_the_mean_entropy(written):
    pages = written[:2_000]
    assert best_loss(pages) == pytest.approx(entropy(true_probabilities(pages)).mean().item(), abs=0.02)


# task -> on which page, at which position, the answer, and the positions of its sources
KNOWN = {
    "who": [(0, 6, "Tom", [4]), (1, 7, "Nora", [4])],
    "surname": [(0, 7, "Penn", [5]), (0, 10, "Tolk", [2]), (1, 8, "Vale", [5]), (1, 11, "Hale", [2])],
    "whom": [(0, 9, "Anna", [1]), (1, 10, "Leo", [1])],
    "surname again": [
        (0, 13, "Tolk", [2, 11]),
        (0, 17, "Tolk", [2, 11, 14]),
        (0, 21, "Penn", [5, 8]),
        (1, 14, "Vale", [5, 9]),
        (1, 18, "Hale", [2, 12]),
        (1, 22, "Hale", [2, 12, 19]),
    ],
    "why": [(2, 13, "tired", [11]), (3, 18, "icy", [16])],
    "it": [(2, 14, "dog", [2]), (3, 19, "path", [12])],
    "verb clash": [(4, 8, "are", [2]), (4, 16, "is", [13])],
    "verb same": [(2, 20, "is", [20]), (3, 2, "are", [2])],
    "page end": [(page, 23, "¶", []) for page in range(5)],
}


def test_the_tasks_and_their_sources_by_hand():
    tasks = find_tasks(PAGES)
    found = {
        name: [
            (page, position, WORDS[answer], [index for index, is_source in enumerate(sources) if is_source])
            for page, position, answer, sources in zip(*(column.tolist() for column in task[:4]))
        ]
        for name, task in tasks.items()
    }
    assert found == KNOWN
    assert list(tasks) == list(TASKS)
    assert [len(task.between) for task in tasks.values()] == [84] * 6 + [2, 2, 84]


def test_the_sources_tell_the_answer(written):
    """Names and adjectives are copied; the noun of "it" fits the adjective; the subject has the verb's number."""
    pages = written[:2_000]
    for name, task in find_tasks(pages).items():
        assert torch.equal(next_ids(pages)[task.pages, task.positions], task.answers)
        for page, position, answer, sources in zip(*task[:4]):
            words = [WORDS[pages[page, index]] for index in sources.nonzero().flatten()]
            assert sources[position + 1 :].sum() == 0
            if name == "page end":
                assert words == []
            elif name.startswith("verb"):
                assert words[0] in CLASSES["things" if WORDS[answer] == "are" else "thing"]
            else:
                assert set(words) == {WORDS[answer]}


def test_accuracy_and_attention_of_known_logits_and_weights(written):
    pages = written[:400]
    tasks, truth = find_tasks(pages), true_probabilities(pages)
    copied = {name: task_accuracy(truth, task) for name, task in tasks.items()}
    assert copied == dict.fromkeys(TASKS, 1.0)
    nothing = torch.zeros(400, PAGE_LENGTH, len(WORDS))
    assert task_accuracy(nothing, tasks["page end"]) == 1  # the first of equal logits
    assert task_accuracy(nothing, tasks["who"]) == 0
    nothing[..., IDS["near"]] = 9  # not compared for the verbs
    nothing[..., IDS["are"]] = 1
    verb = tasks["verb clash"]
    assert task_accuracy(nothing, verb) == pytest.approx((verb.answers == IDS["are"]).float().mean().item())
    uniform = torch.ones(PAGE_LENGTH, PAGE_LENGTH).tril()
    uniform = (uniform / uniform.sum(dim=-1, keepdim=True)).expand(400, 3, -1, -1)
    for task in tasks.values():
        seen = attention_at_sources(uniform, task)
        assert seen.shape == (3,)
        assert seen.tolist() == pytest.approx([chance_at_sources(task)] * 3, abs=1e-5)
    assert chance_at_sources(find_tasks(PAGES[:1])["who"]) == pytest.approx(1 / 7)


def test_a_task_that_no_page_has_is_left_out():
    assert list(find_tasks(PAGES[4:])) == ["verb clash", "page end"]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: write_pages(0), ValueError, "num_pages must be at least 1, not 0"),
        (lambda: write_pages(2.5), TypeError, "num_pages must be an integer, not 2.5"),
        (lambda: write_pages(2, seed="a"), TypeError, "seed must be an integer, not 'a'"),
        (lambda: words_to_ids("the lion"), ValueError, "'lion' is not one of the 84 words"),
        (lambda: ids_to_words([84]), ValueError, "an ID must be from 0 to 83, not 84"),
        (lambda: ids_to_words([0.5]), TypeError, "an ID must be an integer"),
        (lambda: true_probabilities(PAGES[0]), ValueError, r"pages must have shape \(num_pages, 24\), not \(24,\)"),
        (lambda: find_tasks(PAGES[:, 1:]), ValueError, r"not \(5, 23\)"),
        (lambda: find_tasks([PEOPLE]), ValueError, "not list"),
        (lambda: true_probabilities(PAGES.flip(1)), ValueError, "word 0 is 'laughed': only ¶ may come there"),
    ],
)
def test_bad_input_is_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
