"""utils.attention against its contract: known values, what holds for any shape and dtype, and bad input."""

import copy
import inspect
import math
import pickle
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from states import random_states
from torch import Tensor, nn

from utils.attention import SelfAttention, simple_attention

pytestmark = pytest.mark.usefixtures("one_thread")
moderate = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
# What rounding may do to numbers of about unit size: float32 has 24 bits, float64 53, bfloat16 only 8.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 5e-2}
SIX = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)


class Simple(nn.Module):
    """`simple_attention` in the form of a module, so that one test serves all."""

    def forward(self, x):
        return simple_attention(x)[0]

    def attention_weights(self, x):
        return simple_attention(x)[1]


class Layer(NamedTuple):
    """One way to attend: how to make it, and what comes out."""

    make: Callable[..., nn.Module]  # (d_in, d_out) -> module
    from_weights: Callable[[nn.Module, Tensor, Tensor], Tensor]  # module, x, its attention weights -> context vectors
    by_torch: Callable[[nn.Module, Tensor], Tensor]  # module, x -> context vectors, by torch's own attention
    width: Callable[[int, int], int] = lambda d_in, d_out: d_out  # of the context vectors
    heads: tuple[int, ...] = ()  # axes of the attention weights between batch and tokens
    causal: bool = False  # no token sees a later one
    argument: str = "x"  # what forward calls its input


def self_attention_from_weights(module, x, weights):
    return weights @ module.W_value(x)


def self_attention_by_torch(module, x):
    return F.scaled_dot_product_attention(module.W_query(x), module.W_key(x), module.W_value(x))


MODULES = {
    "SelfAttention": Layer(SelfAttention, self_attention_from_weights, self_attention_by_torch),
    "SelfAttention, qkv_bias": Layer(
        partial(SelfAttention, qkv_bias=True), self_attention_from_weights, self_attention_by_torch
    ),
}
LAYERS = MODULES | {
    "simple_attention": Layer(
        lambda d_in, d_out: Simple(),
        lambda module, x, weights: weights @ x,
        lambda module, x: F.scaled_dot_product_attention(x, x, x, scale=1.0),
        width=lambda d_in, d_out: d_in,
        argument="inputs",
    )
}


def each(layers):
    return pytest.mark.parametrize("layer", layers.values(), ids=layers)


every_layer = each(LAYERS)
every_module = each(MODULES)
every_layer_without_mask = each({name: layer for name, layer in LAYERS.items() if not layer.causal})

dtypes = st.sampled_from(list(TOLERANCE))
seeds = st.integers(0, 999)
widths = st.integers(1, 8)
lengths = st.integers(1, 9)
batch_shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)


def made(layer, d_in=3, d_out=3, dtype=torch.float32, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return layer.make(d_in, d_out).to(dtype)


def vectors(*shape, dtype=torch.float32, seed=0):
    """Return vectors of length about 1."""
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (drawn / shape[-1] ** 0.5).to(dtype)


def close(actual, expected, dtype=None):
    tolerance = TOLERANCE[dtype or expected.dtype]
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def with_weights(W_query, W_key, W_value):
    """Return a SelfAttention with these matrices, each (d_in, d_out)."""
    attention = SelfAttention(*W_query.shape)
    with torch.no_grad():
        for linear, matrix in zip((attention.W_query, attention.W_key, attention.W_value), (W_query, W_key, W_value)):
            linear.weight.copy_(matrix.T)  # nn.Linear keeps (d_out, d_in)
    return attention


# Known values of simple attention


def test_six_vectors():
    context_vectors, attn_weights = simple_attention(SIX)
    assert context_vectors.shape == (6, 3)
    assert attn_weights.shape == (6, 6)
    weights = torch.tensor([0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])
    torch.testing.assert_close(attn_weights[1], weights, atol=5e-5, rtol=0)
    contexts = torch.tensor(
        [
            [0.4421, 0.5931, 0.5790],
            [0.4419, 0.6515, 0.5683],
            [0.4431, 0.6496, 0.5671],
            [0.4304, 0.6298, 0.5510],
            [0.4671, 0.5910, 0.5266],
            [0.4177, 0.6503, 0.5645],
        ]
    )
    torch.testing.assert_close(context_vectors, contexts, atol=6e-5, rtol=0)


def test_a_duplicate_is_not_told_from_its_twin():
    twins = SIX.clone()
    twins[1] = twins[0]
    context_vectors, attn_weights = simple_attention(twins)
    contexts = torch.tensor(
        [
            [0.4181, 0.4459, 0.6276],
            [0.4181, 0.4459, 0.6276],
            [0.4130, 0.5147, 0.5924],
            [0.4038, 0.5031, 0.5789],
            [0.4442, 0.4635, 0.5573],
            [0.3882, 0.5229, 0.5909],
        ]
    )
    torch.testing.assert_close(context_vectors, contexts, atol=6e-5, rtol=0)
    close(context_vectors[0], context_vectors[1])
    close(attn_weights[:, 0], attn_weights[:, 1])


def test_horse_moves_towards_sports():
    ticket_for_horse_race = torch.tensor([[0.2, 0.1, 2.4], [0.1, 0.1, 0.1], [1.2, 0.8, 2.0], [0.1, 0.2, 3.0]])
    horse, context = ticket_for_horse_race[2], simple_attention(ticket_for_horse_race)[0][2]
    assert context[2] / context.norm() > horse[2] / horse.norm() + 0.05


def test_a_longer_vector_draws_more_weight():
    shares = []
    for factor in (1, 3, 9):
        longer = SIX.clone()
        longer[5] *= factor
        shares.append(simple_attention(longer)[1][:5, 5].mean().item())
    assert shares[0] < shares[1] < shares[2]


# Known values of scaled attention


def test_scores_are_divided_by_the_root_of_head_dim():
    """Query [1, 1], keys [1, 1] and [0, 0]: head_dim is 2, d_in is 4."""
    ones_from_the_first = torch.zeros(4, 2)
    ones_from_the_first[0] = 1
    attention = with_weights(ones_from_the_first, ones_from_the_first, torch.eye(4)[:, :2])
    x = torch.eye(4)[:2]
    weights = torch.tensor([[0.80443, 0.19557], [0.5, 0.5]])
    torch.testing.assert_close(attention.attention_weights(x), weights, atol=5e-6, rtol=0)
    torch.testing.assert_close(attention(x), weights, atol=5e-6, rtol=0)  # the values are the two unit vectors


def test_a_pronoun_finds_an_animal_that_is_nothing_like_it():
    names = ["The", "animal", "did", "not", "cross", "the", "road", "because", "it", "was", "tired"]
    kinds = {"animal": [2.0, 0.0, 0.0, 0.0], "road": [0.0, 2.0, 0.0, 0.0], "it": [0.0, 0.0, 2.0, 0.0]}
    x = torch.tensor([kinds.get(name, [0.0, 0.0, 0.0, 1.0]) for name in names])
    animal, it = names.index("animal"), names.index("it")
    assert x[animal] @ x[it] == 0
    W_query, W_key, W_value = torch.zeros(4, 2), torch.zeros(4, 2), torch.zeros(4, 2)
    W_query[2, 0] = W_key[0, 0] = 3.0
    W_value[0, 0] = W_value[1, 1] = 1.0
    attention = with_weights(W_query, W_key, W_value)
    weights = attention.attention_weights(x)
    assert weights[it, animal] > 0.99
    torch.testing.assert_close(attention(x)[it], torch.tensor([2.0, 0.0]), atol=1e-3, rtol=0)
    assert weights[animal, it] < 0.1, "the way back is another: scores are not symmetric"
    assert simple_attention(x)[1][it].argmax() == it


def test_softmax_does_not_overflow():
    """Scores [1000, 0], where the plain formula gives [nan, 0]."""
    x = torch.tensor([[1000**0.5], [0.0]])
    one = torch.ones(1, 1)
    for weights in (simple_attention(x)[1], with_weights(one, one, one).attention_weights(x)):
        assert weights.tolist() == [[1.0, 0.0], [0.5, 0.5]]


# What holds for any shape and dtype


@every_layer
@moderate
@given(batch_shapes, lengths, widths, widths, dtypes, seeds)
def test_shapes_and_rows(layer, batch_shape, num_tokens, d_in, d_out, dtype, seed):
    module = made(layer, d_in, d_out, dtype, seed)
    x = vectors(*batch_shape, num_tokens, d_in, dtype=dtype, seed=seed)
    before = x.clone()
    contexts, weights = module(x), module.attention_weights(x)
    assert torch.equal(x, before), "the caller's tensor is left alone"
    assert isinstance(contexts, Tensor)
    assert contexts.shape == (*batch_shape, num_tokens, layer.width(d_in, d_out))
    assert weights.shape == (*batch_shape, *layer.heads, num_tokens, num_tokens)
    assert contexts.dtype == weights.dtype == dtype
    assert weights.min() >= 0
    rows = weights.double().sum(dim=-1)
    close(rows, torch.ones_like(rows), dtype)


@every_layer
@moderate
@given(batch_shapes, lengths, widths, widths, dtypes, seeds)
def test_forward_uses_the_weights_it_shows(layer, batch_shape, num_tokens, d_in, d_out, dtype, seed):
    module = made(layer, d_in, d_out, dtype, seed)
    x = vectors(*batch_shape, num_tokens, d_in, dtype=dtype, seed=seed)
    close(module(x), layer.from_weights(module, x, module.attention_weights(x)))


@every_layer
@moderate
@given(batch_shapes, lengths, widths, widths, dtypes, seeds)
def test_equals_torchs_own_attention(layer, batch_shape, num_tokens, d_in, d_out, dtype, seed):
    module = made(layer, d_in, d_out, dtype, seed)
    x = vectors(*batch_shape, num_tokens, d_in, dtype=dtype, seed=seed)
    close(module(x), layer.by_torch(module, x))


@every_layer
@moderate
@given(batch_shapes, lengths, widths, widths, seeds)
def test_bfloat16_is_near_float64(layer, batch_shape, num_tokens, d_in, d_out, seed):
    module = made(layer, d_in, d_out, torch.bfloat16, seed)
    x = vectors(*batch_shape, num_tokens, d_in, dtype=torch.bfloat16, seed=seed)
    exact = copy.deepcopy(module).double()
    close(module(x).double(), exact(x.double()), torch.bfloat16)
    close(module.attention_weights(x).double(), exact.attention_weights(x.double()), torch.bfloat16)


@every_layer_without_mask
@moderate
@given(batch_shapes, st.permutations(range(6)), widths, widths, dtypes, seeds)
def test_permuted_tokens_give_permuted_outputs(layer, batch_shape, order, d_in, d_out, dtype, seed):
    module = made(layer, d_in, d_out, dtype, seed)
    x = vectors(*batch_shape, 6, d_in, dtype=dtype, seed=seed)
    close(module(x[..., order, :]), module(x)[..., order, :])
    close(module.attention_weights(x[..., order, :]), module.attention_weights(x)[..., order, :][..., order])


@every_layer
@moderate
@given(st.integers(2, 4), lengths, widths, widths, dtypes, st.booleans(), st.data())
def test_batch_items_never_mix(layer, batch_size, num_tokens, d_in, d_out, dtype, as_nan, data):
    """One item is changed, to NaN even: the others stay bit for bit, since the same shape takes the same route."""
    module = made(layer, d_in, d_out, dtype)
    x = vectors(batch_size, num_tokens, d_in, dtype=dtype)
    changed = data.draw(st.integers(0, batch_size - 1))
    others = [item for item in range(batch_size) if item != changed]
    other_x = x.clone()
    other_x[changed] = math.nan if as_nan else -3 * other_x[changed] + 1
    assert torch.equal(module(other_x)[others], module(x)[others])
    assert torch.equal(module.attention_weights(other_x)[others], module.attention_weights(x)[others])


@every_layer
@moderate
@given(st.integers(1, 3), st.integers(1, 3), lengths, widths, widths, dtypes)
def test_a_batch_is_item_by_item(layer, outer, inner, num_tokens, d_in, d_out, dtype):
    """Within rounding: another shape may take another route through the matrix product."""
    module = made(layer, d_in, d_out, dtype)
    x = vectors(outer, inner, num_tokens, d_in, dtype=dtype)
    items = [[module(text) for text in row] for row in x]
    close(module(x), torch.stack([torch.stack(row) for row in items]))
    close(module(x), torch.stack([module(row) for row in x]))
    assert module(x[:0]).shape == (0, *module(x).shape[1:])


@every_layer
@moderate
@given(batch_shapes, lengths, widths, widths, dtypes, seeds)
def test_gradients_are_finite(layer, batch_shape, num_tokens, d_in, d_out, dtype, seed):
    module = made(layer, d_in, d_out, dtype, seed)
    x = vectors(*batch_shape, num_tokens, d_in, dtype=dtype, seed=seed).requires_grad_()
    (module(x) ** 2).sum().backward()
    for tensor in (x, *module.parameters()):
        assert tensor.grad.shape == tensor.shape
        assert tensor.grad.isfinite().all()
    if num_tokens > 1:
        for parameter in module.parameters():
            parameter.grad = None
        module.attention_weights(x)[..., 0].sum().backward()
        given_by = {name for name, parameter in module.named_parameters() if parameter.grad is not None}
        assert not any("value" in name for name in given_by), "weights come from queries and keys alone"


@every_layer
@moderate
@given(batch_shapes, lengths, widths, widths, seeds)
def test_gradients_are_those_of_torchs_own(layer, batch_shape, num_tokens, d_in, d_out, seed):
    module = made(layer, d_in, d_out, torch.float64, seed)
    x = vectors(*batch_shape, num_tokens, d_in, dtype=torch.float64, seed=seed).requires_grad_()
    sources = [x, *module.parameters()]
    ours = torch.autograd.grad((module(x) ** 3).sum(), sources)
    theirs = torch.autograd.grad((layer.by_torch(module, x) ** 3).sum(), sources)
    for gradient, expected in zip(ours, theirs):
        close(gradient, expected)


@every_layer
@moderate
@given(batch_shapes, lengths, widths, widths, st.floats(1, 1e4, width=32), seeds)
def test_large_inputs_give_finite_results(layer, batch_shape, num_tokens, d_in, d_out, size, seed):
    module = made(layer, d_in, d_out, seed=seed)
    signs = vectors(*batch_shape, num_tokens, d_in, seed=seed).sign()
    for x in (size * signs, torch.full_like(signs, size), size * vectors(*signs.shape, seed=seed).clamp(-1, 1)):
        x = x.requires_grad_()
        contexts, weights = module(x), module.attention_weights(x)
        assert contexts.isfinite().all()
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
        (contexts / size).sum().backward()
        assert x.grad.isfinite().all()


@every_layer
def test_no_draw_is_made(layer):
    module, x = made(layer), vectors(2, 4, 3)
    state = random_states()
    first, second = module(x), module(x)
    module.attention_weights(x)
    assert torch.equal(first, second)
    assert random_states() == state


@every_layer
def test_vectors_of_any_layout_in_memory(layer):
    module = made(layer, 4, 5)
    x = vectors(3, 4, 6)
    for view in (x.transpose(-2, -1), x[:, :, 1:5], x.expand(2, 3, 4, 6)[..., ::2, 2:], x[:1, :1, :4].expand(3, 7, 4)):
        view = view[..., :4]
        close(module(view), module(view.contiguous()))


# Simple attention alone


@moderate
@given(batch_shapes, lengths, widths, seeds)
def test_scores_are_symmetric_dot_products(batch_shape, num_tokens, d_in, seed):
    """Undo softmax: its logarithm differs from the scores by one number a row, which the token itself tells."""
    x = vectors(*batch_shape, num_tokens, d_in, dtype=torch.float64, seed=seed)
    scores = simple_attention(x)[1].log()
    own = scores.diagonal(dim1=-2, dim2=-1)
    scores = scores + ((x * x).sum(dim=-1) - own)[..., None]
    close(scores, scores.transpose(-2, -1))
    close(scores, x @ x.transpose(-2, -1))


@moderate
@given(lengths, st.integers(2, 8), seeds)
def test_unit_vectors_like_themselves_best(num_tokens, d_in, seed):
    x = vectors(num_tokens, d_in, dtype=torch.float64, seed=seed)
    x = x / x.norm(dim=-1, keepdim=True)
    assume((x @ x.T - torch.eye(num_tokens)).max() < 1 - 1e-6)
    weights = simple_attention(x)[1]
    others = weights.masked_fill(torch.eye(num_tokens, dtype=torch.bool), 0)
    assert (weights.diagonal() > others.amax(dim=-1)).all()


@moderate
@given(batch_shapes, lengths, widths, seeds)
def test_equal_scores_give_the_plain_average(batch_shape, num_tokens, d_in, seed):
    x = vectors(*batch_shape, num_tokens, d_in, dtype=torch.float64, seed=seed)
    x[..., 0, :] = 0  # its dot product with each is 0
    contexts, weights = simple_attention(x)
    close(weights[..., 0, :], torch.full((*batch_shape, num_tokens), 1 / num_tokens, dtype=torch.float64))
    close(contexts[..., 0, :], x.mean(dim=-2))
    attention = made(MODULES["SelfAttention"], d_in, 4, torch.float64)
    nn.init.zeros_(attention.W_query.weight)
    close(attention(x), attention.W_value(x).mean(dim=-2, keepdim=True).expand(*batch_shape, num_tokens, 4))


def test_simple_attention_gives_contexts_first():
    result = simple_attention(SIX)
    assert isinstance(result, tuple)
    assert [tuple(part.shape) for part in result] == [(6, 3), (6, 6)]
    assert list(inspect.signature(simple_attention).parameters) == ["inputs"]


# SelfAttention alone


def test_parameters():
    attention = SelfAttention(d_in=5, d_out=2)
    shapes = {name: tuple(parameter.shape) for name, parameter in attention.named_parameters()}
    weights = dict.fromkeys(["W_query.weight", "W_key.weight", "W_value.weight"], (2, 5))  # (d_out, d_in)
    biases = dict.fromkeys(["W_query.bias", "W_key.bias", "W_value.bias"], (2,))
    assert shapes == weights
    assert attention.W_query.bias is None
    with_bias = SelfAttention(5, 2, qkv_bias=True)
    assert {name: tuple(parameter.shape) for name, parameter in with_bias.named_parameters()} == weights | biases
    assert all(isinstance(with_bias.get_submodule(name), nn.Linear) for name in ("W_query", "W_key", "W_value"))
    assert all(parameter.requires_grad for parameter in with_bias.parameters())
    assert list(with_bias.buffers()) == []


def test_signature_is_the_contracts():
    parameters = inspect.signature(SelfAttention).parameters
    assert list(parameters) == ["d_in", "d_out", "qkv_bias"]
    assert parameters["qkv_bias"].default is False
    assert list(inspect.signature(SelfAttention.forward).parameters) == ["self", "x"]
    assert list(inspect.signature(SelfAttention.attention_weights).parameters) == ["self", "x"]


@moderate
@given(batch_shapes, lengths, widths, widths, seeds)
def test_a_linear_layer_is_the_transposed_matrix(batch_shape, num_tokens, d_in, d_out, seed):
    W_query, W_key, W_value = vectors(3, d_in, d_out, seed=seed)
    attention = with_weights(W_query, W_key, W_value)
    x = vectors(*batch_shape, num_tokens, d_in, seed=seed + 1)
    queries, keys, values = x @ W_query, x @ W_key, x @ W_value
    contexts = torch.softmax(queries @ keys.transpose(-2, -1) / d_out**0.5, dim=-1) @ values
    close(attention(x), contexts)


@moderate
@given(batch_shapes, st.integers(2, 9), widths, widths, seeds)
def test_what_each_bias_does(batch_shape, num_tokens, d_in, d_out, seed):
    attention = made(MODULES["SelfAttention, qkv_bias"], d_in, d_out, torch.float64, seed)
    x = vectors(*batch_shape, num_tokens, d_in, dtype=torch.float64, seed=seed)
    weights, contexts = attention.attention_weights(x), attention(x)
    with torch.no_grad():
        attention.W_key.bias += 1.5  # one and the same number for all scores of a row
        close(attention.attention_weights(x), weights)
        attention.W_value.bias += 1.5
        close(attention.attention_weights(x), weights)
        close(attention(x), contexts + 1.5)
        attention.W_query.bias += 1.5
    assert not torch.allclose(attention.attention_weights(x), weights, atol=1e-9, rtol=0)


def test_variance_of_scores_does_not_depend_on_head_dim():
    """Entries of variance 1: undo softmax, whose logarithm differs from the scores by one number a row."""
    for head_dim in (4, 64, 1024):
        same = torch.eye(head_dim, dtype=torch.float64)
        attention = with_weights(same, same, same).double()
        x = torch.randn(400, 2, head_dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        attention.W_query.weight.data = same.roll(1, dims=0)  # so that no query is its own key
        logs = attention.attention_weights(x).log()
        differences = logs[..., 0] - logs[..., 1]  # of two scores of variance 1 each
        assert differences.var().item() / 2 == pytest.approx(1, abs=0.25)


# As a module among modules


@every_module
def test_mode_makes_no_difference(layer):
    module, x = made(layer), vectors(2, 5, 3)
    assert module.training
    trained = module(x), module.attention_weights(x)
    module.eval()
    assert torch.equal(module(x), trained[0])
    assert torch.equal(module.attention_weights(x), trained[1])
    assert not module.training, "left as it was found"


@every_module
def test_a_state_dict_has_parameters_only(layer):
    module = made(layer)
    assert set(module.state_dict()) == {name for name, _ in module.named_parameters()}


@every_module
def test_state_dict_round_trip(layer):
    module, other, x = made(layer, seed=1), made(layer, seed=2), vectors(2, 5, 3)
    assert not torch.equal(module(x), other(x))
    other.load_state_dict(module.state_dict())
    assert torch.equal(module(x), other(x))


@every_module
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies_are_independent(layer, copied):
    module, x = made(layer), vectors(2, 5, 3)
    before = module(x)
    twin = copied(module)
    assert torch.equal(twin(x), before)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert torch.equal(module(x), before)
    assert not twin(x).any()


@every_module
def test_meta_device(layer):
    module, x = made(layer, 768, 64), vectors(2, 4, 768)
    with torch.device("meta"):
        empty = layer.make(768, 64)
    shape_only = empty(x.to("meta"))
    assert shape_only.shape == (2, 4, layer.width(768, 64))
    assert shape_only.device.type == "meta"
    assert empty.attention_weights(x.to("meta")).shape == (2, *layer.heads, 4, 4)
    empty.load_state_dict(module.state_dict(), assign=True)
    assert torch.equal(empty(x), module(x))


@every_module
def test_the_seed_decides_the_weights(layer):
    def made_after(seed):
        torch.manual_seed(seed)
        return [parameter for _ in range(3) for parameter in layer.make(4, 4).parameters()]

    first, same, other = made_after(5), made_after(5), made_after(6)
    assert all(map(torch.equal, first, same))
    for one, another in combinations([*first, *other], 2):
        assert one.shape != another.shape or not torch.equal(one, another), "each is drawn on its own"


@every_module
def test_frozen_weights(layer):
    module = made(layer).requires_grad_(False)
    x = vectors(2, 5, 3).requires_grad_()
    module(x).sum().backward()
    assert x.grad.abs().sum() > 0
    with torch.inference_mode():
        assert torch.equal(module(x), module(x))


# Bad input


def message_of(error, call, *args, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def calls(module):
    return [module, module.attention_weights]


@every_layer
@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3), (1, 2, 0, 3), (3,), (), (0,)], ids=str)
def test_no_tokens_or_no_token_axis(layer, shape):
    for call in calls(made(layer)):
        message = message_of(ValueError, call, torch.zeros(shape))
        assert message.startswith(f"{layer.argument} ")
        assert str(tuple(shape)) in message
        assert "num_tokens" in message, "what is allowed"


@every_module
@pytest.mark.parametrize("batch_shape", [(), (2,), (2, 1)], ids=str)
@pytest.mark.parametrize("width", [1, 6, 8, 13])
def test_a_wrong_last_dimension_is_named_with_the_right_one(layer, batch_shape, width):
    for call in calls(made(layer, 7, 3)):
        message = message_of(ValueError, call, torch.zeros(*batch_shape, 9, width))
        assert message.startswith("x ")
        assert "7" in message
        assert str(width) in message


@every_layer
@pytest.mark.parametrize(
    "x", [[[0.1, 0.2, 0.3]], np.zeros((2, 3), dtype=np.float32), None], ids=["list", "array", "None"]
)
def test_vectors_are_a_tensor(layer, x):
    for call in calls(made(layer)):
        message = message_of((TypeError, ValueError), call, x)
        assert message.startswith(f"{layer.argument} ")


@every_layer
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool], ids=str)
def test_vectors_are_no_integers(layer, dtype):
    """IDs, say, which have not been embedded."""
    for call in calls(made(layer)):
        message = message_of((TypeError, ValueError), call, torch.ones(2, 3, dtype=dtype))
        assert message.startswith(f"{layer.argument} ")
        assert str(dtype) in message


@pytest.mark.parametrize("name", ["d_in", "d_out"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-3, ValueError), (2.0, TypeError), ("4", TypeError), (None, TypeError), (True, TypeError)],
    ids=repr,
)
def test_sizes_are_positive_integers(name, value, error):
    message = message_of(error, SelfAttention, **{"d_in": 3, "d_out": 2} | {name: value})
    assert name in message
    assert repr(value) in message
