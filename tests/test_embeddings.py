"""utils.embeddings against its contract: rows of two tables and their sum, gradients, dropout, and bad input."""

import copy
import inspect
import math
import pickle
import random
from itertools import combinations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from states import random_states

from utils.embeddings import TokenAndPositionEmbedding

pytestmark = pytest.mark.usefixtures("one_thread")
moderate = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
VOCAB_SIZE, EMB_DIM, CONTEXT_LENGTH = 11, 5, 7
TOKENS, POSITIONS = "token_embedding.weight", "position_embedding.weight"
DTYPES = [torch.float32, torch.float64, torch.bfloat16]

batch_shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)
lengths = st.integers(1, CONTEXT_LENGTH)


def embedding_of(vocab_size=VOCAB_SIZE, emb_dim=EMB_DIM, context_length=CONTEXT_LENGTH, seed=0, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TokenAndPositionEmbedding(vocab_size, emb_dim, context_length, **options)


def some_ids(*shape, seed=0, vocab_size=VOCAB_SIZE, dtype=torch.int64):
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def tables(embedding):
    parameters = dict(embedding.named_parameters())
    return parameters[TOKENS], parameters[POSITIONS]


def naive(embedding, ids):
    """Return the rows added one by one, from nested lists."""
    token_table, position_table = tables(embedding)
    if isinstance(ids[0], list):
        return torch.stack([naive(embedding, row) for row in ids])
    return torch.stack([token_table[token_id] + position_table[place] for place, token_id in enumerate(ids)])


# What comes out


@pytest.mark.parametrize("shape", [(4,), (1,), (2, 4), (3, 1), (2, 3, 4), (1, 1, 7), (0, 4)], ids=str)
def test_shapes(shape):
    vectors = embedding_of()(some_ids(*shape))
    assert vectors.shape == (*shape, EMB_DIM)
    assert vectors.dtype == torch.float32
    assert vectors.requires_grad


@moderate
@given(batch_shapes, lengths, st.integers(0, 99), st.sampled_from([torch.int64, torch.int32]))
def test_token_row_plus_position_row(batch_shape, num_tokens, seed, dtype):
    embedding = embedding_of(seed=seed)
    ids = some_ids(*batch_shape, num_tokens, seed=seed, dtype=dtype)
    before = ids.clone()
    vectors = embedding(ids)
    assert torch.equal(vectors, naive(embedding, ids.tolist()))
    assert torch.equal(ids, before), "the caller's IDs are left alone"


@moderate
@given(batch_shapes, lengths, st.integers(0, 99))
def test_a_look_up_is_a_matrix_product(batch_shape, num_tokens, seed):
    embedding = embedding_of(seed=seed).double()
    token_table, position_table = tables(embedding)
    ids = some_ids(*batch_shape, num_tokens, seed=seed)
    one_hot = F.one_hot(ids, VOCAB_SIZE).double()  # (…, num_tokens, vocab_size)
    places = F.one_hot(torch.arange(num_tokens), CONTEXT_LENGTH).double()  # (num_tokens, context_length)
    torch.testing.assert_close(embedding(ids), one_hot @ token_table + places @ position_table)


def test_positions_run_along_the_token_axis():
    """Also where batch_size == num_tokens, so that the wrong axis would raise nothing."""
    embedding = embedding_of()
    _, position_table = tables(embedding)
    for shape in [(4, 4), (7, 7), (3, 3, 3)]:
        vectors = embedding(torch.full(shape, 3))
        rows = vectors.flatten(0, -3)  # (batch, num_tokens, emb_dim)
        assert torch.equal(rows, rows[:1].expand_as(rows)), "each text of the batch begins at position 0"
        steps = rows[0] - rows[0, :1]
        torch.testing.assert_close(steps, position_table[: shape[-1]] - position_table[0])
        assert steps[1:].abs().sum(dim=-1).min() > 0


def test_the_sum_over_a_sentence_knows_no_order():
    """Rows differ, their sum does not: Σ(E + P) = ΣE + ΣP."""
    embedding = embedding_of().double()
    ids, swapped = torch.tensor([1, 4, 6, 2, 3, 5]), torch.tensor([1, 3, 6, 2, 4, 5])
    assert not torch.isclose(embedding(ids)[1], embedding(swapped)[4]).all(), "one token at two places"
    torch.testing.assert_close(embedding(ids).sum(dim=0), embedding(swapped).sum(dim=0))


@moderate
@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_a_prefix_of_the_text_gives_a_prefix_of_the_vectors(batch_size, num_tokens, data):
    embedding = embedding_of()
    ids = some_ids(batch_size, num_tokens)
    shorter = data.draw(st.integers(1, num_tokens))
    assert torch.equal(embedding(ids[:, :shorter]), embedding(ids)[:, :shorter])


def test_ids_of_any_layout_in_memory():
    embedding = embedding_of()
    ids = some_ids(4, 3)
    assert torch.equal(embedding(ids.T), embedding(ids.T.contiguous()))
    assert torch.equal(embedding(ids[::2, 1:]), embedding(ids[::2, 1:].clone()))
    assert torch.equal(embedding(ids[:1].expand(3, 3)), embedding(ids[:1]).expand(3, 3, EMB_DIM))
    assert embedding(torch.tensor([VOCAB_SIZE - 1, 0])).isfinite().all(), "the first and the last ID"


# Training


@moderate
@given(batch_shapes, lengths, st.integers(0, 99))
def test_gradients_reach_the_rows_used_and_no_others(batch_shape, num_tokens, seed):
    embedding = embedding_of(seed=seed).double()
    ids = some_ids(*batch_shape, num_tokens, seed=seed)
    upstream = torch.randn(*ids.shape, EMB_DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    embedding(ids).backward(upstream)
    token_table, position_table = tables(embedding)
    expected = torch.zeros_like(token_table)
    for token_id, vector in zip(ids.flatten().tolist(), upstream.reshape(-1, EMB_DIM)):
        expected[token_id] += vector  # a token met twice gets both
    torch.testing.assert_close(token_table.grad, expected)
    used = set(ids.flatten().tolist())
    assert {row for row, gradient in enumerate(token_table.grad) if gradient.abs().sum() > 0} == used
    torch.testing.assert_close(position_table.grad[:num_tokens], upstream.reshape(-1, num_tokens, EMB_DIM).sum(dim=0))
    assert not position_table.grad[num_tokens:].any()


def test_gradients_are_dense_and_finite():
    embedding = embedding_of(dropout=0.3)
    (embedding(some_ids(2, 7)) ** 2).sum().backward()
    for parameter in embedding.parameters():
        assert parameter.grad.layout is torch.strided, "an optimizer of any kind can take it"
        assert parameter.grad.isfinite().all()


# Dropout


def test_dropout_only_in_training():
    embedding = embedding_of(emb_dim=500, dropout=0.25)
    plain = embedding_of(emb_dim=500)
    ids = some_ids(4, 7)
    total = plain(ids)
    assert torch.equal(plain.train()(ids), plain.eval()(ids)), "none by default"
    assert embedding.training
    torch.manual_seed(0)
    first, second = embedding(ids), embedding(ids)
    assert not torch.equal(first, second), "drawn anew each time"
    assert torch.equal(embedding.eval()(ids), total)
    assert torch.equal(embedding(ids), total)
    assert not torch.equal(embedding.train()(ids), total)
    for vectors in (first, second):
        kept = vectors != 0
        torch.testing.assert_close(vectors[kept], total[kept] / 0.75)  # of the sum, not of one part of it
        num = kept.numel()
        assert abs((~kept).sum().item() / num - 0.25) < 6 * math.sqrt(0.25 * 0.75 / num)


@pytest.mark.parametrize(("share", "factor"), [(0, 1), (0.0, 1), (1, 0), (1.0, 0)])
def test_dropout_of_nothing_and_of_all(share, factor):
    ids = some_ids(2, 4)
    assert torch.equal(embedding_of(dropout=share)(ids), factor * embedding_of()(ids))


# Parameters


def test_size_of_gpt2():
    with torch.device("meta"):  # no memory
        embedding = TokenAndPositionEmbedding(vocab_size=50_257, emb_dim=768, context_length=1_024, dropout=0.1)
    sizes = {name: parameter.numel() for name, parameter in embedding.named_parameters()}
    assert sizes == {TOKENS: 38_597_376, POSITIONS: 786_432}
    vectors = embedding(torch.zeros(2, 1_024, dtype=torch.int64, device="meta"))
    assert vectors.shape == (2, 1_024, 768)
    assert vectors.device.type == "meta"


def test_state_dict():
    embedding, other = embedding_of(seed=1), embedding_of(seed=2)
    assert list(embedding.state_dict()) == [TOKENS, POSITIONS]
    assert list(embedding.buffers()) == []
    assert embedding.state_dict()[TOKENS].shape == (VOCAB_SIZE, EMB_DIM)
    assert embedding.state_dict()[POSITIONS].shape == (CONTEXT_LENGTH, EMB_DIM)
    ids = some_ids(2, 4)
    assert not torch.equal(embedding(ids), other(ids))
    other.load_state_dict(embedding.state_dict())
    assert torch.equal(embedding(ids), other(ids))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda embedding: pickle.loads(pickle.dumps(embedding))])
def test_copies_are_independent(copied):
    embedding = embedding_of(dropout=0.5).eval()
    ids = some_ids(2, 4)
    before = embedding(ids)
    twin = copied(embedding)
    assert not twin.training
    assert torch.equal(twin(ids), before)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.fill_(1)
    assert torch.equal(embedding(ids), before)
    assert torch.equal(twin(ids), torch.full_like(before, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    embedding = embedding_of().to(dtype)
    vectors = embedding(some_ids(2, 4))
    assert vectors.dtype == dtype
    assert torch.equal(vectors, naive(embedding, some_ids(2, 4).tolist()))
    vectors.float().sum().backward()
    assert all(parameter.grad.dtype == dtype for parameter in embedding.parameters())


def test_numbers_of_any_library_are_sizes():
    embedding = TokenAndPositionEmbedding(np.int64(11), np.int32(5), torch.tensor(7))
    assert [tuple(table.shape) for table in tables(embedding)] == [(11, 5), (7, 5)]


def test_signature_is_the_contracts():
    parameters = inspect.signature(TokenAndPositionEmbedding).parameters
    assert list(parameters) == ["vocab_size", "emb_dim", "context_length", "dropout"]
    defaults = [parameter.default for parameter in parameters.values()]
    assert defaults == [*[inspect.Parameter.empty] * 3, 0.0]


# Random state


def test_only_the_initialisation_draws():
    def made_after(seed):
        torch.manual_seed(seed)
        return [TokenAndPositionEmbedding(VOCAB_SIZE, EMB_DIM, CONTEXT_LENGTH) for _ in range(3)]

    modules = made_after(5)
    for module, again in zip(modules, made_after(5)):
        assert all(map(torch.equal, tables(module), tables(again))), "the caller's seed decides"
    for one, other in combinations([*modules, *made_after(6)], 2):
        assert not any(map(torch.equal, tables(one), tables(other))), "nobody else's"
    state = random_states()
    for module in (modules[0], embedding_of(dropout=0.5).eval(), embedding_of(dropout=0.5).to("meta").eval()):
        ids = some_ids(2, 4).to(next(module.parameters()).device)
        module(ids).sum().backward()
        module.state_dict()
        copy.deepcopy(module)
    assert random_states() == state


def test_initialisation_draws_from_torch_alone():
    numpy_and_python = repr((np.random.get_state(), random.getstate()))
    TokenAndPositionEmbedding(VOCAB_SIZE, EMB_DIM, CONTEXT_LENGTH)
    assert repr((np.random.get_state(), random.getstate())) == numpy_and_python


# Bad input


def message_of(error, call, *args, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@moderate
@given(
    batch_shapes,
    lengths,
    st.one_of(st.just(-1), st.integers(-(2**31), -1), st.just(VOCAB_SIZE), st.integers(VOCAB_SIZE, 2**31 - 1)),
    st.sampled_from([torch.int64, torch.int32]),
    st.data(),
)
def test_an_id_outside_the_vocabulary_is_named_with_its_place(batch_shape, num_tokens, wrong_id, dtype, data):
    place = tuple(data.draw(st.integers(0, size - 1)) for size in (*batch_shape, num_tokens))
    ids = some_ids(*batch_shape, num_tokens, dtype=dtype)
    ids[place] = wrong_id
    message = message_of(ValueError, embedding_of(), ids)
    assert "input_ids" in message
    assert str(list(place)) in message
    assert f" {wrong_id}" in message
    assert str(VOCAB_SIZE - 1) in message or str(VOCAB_SIZE) in message, "what is allowed"


def test_an_id_far_down_a_large_batch():
    """Large enough for torch to look up in several threads."""
    torch.set_num_threads(2)
    ids = torch.zeros(64, 1_000, dtype=torch.int64)
    ids[63, 998] = VOCAB_SIZE
    message = message_of(ValueError, embedding_of(emb_dim=64, context_length=1_000), ids)
    assert "[63, 998]" in message
    assert f" {VOCAB_SIZE}" in message


@pytest.mark.parametrize("num_tokens", [CONTEXT_LENGTH + 1, 123])
@pytest.mark.parametrize("batch_shape", [(), (2,), (1, 3)], ids=str)
def test_a_text_too_long(batch_shape, num_tokens):
    embedding = embedding_of()
    assert embedding(some_ids(*batch_shape, CONTEXT_LENGTH)).shape[-2] == CONTEXT_LENGTH
    message = message_of(ValueError, embedding, some_ids(*batch_shape, num_tokens))
    assert "input_ids" in message
    assert f"{num_tokens} " in message
    assert f"{CONTEXT_LENGTH} " in message
    assert "context_length" in message


@pytest.mark.parametrize("shape", [(0,), (2, 0), ()], ids=str)
def test_no_tokens(shape):
    message = message_of(ValueError, embedding_of(), torch.zeros(shape, dtype=torch.int64))
    assert "input_ids" in message
    assert "0 tokens" in message or "no tokens" in message or "()" in message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.bool, torch.complex64], ids=str)
def test_ids_are_integers(dtype):
    message = message_of(TypeError, embedding_of(), torch.ones(2, 4).to(dtype))
    assert "input_ids" in message
    assert str(dtype) in message


@pytest.mark.parametrize("ids", [[1, 2], np.array([1, 2]), None], ids=repr)
def test_ids_are_a_tensor(ids):
    message = message_of((TypeError, ValueError), embedding_of(), ids)
    assert "input_ids" in message
    assert "not int64" not in message, "an array of int64 is refused for being an array"


@pytest.mark.parametrize("name", ["vocab_size", "emb_dim", "context_length"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-3, ValueError), (2.0, TypeError), ("4", TypeError), (None, TypeError), (True, TypeError)],
    ids=repr,
)
def test_sizes_are_positive_integers(name, value, error):
    sizes = {"vocab_size": 11, "emb_dim": 5, "context_length": 7} | {name: value}
    message = message_of(error, TokenAndPositionEmbedding, **sizes)
    assert name in message
    assert repr(value) in message


@pytest.mark.parametrize("share", [-0.1, 1.5, math.nan, "0.1"], ids=repr)
def test_dropout_is_a_share(share):
    message = message_of((TypeError, ValueError), embedding_of, dropout=share)
    assert "dropout" in message
    assert str(share) in message
