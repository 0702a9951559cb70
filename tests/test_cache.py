"""The key-value cache: pieces of a text give the logits of the whole, whatever befalls the cache in between."""

import copy
import pickle

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import SMALL, model_of, some_ids

from utils.attention import MultiHeadAttention
from utils.cache import KeyValueCache

moderate = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])


def close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)


@pytest.fixture
def model():
    return model_of()


@pytest.fixture
def filled(model):
    """A cache that has seen the first five of `some_ids(2, 9)`."""
    cache = KeyValueCache()
    model(some_ids(2, 9)[:, :5], cache=cache)
    return cache


@moderate
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.booleans(), st.integers(0, 99))
def test_a_text_in_pieces_gives_the_logits_of_the_whole(lengths, last_only, seed):
    model, ids, cache = model_of(seed, context_length=25), some_ids(2, sum(lengths), seed=seed), KeyValueCache()
    pieces = [model(piece, cache=cache, last_only=last_only) for piece in ids.split(lengths, dim=1)]
    whole = model(ids)
    if last_only:  # the last position of each piece
        whole = whole[:, torch.tensor(lengths).cumsum(0) - 1]
    close(torch.cat(pieces, dim=1), whole)
    assert cache.num_tokens == sum(lengths)


@pytest.mark.parametrize("shape", [(7, 8), (2, 7, 8), (2, 3, 7, 8)], ids=str)
def test_attention_over_pieces_equals_attention_over_the_whole(shape):
    torch.manual_seed(0)
    attention, cache, x = MultiHeadAttention(8, 8, 7, 0.0, 2).double(), KeyValueCache(), torch.randn(shape).double()
    pieces = []
    for piece in x.split([2, 4, 1], dim=-2):
        pieces.append(attention(piece, cache.layer(0)))
        cache.num_tokens += piece.shape[-2]
    close(torch.cat(pieces, dim=-2), attention(x))


@pytest.mark.parametrize("treated", [copy.deepcopy, copy.copy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_two_texts_may_branch_from_one(model, filled, treated):
    ids, branch, twin = some_ids(2, 9), treated(filled), copy.deepcopy(model)
    other = (ids[:, 5:] + 1) % SMALL.vocab_size
    for step in range(4):  # by turns, so that one could overwrite the other's tokens
        first, second = model(ids[:, [5 + step]], cache=filled), twin(other[:, [step]], cache=branch)
    close(first, model(ids)[:, -1:])
    close(second, model(torch.cat([ids[:, :5], other], dim=1))[:, -1:])


ROWS = [[1, 0], [0, 0, 1], [1], [], torch.tensor([False, True]), [True, False], [-1]]


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_selected_rows_go_on_as_their_own_texts(model, filled, rows):
    ids = some_ids(2, 9)[torch.as_tensor(rows) if len(rows) else torch.arange(0)]
    close(model(ids[:, 5:], cache=filled.select(rows)), model(ids)[:, 5:])
    close(model(ids, cache=KeyValueCache().select(rows)), model(ids))  # nothing to select from


def test_a_row_that_is_not_there_is_an_error(filled):
    with pytest.raises(IndexError, match="2"):
        filled.select([2])


PARTS = ["embedding", "blocks.0.attention.W_value", "blocks.0.feed_forward", "blocks.1.attention.out_proj", "out_head"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, torch.OutOfMemoryError])
@pytest.mark.parametrize("seen", [0, 5])
def test_a_call_broken_off_half_way_leaves_the_cache_as_it_was(model, part, error, seen):
    def broken_off(module, inputs):
        raise error

    cache, ids = KeyValueCache(), some_ids(2, 9)
    if seen:
        model(ids[:, :seen], cache=cache)
    for attempt in (ids[:, seen:], ids[:, seen : seen + 1]):  # and the second time with fewer tokens
        hook = model.get_submodule(part).register_forward_pre_hook(broken_off)
        with pytest.raises(error):
            model(attempt, cache=cache)
        hook.remove()
        assert cache.num_tokens == seen
    close(model(ids[:, seen:], cache=pickle.loads(pickle.dumps(cache))), model(ids)[:, seen:])
    if not seen:  # then the next call may have another batch size
        ids = some_ids(3, 9)
    close(model(ids[:, seen:], cache=cache), model(ids)[:, seen:])


def test_what_is_kept_has_no_graph_and_the_new_tokens_have(model):
    ids, cache = some_ids(2, 9), KeyValueCache()
    for piece in ids.split([5, 4], dim=1):
        model(piece, cache=cache).sum().backward()  # twice: through a kept graph the second would fail
    assert not any(kept.requires_grad for pair in cache.layers.values() for kept in pair)
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("changed", "ids", "said"),
    [
        (lambda model: model, some_ids(3, 2), "batch_size 2, not 3"),
        (lambda model: model.float(), some_ids(2, 2), "dtype torch.float64, not torch.float32"),
        (lambda model: model.to("meta"), some_ids(2, 2).to("meta"), "device cpu, not meta"),
        (lambda model: model_of(n_heads=4), some_ids(2, 2), "num_heads 3, not 4; head_dim 4, not 3"),
        (lambda model: model_of(n_layers=3), some_ids(2, 2), "layer 2.*another model"),
        (lambda model: model, some_ids(2, 8), r"8 tokens.*5.*12"),
    ],
    ids=["batch", "dtype", "device", "heads", "layers", "too many tokens"],
)
def test_what_does_not_fit_is_named_and_leaves_the_cache_as_it_was(model, filled, changed, ids, said):
    before = copy.deepcopy(filled)
    with pytest.raises(ValueError, match=said):
        changed(copy.deepcopy(model))(ids, cache=filled)
    rest = some_ids(2, 9)[:, 5:]
    assert torch.equal(model(rest, cache=filled), model(rest, cache=before))


def test_batch_axes_that_only_have_the_same_product_do_not_fit():
    attention, cache = MultiHeadAttention(8, 8, 7, 0.0, 2), KeyValueCache()
    attention(torch.ones(2, 3, 4, 8), cache.layer(0))
    cache.num_tokens += 4
    with pytest.raises(ValueError, match=r"batch_size \(2, 3\), not \(3, 2\)"):
        attention(torch.ones(3, 2, 1, 8), cache.layer(0))


def test_a_layer_that_another_model_has_left_behind_is_named(model, filled):
    model_of(n_layers=1)(some_ids(2, 3), cache=filled)
    with pytest.raises(ValueError, match=r"layer 1.*another model"):
        model(some_ids(2, 1), cache=filled)
