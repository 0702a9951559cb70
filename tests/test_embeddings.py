"""utils.embeddings against its contract: rows of two tables and their sum, gradients, dropout, and bad input."""

import copy
import math
import pickle
import re

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

batch_shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)
wrong_ids = st.sampled_from([-(2**31), -2, -1, VOCAB_SIZE, VOCAB_SIZE + 1, 2**31 - 1])
lengths, id_dtypes = st.integers(1, CONTEXT_LENGTH), st.sampled_from([torch.int64, torch.int32])


def embedding_of(vocab_size=VOCAB_SIZE, emb_dim=EMB_DIM, context_length=CONTEXT_LENGTH, seed=0, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TokenAndPositionEmbedding(vocab_size, emb_dim, context_length, **options)


def some_ids(*shape, seed=0, dtype=torch.int64):
    return torch.randint(VOCAB_SIZE, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@moderate
@given(batch_shapes, lengths, st.integers(0, 6), id_dtypes, st.integers(0, 99))
def test_a_look_up_is_a_matrix_product(batch_shape, num_tokens, start, dtype, seed):
    """A token seen twice gets both gradients, and the rows of tokens and positions that do not occur get none."""
    start = min(start, CONTEXT_LENGTH - num_tokens)
    embedding = embedding_of(seed=seed).double()
    ids = some_ids(*batch_shape, num_tokens, seed=seed, dtype=dtype)
    before = ids.clone()
    vectors = embedding(ids, start)
    assert torch.equal(ids, before), "the caller's IDs are left as they were"
    one_hot = F.one_hot(ids.long(), VOCAB_SIZE).double()  # (…, num_tokens, vocab_size)
    positions = torch.eye(CONTEXT_LENGTH).double()[start : start + num_tokens]  # (num_tokens, context_length)
    expected = one_hot @ embedding.token_embedding.weight + positions @ embedding.position_embedding.weight
    torch.testing.assert_close(vectors, expected)
    upstream = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    tables = [*embedding.parameters()]
    found, wanted = (torch.autograd.grad(output, tables, upstream) for output in (vectors, expected))
    torch.testing.assert_close(found, wanted)  # dense, so that an optimizer of any kind can take them
    for gradient, used in zip(found, (set(ids.flatten().tolist()), set(range(start, start + num_tokens)))):
        assert {row for row, entries in enumerate(gradient) if entries.any()} == used


@pytest.mark.parametrize("shape", [(4, 4), (3, 3, 3), (0, 4)], ids=str)
def test_positions_run_along_the_token_axis_and_are_made_where_the_ids_are(shape):
    """Where batch_size is num_tokens, the wrong axis would raise no error."""
    embedding, text = embedding_of(), torch.full(shape[-1:], 3)
    expected = embedding(text).expand(*shape, EMB_DIM)
    with torch.device("meta"):  # the default for new tensors, which must not count
        assert torch.equal(embedding(text.expand(shape)), expected)


def test_two_swapped_tokens_change_their_own_rows_and_no_sum():
    """Exercise 3.4: order is in the rows, not in their sum, with or without positions."""
    embedding, ids, swapped = embedding_of().double(), torch.tensor([3, 5, 8, 2, 9]), torch.tensor([3, 2, 8, 5, 9])
    rows, other_rows = embedding(ids), embedding(swapped)
    assert [torch.equal(*pair) for pair in zip(rows, other_rows)] == [True, False, True, False, True]
    for vectors_of in (embedding, embedding.token_embedding):
        torch.testing.assert_close(vectors_of(ids).sum(dim=0), vectors_of(swapped).sum(dim=0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_half_and_double_precision(dtype):
    embedding, ids = embedding_of().to(dtype), some_ids(2, 4)
    tokens, positions = embedding.parameters()
    assert torch.equal(embedding(ids), tokens[ids] + positions[:4])
    assert embedding(ids).dtype == dtype


def test_only_dropout_in_training_is_random():
    state = random_states()
    embedding, plain, ids = embedding_of(emb_dim=500, dropout=0.25), embedding_of(emb_dim=500), some_ids(4, 7)
    total = plain(ids)
    assert torch.equal(plain.eval()(ids), total), "none by default"
    assert torch.equal(embedding_of(emb_dim=500, dropout=np.float32(1))(ids), 0 * total)
    assert torch.equal(embedding.eval()(ids), total)
    assert random_states() == state
    torch.manual_seed(0)
    first, second = embedding.train()(ids), embedding(ids)
    assert not torch.equal(first, second), "another mask each time"
    for vectors in (first, second):
        kept = vectors != 0
        torch.testing.assert_close(vectors[kept], total[kept] / 0.75)  # of the sum, not of one part of it
        spread = math.sqrt(0.25 * 0.75 / kept.numel())
        assert (~kept).double().mean().item() == pytest.approx(0.25, abs=6 * spread)


def test_size_of_gpt2():
    with torch.device("meta"):  # no memory
        embedding = TokenAndPositionEmbedding(vocab_size=50_257, emb_dim=768, context_length=1_024, dropout=0.1)
    sizes = {name: parameter.numel() for name, parameter in embedding.named_parameters()}
    assert sizes == {TOKENS: 38_597_376, POSITIONS: 786_432}
    vectors = embedding(torch.zeros(2, 1_024, dtype=torch.int64, device="meta"))
    assert vectors.shape == (2, 1_024, 768)
    assert vectors.device.type == "meta"


def test_each_row_starts_with_random_numbers_of_its_own():
    embeddings = [TokenAndPositionEmbedding(VOCAB_SIZE, EMB_DIM, CONTEXT_LENGTH) for _ in range(3)]
    rows = torch.cat([table for embedding in embeddings for table in embedding.parameters()])
    assert len(rows.unique(dim=0)) == len(rows)


def test_saved_and_copied():
    embedding, other, ids = embedding_of(seed=1, dropout=0.5).eval(), embedding_of(seed=2), some_ids(2, 4)
    assert {*embedding.state_dict()} == {TOKENS, POSITIONS}
    assert not torch.equal(other(ids), embedding(ids))
    other.load_state_dict(embedding.state_dict())
    for twin in (other, copy.deepcopy(embedding), pickle.loads(pickle.dumps(embedding))):
        assert torch.equal(twin(ids), embedding(ids))


def test_sizes_may_be_integers_of_any_library():
    embedding = TokenAndPositionEmbedding(np.uint8(200), np.int32(5), torch.tensor(7))
    assert [tuple(table.shape) for table in embedding.parameters()] == [(200, 5), (7, 5)]
    assert embedding(torch.tensor([199, 0]), np.uint8(5)).shape == (2, 5)
    assert TokenAndPositionEmbedding(1, 1, 1)(torch.tensor([0])).shape == (1, 1)
    for table in (embedding.token_embedding, embedding.position_embedding):
        assert type(table.num_embeddings) is type(table.embedding_dim) is int


# Bad input


def assert_named(embedding, ids, index, wrong_id):
    """Its index, itself, and what is allowed."""
    said = re.escape(f"input_ids{list(index)} is {wrong_id}: IDs are 0..{VOCAB_SIZE - 1} ")
    for call in (embedding, embedding.check_ids):
        with pytest.raises(ValueError, match=f"^{said}"):
            call(ids)


@moderate
@given(batch_shapes, lengths, wrong_ids, id_dtypes, st.data())
def test_the_first_unknown_id_is_named_with_its_index(batch_shape, num_tokens, wrong_id, dtype, data):
    index = tuple(data.draw(st.integers(0, size - 1)) for size in (*batch_shape, num_tokens))
    ids = some_ids(*batch_shape, num_tokens, dtype=dtype)
    ids.view(-1)[-1] = VOCAB_SIZE + 7
    ids[index] = wrong_id
    assert_named(embedding_of(), ids, index, wrong_id)


def test_an_unknown_id_far_down_a_large_batch():
    """Large enough for torch to look up in several threads."""
    torch.set_num_threads(2)
    ids = torch.zeros(64, 1_000, dtype=torch.int64)
    ids[63, 998] = VOCAB_SIZE
    assert_named(embedding_of(emb_dim=64, context_length=1_000), ids, (63, 998), VOCAB_SIZE)


def test_an_unknown_id_in_a_compiled_graph():
    torch.compiler.reset()
    embedding, ids = embedding_of(), some_ids(2, 4)
    compiled = torch.compile(embedding, backend="eager", fullgraph=True)
    assert torch.equal(compiled(ids), embedding(ids))
    ids[1, 2] = VOCAB_SIZE
    assert_named(compiled, ids, (1, 2), VOCAB_SIZE)
    torch.compiler.reset()


@pytest.mark.parametrize(
    ("shape", "start", "said"),
    [
        *((shape, 0, "8 tokens: 1 to 7 (context_length)") for shape in ((8,), (2, 8), (1, 3, 8))),
        ((2, 4), 4, "4 tokens after 4 others: 1 to 7 (context_length)"),
        *((shape, 0, "0 tokens: 1 to 7") for shape in ((0,), (2, 0), ())),
    ],
    ids=str,
)
def test_too_many_or_no_tokens_are_named_with_the_limit(shape, start, said):
    embedding = embedding_of()
    embedding(some_ids(2, CONTEXT_LENGTH - start), start)
    with pytest.raises(ValueError, match=re.escape(f"input_ids has {said}")):
        embedding(torch.zeros(shape, dtype=torch.int64), start)


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        *((torch.ones(2, 4).to(dtype), str(dtype)) for dtype in (torch.float32, torch.bfloat16, torch.bool)),
        ([1, 2], "list"),
        (np.array([1, 2]), "ndarray"),  # of int64, and refused for being an array
        (None, "NoneType"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_ids_must_be_an_integer_tensor(ids, kind):
    embedding = embedding_of()
    for call in (embedding, embedding.check_ids):
        with pytest.raises(TypeError, match=f"input_ids.*{kind}"):
            call(ids)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        *((name, 0, ValueError) for name in ("vocab_size", "emb_dim", "context_length")),
        *((name, 2.0, TypeError) for name in ("vocab_size", "emb_dim", "context_length", "start")),
        *(("start", -1, ValueError), ("dropout", 1.5, ValueError), ("dropout", "0.1", TypeError)),
    ],
)
def test_an_argument_that_is_wrong_is_named(name, value, error):
    call, options = (embedding_of, {}) if name != "start" else (embedding_of(), {"input_ids": some_ids(2)})
    with pytest.raises(error, match=f"^{name} must be .*, not {value!r}"):
        call(**options, **{name: value})
