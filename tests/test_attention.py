"""utils.attention against its contract: known values, what holds for any shape and dtype, and bad input.

The five layers share their tests: what holds for all comes first, then what holds for causal attention, for
dropout and for heads.
"""

import copy
import math
import pickle
import re
from io import BytesIO
from itertools import pairwise, product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from states import random_states
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from utils.attention import CausalAttention, MultiHeadAttention, SelfAttention, StackedHeads, simple_attention

pytestmark = pytest.mark.usefixtures("one_thread")


class Simple(nn.Module):
    """`simple_attention` as a module, so that one test serves all layers."""

    def forward(self, x):
        return simple_attention(x)[0]

    def attention_weights(self, x):
        return simple_attention(x)[1]


EVERY = [Simple, SelfAttention, CausalAttention, StackedHeads, MultiHeadAttention]
LEARNED, CAUSAL, WITH_HEADS = EVERY[1:], EVERY[2:], EVERY[3:]
PROJECTIONS = ["W_query", "W_key", "W_value"]
DEFAULTS = {"d_in": 6, "d_out": 8, "context_length": 9, "dropout": 0.5, "num_heads": 2, "qkv_bias": True}
ACCEPTED = {
    Simple: [],
    SelfAttention: ["d_in", "d_out", "qkv_bias"],
    CausalAttention: ["d_in", "d_out", "context_length", "dropout", "qkv_bias"],
    StackedHeads: [*DEFAULTS],
    MultiHeadAttention: [*DEFAULTS],
}
# What rounding may do to numbers of about unit size: float32 has 24 bits, float64 53, float16 11, bfloat16 only 8.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 5e-3, torch.bfloat16: 5e-2}

any_batch_shape, any_length = st.lists(st.integers(1, 3), max_size=2), st.integers(1, 9)
any_shape = st.builds(lambda batch_shape, num_tokens: (*batch_shape, num_tokens), any_batch_shape, any_length)
any_arguments = {
    "d_in": st.integers(1, 8),
    "d_out": st.sampled_from([4, 8, 12]),
    "num_heads": st.sampled_from([1, 2, 4]),
    "qkv_bias": st.booleans(),
    "seed": st.integers(0, 999),
}
any_layer = st.fixed_dictionaries(any_arguments | {"dtype": st.sampled_from(list(TOLERANCE))})
any_layer_of_float64 = st.fixed_dictionaries(any_arguments | {"dtype": st.just(torch.float64)})


def each(layers):
    return pytest.mark.parametrize("layer", layers, ids=lambda layer: layer.__name__)


def examples(number):
    return settings(deadline=None, max_examples=number, suppress_health_check=[HealthCheck.too_slow])


def arguments(layer, **changed):
    return {name: value for name, value in (DEFAULTS | changed).items() if name in ACCEPTED[layer]}


def made(layer, dtype=torch.float32, seed=0, **changed):
    """Return the layer in eval mode; its dropout of one half must then do nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return layer(**arguments(layer, **changed)).to(dtype).eval()


def vectors(*shape, dtype=torch.float32, seed=0):
    """Return vectors of length about 1."""
    normal = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (normal / shape[-1] ** 0.5).to(dtype)


def layer_and_vectors(layer, options, shape):
    x = vectors(*shape, options["d_in"], dtype=options["dtype"], seed=options["seed"])
    return made(layer, **options), x


def seeded(call, *args, seed=7):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return call(*args)


def close(actual, expected, tolerance=None):
    tolerance = tolerance or TOLERANCE[expected.dtype]
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def set_parameters(module, **values):
    """Fill each parameter whose name ends this way, "W_value_weight" say, with a number or a tensor."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            for ending, value in values.items():
                if name.replace(".", "_").endswith(ending):
                    parameter.copy_(torch.as_tensor(value))
    return module


def heads_axis(layer, num_heads=2):
    return (num_heads,) if layer in WITH_HEADS else ()


def projected(module, x, num_heads=2):
    """Return queries, keys and values, (…, num_heads, num_tokens, head_dim); heads are cut by columns, not by view."""
    if isinstance(module, Simple):
        by_head = [[x]] * 3
    elif isinstance(module, StackedHeads):
        by_head = [[head.get_submodule(name)(x) for head in module.heads] for name in PROJECTIONS]
    else:
        parts = num_heads if isinstance(module, MultiHeadAttention) else 1
        by_head = [module.get_submodule(name)(x).chunk(parts, dim=-1) for name in PROJECTIONS]
    return [torch.stack([*heads], dim=-3) for heads in by_head]


def joined(module, heads):
    """Return the context vectors made of the heads' own, which are (…, num_heads, num_tokens, head_dim)."""
    contexts = torch.cat(heads.unbind(dim=-3), dim=-1)
    return module.out_proj(contexts) if type(module) in WITH_HEADS else contexts


def by_torch(module, x, num_heads=2):
    scale, is_causal = 1.0 if isinstance(module, Simple) else None, type(module) in CAUSAL
    heads = F.scaled_dot_product_attention(*projected(module, x, num_heads), is_causal=is_causal, scale=scale)
    return joined(module, heads)


def from_weights(module, x, weights, num_heads=2):
    weights = weights if type(module) in WITH_HEADS else weights.unsqueeze(-3)
    return joined(module, weights @ projected(module, x, num_heads)[2])


# Known values


def test_six_vectors():
    x = torch.tensor(
        [
            [0.43, 0.15, 0.89],
            [0.55, 0.87, 0.66],
            [0.57, 0.85, 0.64],
            [0.22, 0.58, 0.33],
            [0.77, 0.25, 0.10],
            [0.05, 0.80, 0.55],
        ]
    )
    result = simple_attention(x)
    assert isinstance(result, tuple)
    context_vectors, attn_weights = result
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
    x[1] = x[0]  # a duplicate cannot be told from its twin
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
    torch.testing.assert_close(simple_attention(x)[0], contexts, atol=6e-5, rtol=0)


@each(LEARNED)
def test_scores_are_divided_by_the_square_root_of_head_dim(layer):
    """Query [1, 1], keys [0, 0] and [1, 1]: head_dim is 2, d_in is 4."""
    module = made(layer, d_in=4, d_out=4 if layer in WITH_HEADS else 2, qkv_bias=False)
    one_hot = torch.eye(4)
    set_parameters(module, W_query_weight=one_hot[0], W_key_weight=one_hot[0])
    weights = module.attention_weights(one_hot[[1, 0]])[..., 1, :]
    torch.testing.assert_close(weights, torch.tensor([0.19557, 0.80443]).expand(weights.shape), atol=5e-6, rtol=0)


@each(EVERY)
def test_softmax_does_not_overflow(layer):
    """Scores [0, 1000], where the plain formula returns [0, nan]."""
    module = set_parameters(made(layer, num_heads=1, d_in=1, d_out=1), weight=1, bias=0)
    weights = module.attention_weights(torch.tensor([[0.0], [1000**0.5]]))
    assert weights[..., 1, :].flatten().tolist() == [0, 1]


@each(EVERY)
def test_equal_scores_give_the_mean_of_what_is_visible(layer):
    module, x = made(layer, d_in=6), torch.zeros(4, 6) if layer is Simple else vectors(4, 6)
    set_parameters(module, W_query_weight=0, W_query_bias=0)
    visible = torch.ones(4, 4)
    visible = visible.tril() if layer in CAUSAL else visible
    means = (visible / visible.sum(dim=-1, keepdim=True)).expand(*heads_axis(layer), 4, 4)
    close(module.attention_weights(x), means)
    close(module(x), from_weights(module, x, means))


# What holds for every layer, shape and dtype


@each(EVERY)
@examples(25)
@given(any_layer, any_shape)
def test_weights_and_context_vectors(layer, options, shape):
    module, x = layer_and_vectors(layer, options, shape)
    before = x.clone()
    weights, contexts = module.attention_weights(x), module(x)
    assert torch.equal(x, before), "the caller's tensor is left as it was"
    num_heads, (*batch_shape, num_tokens) = options["num_heads"], shape
    assert weights.shape == (*batch_shape, *heads_axis(layer, num_heads), num_tokens, num_tokens)
    assert contexts.shape == (*shape, options["d_in" if layer is Simple else "d_out"])
    assert weights.dtype == contexts.dtype == x.dtype
    assert (weights >= 0).all()
    close(weights.double().sum(dim=-1), torch.ones(weights.shape[:-1], dtype=torch.float64), TOLERANCE[x.dtype])
    assert layer not in CAUSAL or not weights.triu(diagonal=1).any()
    assert torch.equal(module.train().attention_weights(x), weights), "before dropout"
    close(contexts, from_weights(module, x, weights, num_heads))
    close(contexts, by_torch(module, x, num_heads))


@each(EVERY)
@examples(10)
@given(any_layer_of_float64, any_shape)
def test_gradients(layer, options, shape):
    """`forward`, the weights it shows and torch's own attention have the same gradients."""
    module, x = layer_and_vectors(layer, options, shape)
    num_heads, sources = options["num_heads"], [x.requires_grad_(), *module.parameters()]
    ours, shown, theirs = (
        torch.autograd.grad((contexts**3).sum(), sources)
        for contexts in (
            module(x),
            from_weights(module, x, module.attention_weights(x), num_heads),
            by_torch(module, x, num_heads),
        )
    )
    for gradient, of_shown, expected in zip(ours, shown, theirs):
        close(gradient, expected)
        close(of_shown, expected)


@each(EVERY)
def test_half_and_double_precision(layer):
    exact, x = made(layer, torch.float64), vectors(2, 9, 6, dtype=torch.float64)
    for dtype, tolerance in TOLERANCE.items():
        rounded = copy.deepcopy(exact).to(dtype)
        close(rounded(x.to(dtype)).double(), exact(x), tolerance)
        close(rounded.attention_weights(x.to(dtype)).double(), exact.attention_weights(x), tolerance)
        close(rounded.double()(x), exact(x), tolerance)


@each(EVERY)
@examples(10)
@given(any_layer_of_float64, any_shape, st.floats(1, 1e4, width=32))
def test_large_inputs_give_finite_results(layer, options, shape, size):
    module, x = layer_and_vectors(layer, options | {"dtype": torch.float32}, shape)
    for large in (size * x.sign(), torch.full_like(x, size), size * x.clamp(-1, 1)):
        weights, contexts = module.attention_weights(large), module(large.requires_grad_())
        assert contexts.isfinite().all()
        close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
        (contexts / size).sum().backward()
        assert large.grad.isfinite().all()


@each(EVERY)
@examples(12)
@given(any_layer, st.integers(2, 4), st.integers(1, 9), st.booleans(), st.booleans(), st.data())
def test_batch_items_never_mix(layer, options, batch_size, num_tokens, as_nan, training, data):
    """One item is changed, to NaN even: the others stay bit for bit, because the same shape takes the same route."""
    module, x = layer_and_vectors(layer, options, (batch_size, num_tokens))
    changed = data.draw(st.integers(0, batch_size - 1))
    others = [item for item in range(batch_size) if item != changed]
    other_x = x.clone()
    other_x[changed] = math.nan if as_nan else -3 * other_x[changed] + 1
    module.train(training)
    assert torch.equal(seeded(module, other_x)[others], seeded(module, x)[others])
    assert torch.equal(module.attention_weights(other_x)[others], module.attention_weights(x)[others])


# `vmap` has no batching rule for torch's fused attention: it loops over the batch, and warns that this is slow.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@each(EVERY)
def test_any_batch_axes_in_any_layout(layer):
    """Within rounding: another shape may take another route through the matrix product."""
    module, x = made(layer), vectors(2, 3, 6, 5).transpose(-2, -1)
    for call in (module, module.attention_weights):
        every = call(x)
        close(call(x.contiguous()), every)
        close(call(x.transpose(0, 1)).transpose(0, 1), every)
        close(call(x[:1].expand(4, 3, 5, 6)), every[:1].expand(4, *every.shape[1:]))
        close(torch.stack([call(row) for row in x]), every)
        close(torch.stack([torch.stack([call(text) for text in row]) for row in x]), every)
        close(torch.vmap(call)(x), every)
        assert call(x[:0]).shape == (0, *every.shape[1:])
        assert call(x[0, :0]).shape == (0, *every.shape[2:])
        assert call(x[:, :0]).shape == (2, 0, *every.shape[2:])


@each(EVERY[:2])
@examples(10)
@given(any_layer, st.permutations(range(6)))
def test_permuted_tokens_give_permuted_outputs(layer, options, order):
    module, x = layer_and_vectors(layer, options, (2, 6))
    close(module(x[:, order]), module(x)[:, order])
    close(module.attention_weights(x[:, order]), module.attention_weights(x)[:, order][..., order])


# As modules among modules


@each(LEARNED)
def test_state_dict_holds_linear_layers_alone(layer):
    rows, prefixes = (4, ["heads.0.", "heads.1."]) if layer is StackedHeads else (8, [""])
    weights = {f"{prefix}{name}.weight": (rows, 6) for prefix in prefixes for name in PROJECTIONS}
    biases = {f"{prefix}{name}.bias": (rows,) for prefix in prefixes for name in PROJECTIONS}
    out_proj = {"out_proj.weight": (8, 8), "out_proj.bias": (8,)} if layer in WITH_HEADS else {}
    without_bias = arguments(layer)
    del without_bias["qkv_bias"]
    plain = [layer(**without_bias) for _ in range(3)]
    rows = torch.cat([module.get_parameter(name) for module in plain for name in weights])
    assert len(rows.unique(dim=0)) == len(rows), "each starts with random numbers of its own"
    for module, expected in ((plain[0], weights | out_proj), (made(layer), weights | biases | out_proj)):
        module(vectors(2, 5, 6))
        assert {name: tuple(parameter.shape) for name, parameter in module.named_parameters()} == expected
        assert module.state_dict().keys() == expected.keys()
        kept = [value for part in module.modules() for value in vars(part).values()]
        assert not list(module.buffers()) + [value for value in kept if isinstance(value, Tensor)], "no mask is kept"


@each(LEARNED)
def test_saved_copied_and_moved(layer):
    """A large model is built without memory, then filled from a checkpoint: no mask must be lost or left behind."""
    module, x = made(layer), vectors(2, 5, 6)
    with torch.device("meta"):
        empty = layer(**arguments(layer)).eval()
    for moved in (empty, made(layer).to("meta")):
        for call in (moved, moved.attention_weights):
            shape_only = call(x.to("meta"))
            assert shape_only.device.type == "meta"
            assert shape_only.shape == (2, 5, 8) if call is moved else (2, *heads_axis(layer), 5, 5)
    empty.load_state_dict(module.state_dict(), assign=True)
    loaded = [made(layer, seed=1, context_length=context_length) for context_length in (5, 9, 40)]
    for other in loaded:
        assert not torch.equal(other(x), module(x))
        other.load_state_dict(module.state_dict())
    for twin in (empty, *loaded, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(twin(x), module(x))


# No token attends to a later one


def assert_no_leak(call, x, positions):
    """Change all that comes after token t: tokens 0…t keep their vectors bit for bit."""
    before = call(x)
    for t, factor in product(positions, [30, -1, 0]):
        changed = x.clone()
        changed[..., t + 1 :, :] *= factor
        after = call(changed)
        assert torch.equal(after[..., : t + 1, :], before[..., : t + 1, :]), f"token {t} attends to its future"
        assert after.isfinite().all()
        assert not torch.equal(after[..., t + 1, :], before[..., t + 1, :]), "the change is seen where it may be"


@each(CAUSAL)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_a_changed_future_leaves_the_past_bit_for_bit(layer, dtype):
    module = made(layer, dtype)
    for shape in [(6,), (2, 1, 3)]:
        x, positions = vectors(*shape, 6, dtype=dtype), range(shape[-1] - 1)
        assert_no_leak(module.eval(), x, positions)
        assert_no_leak(module.attention_weights, x, positions)
        module.train()
        assert_no_leak(lambda x: seeded(module, x), x, positions)


def test_a_changed_future_leaves_the_past_of_a_long_text():
    """The fused attention works on blocks of 64 queries and 512 keys, in several threads: check around the borders."""
    torch.set_num_threads(2)
    module = made(MultiHeadAttention, context_length=700)
    assert_no_leak(module, vectors(1, 600, 6), [0, 63, 64, 511, 512, 598])


@each(CAUSAL)
def test_gradients_come_from_past_and_present_alone(layer):
    """A map of |∂output_i/∂input_j|, summed over both vectors: (num_tokens, num_tokens)."""
    visible = torch.ones(5, 5, dtype=torch.bool).tril()
    for dtype, training in product(TOLERANCE, [False, True]):
        module, x = made(layer, dtype, d_out=4, dropout=0.2).train(training), vectors(5, 6, dtype=dtype)
        jacobian = torch.autograd.functional.jacobian(lambda x, module=module: seeded(module, x), x)
        found = jacobian.abs().sum(dim=(1, 3))
        assert found.isfinite().all()
        assert not found[~visible].any()
        assert training or found[visible].all()  # dropout may hide what is visible


@each(CAUSAL)
@pytest.mark.parametrize("own_score", [-2e4, -1e10, -1e30])
def test_no_score_beats_the_mask(layer, own_score):
    """Token 0 has this score for itself, and 5 for the hidden token 1: a finite fill may be beaten."""
    size = (-own_score) ** 0.5
    module = set_parameters(made(layer, num_heads=1, d_in=1, d_out=1), bias=0, weight=1)
    set_parameters(module, W_query_weight=-1)
    x = torch.tensor([[size], [-5 / size]])
    assert module.attention_weights(x)[..., 0, :].flatten().tolist() == [1, 0]
    assert torch.equal(module(x)[0], x[0])


@each(CAUSAL)
@examples(10)
@given(any_layer, any_shape)
def test_output_equals_that_of_the_prefix_alone(layer, options, shape):
    module, x = layer_and_vectors(layer, options, shape)
    contexts, weights = module(x), module.attention_weights(x)
    for length in range(1, shape[-1] + 1):
        close(module(x[..., :length, :]), contexts[..., :length, :])
        close(module.attention_weights(x[..., :length, :]), weights[..., :length, :length])


# Dropout


def showing_weights(layer, num_tokens, **changed):
    """Return a layer, x, and a function of x: the attention weights that `forward` used, after dropout."""
    module = made(layer, d_in=num_tokens, d_out=num_tokens * (2 if layer in WITH_HEADS else 1), **changed)
    x = torch.eye(num_tokens)
    for value_layer in (part for name, part in module.named_modules() if name.endswith("W_value")):
        value_layer.weight.data = x.repeat(value_layer.out_features // num_tokens, 1)
    set_parameters(module, W_value_bias=0, out_proj_bias=0, out_proj_weight=torch.eye(2 * num_tokens))

    def used_weights(x):
        contexts = module(x)  # (…, num_tokens, num_heads · num_tokens)
        return contexts.unflatten(-1, (2, num_tokens)).transpose(-3, -2) if layer in WITH_HEADS else contexts

    return module, x, used_weights


@each(EVERY)
def test_only_dropout_in_training_is_random(layer):
    state = random_states()
    module, x = made(layer), vectors(2, 9, 6)
    calm = module(x)
    assert torch.equal(module(x), calm)
    module.train().attention_weights(x)
    assert torch.equal(made(layer, dropout=0).train()(x), calm)
    assert layer in CAUSAL or torch.equal(module(x), calm)
    assert random_states() == state
    if layer in CAUSAL:
        first, other, again = (seeded(module, x, seed=seed) for seed in (7, 8, 7))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert not torch.equal(first, calm)
    assert module.training
    assert torch.equal(module.eval()(x), calm)
    assert not module.training, "left as it was"


@each(CAUSAL)
def test_dropout_of_one_leaves_nothing(layer):
    module, x = made(layer, dropout=1).train(), vectors(2, 9, 6).requires_grad_()
    contexts = module(x)
    close(contexts, (module.out_proj.bias if layer in WITH_HEADS else torch.zeros(8)).expand(2, 9, 8))
    contexts.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (x, *module.parameters()))


@each(CAUSAL)
@pytest.mark.parametrize("dropout", [0.2, 0.5])
def test_dropout_acts_on_the_weights_alone(layer, dropout):
    module, x, used_weights = showing_weights(layer, 6, dropout=dropout)
    x = x.expand(500, 6, 6)
    weights = module.attention_weights(x)
    close(used_weights(x), weights)
    module.train()
    used = seeded(used_weights, x)
    visible = torch.ones(6, 6, dtype=torch.bool).tril()
    assert not used[..., ~visible].any(), "masked weights stay 0"
    factors = (used / weights)[..., visible]  # (…, 21)
    kept = factors != 0
    close(factors, kept / (1 - dropout))
    spread = (dropout * (1 - dropout) / kept.numel()) ** 0.5
    assert kept.double().mean().item() == pytest.approx(1 - dropout, abs=5 * spread)
    spread = (dropout / (1 - dropout) / 500) ** 0.5
    close(factors.mean(dim=0), torch.ones(factors.shape[1:]), 5.5 * spread)
    rows = used.sum(dim=-1)
    assert (rows - 1).abs().max() > 0.1, "rows sum to 1 on average only"
    for one, another in pairwise(kept.flatten(end_dim=-2)[:40]):
        assert not torch.equal(one, another), "each text and each head has a mask of its own"
    # Each value is now [1, 1, …], so that a context vector repeats the sum of its row.
    set_parameters(module, W_value_weight=1)
    close(seeded(used_weights, x), rows[..., None].expand_as(used))


# Heads


def test_heads_are_cut_from_each_token_and_joined_again():
    """By view alone, head 0 of token 1 would be [3, 4, 5]."""
    x = torch.arange(24.0).view(1, 4, 6)
    module = MultiHeadAttention(6, 6, 4, 0.0, 2)
    heads = module.split_heads(x)
    assert heads.shape == (1, 2, 4, 3)
    assert heads[0, :, 1].tolist() == [[6, 7, 8], [9, 10, 11]]
    set_parameters(module, W_query_weight=0, W_value_weight=torch.eye(6), out_proj_weight=torch.eye(6), out_proj_bias=0)
    assert module(x)[0, 1].tolist() == [3, 4, 5, 6, 7, 8]  # all scores are 0: the mean of tokens 0 and 1


def test_parameters_do_not_depend_on_the_number_of_heads():
    for qkv_bias, num_heads in product([False, True], [1, 2, 12]):
        module = MultiHeadAttention(768, 768, 1024, 0.1, num_heads, qkv_bias)
        assert sum(parameter.numel() for parameter in module.parameters()) == 4 * 768**2 + 768 * (1 + 3 * qkv_bias)


class LargestTensor(TorchDispatchMode):
    """Record how many entries the largest result of any operation has."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            self.entries = max(self.entries, tensor.numel() if isinstance(tensor, Tensor) else 0)
        return result


@pytest.mark.parametrize("batch_shape", [(1,), (), (1, 1)], ids=str)
def test_multi_head_attention_builds_no_square(batch_shape):
    """Neither in training without dropout nor in eval mode with it."""
    for training in (True, False):
        module = MultiHeadAttention(6, 8, 512, 0.0 if training else 0.5, 2).train(training)
        x = vectors(*batch_shape, 512, 6).requires_grad_()
        with LargestTensor() as largest:
            module(x).sum().backward()
        assert 512 * 8 <= largest.entries < 512 * 512


# One layer in several forms


def by_hand(p, x, num_heads):
    """Loop over texts, tokens and heads."""
    head_dim, texts = len(p["out_proj.weight"]) // num_heads, []
    for text in x:
        queries, keys, values = (text @ p[f"{name}.weight"].T + p[f"{name}.bias"] for name in PROJECTIONS)
        rows = []
        for t in range(len(text)):
            parts = []
            for start in range(0, num_heads * head_dim, head_dim):
                part = slice(start, start + head_dim)
                scores = torch.stack([queries[t, part] @ keys[j, part] / math.sqrt(head_dim) for j in range(t + 1)])
                weights = scores.exp() / scores.exp().sum()
                parts.append(sum(weights[j] * values[j, part] for j in range(t + 1)))
            rows.append(p["out_proj.weight"] @ torch.cat(parts) + p["out_proj.bias"])
        texts.append(torch.stack(rows))
    return torch.stack(texts)


def as_stacked(p, x, num_heads):
    module = StackedHeads(x.shape[-1], len(p["out_proj.weight"]), 9, 0.0, num_heads, qkv_bias=True)
    renamed = {f"out_proj.{part}": p[f"out_proj.{part}"] for part in ("weight", "bias")}
    for name, part in product(PROJECTIONS, ("weight", "bias")):
        for head, rows in enumerate(p[f"{name}.{part}"].chunk(num_heads)):
            renamed[f"heads.{head}.{name}.{part}"] = rows
    return functional_call(module, renamed, (x,), strict=True)


def as_multi_head(p, x, num_heads):
    module = MultiHeadAttention(x.shape[-1], len(p["out_proj.weight"]), 9, 0.0, num_heads, qkv_bias=True)
    return functional_call(module, p, (x,), strict=True)


def one_matrix(p, part):
    return torch.cat([p[f"{name}.{part}"] for name in PROJECTIONS])


def as_fused(p, x, num_heads):
    """One matrix for queries, keys and values, and a mask by hand, where True means: may attend."""
    split = F.linear(x, one_matrix(p, "weight"), one_matrix(p, "bias")).unflatten(-1, (3, num_heads, -1))
    may_attend = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    heads = F.scaled_dot_product_attention(*split.permute(2, 0, 3, 1, 4), attn_mask=may_attend)
    return F.linear(torch.cat(heads.unbind(dim=1), dim=-1), p["out_proj.weight"], p["out_proj.bias"])


def as_torchs(p, x, num_heads):
    """Torch's module takes the opposite mask: True means hidden."""
    module = nn.MultiheadAttention(x.shape[-1], num_heads, batch_first=True, dtype=x.dtype)
    renamed = {f"out_proj.{part}": p[f"out_proj.{part}"] for part in ("weight", "bias")}
    renamed |= {f"in_proj_{part}": one_matrix(p, part) for part in ("weight", "bias")}
    hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(diagonal=1)
    options = {"attn_mask": hidden, "need_weights": False}
    return functional_call(module, renamed, (x, x, x), options, strict=True)[0]


@pytest.mark.parametrize("num_heads", [1, 2, 4])
@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=str)
def test_all_forms_are_one_layer(num_heads, qkv_bias, dtype, tolerance):
    for num_tokens, d_in in [(1, 8), (2, 5), (5, 8)]:
        p = dict(made(MultiHeadAttention, dtype, d_in=d_in, num_heads=num_heads).named_parameters())
        if not qkv_bias:
            p |= {f"{name}.bias": torch.zeros(8, dtype=dtype, requires_grad=True) for name in PROJECTIONS}
        x = vectors(2, num_tokens, d_in, dtype=dtype).requires_grad_()
        direction = vectors(2, num_tokens, 8, dtype=dtype, seed=1)
        expected = by_hand(p, x, num_heads)
        gradients = torch.autograd.grad((expected * direction).sum(), [x, *p.values()])
        for form in [as_stacked, as_multi_head, as_fused] + [as_torchs] * (d_in == 8):
            actual = form(p, x, num_heads)
            close(actual, expected, tolerance)
            found = torch.autograd.grad((actual * direction).sum(), [x, *p.values()])
            for gradient, of_hand in zip(found, gradients):
                close(gradient, of_hand, tolerance)


# torch.compile and torch.export


# On its way to the compiler torch imports a module of its own that uses what torch deprecates.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_compiled_as_one_graph_for_all_lengths():
    module = made(MultiHeadAttention)
    torch.compiler.reset()
    compiled = torch.compile(module, backend="eager", fullgraph=True, dynamic=True)
    for num_tokens in (9, 5):
        x = vectors(2, num_tokens, 6)
        close(compiled(x), module(x))
        found, expected = (torch.autograd.grad(call(x).sum(), module.parameters()) for call in (compiled, module))
        close(found, expected, 1e-5)
    torch.compiler.reset()


def test_exported_and_loaded_for_all_sizes():
    module = made(MultiHeadAttention)
    sizes = {0: torch.export.Dim("batch_size"), 1: torch.export.Dim("num_tokens", min=1, max=9)}
    program = torch.export.export(module, (vectors(2, 9, 6),), dynamic_shapes={"x": sizes})
    file = BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for batch_size, num_tokens in [(2, 9), (2, 5), (3, 2), (1, 1)]:
        x = vectors(batch_size, num_tokens, 6)
        close(loaded(x), module(x))


# Bad input


def assert_error_names(facts, error, call, *args, **kwargs):
    """The message must contain each fact as a word of its own, so that 1 is not found in 10."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    for fact in map(str, facts):
        assert re.search(rf"(?<![\w.]){re.escape(fact)}(?!\w)", str(caught.value)), f"{fact} is missing: {caught.value}"


def calls(layer, **changed):
    module = made(layer, **changed)
    return module, module.attention_weights


@each(EVERY)
@pytest.mark.parametrize("shape", [(0, 6), (2, 0, 6), (1, 2, 0, 6), (6,), (), (0,)], ids=str)
def test_there_must_be_tokens(layer, shape):
    argument = "inputs" if layer is Simple else "x"
    for call in calls(layer):
        assert_error_names([argument, "num_tokens", shape], ValueError, call, torch.zeros(shape))


@each(EVERY)
@pytest.mark.parametrize(
    ("x", "kind"),
    [
        ([[0.5] * 6], "list"),
        (np.zeros((2, 6), dtype=np.float32), "ndarray"),
        (None, "NoneType"),
        (torch.ones(2, 6, dtype=torch.int64), "torch.int64"),  # IDs, say, which have not been embedded
        (torch.ones(2, 6, dtype=torch.bool), "torch.bool"),
        (torch.ones(2, 6, dtype=torch.complex64), "torch.complex64"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_vectors_must_be_a_floating_point_tensor(layer, x, kind):
    argument = "inputs" if layer is Simple else "x"
    for call in calls(layer):
        assert_error_names([argument, kind], TypeError, call, x)


@each(LEARNED)
@pytest.mark.parametrize("batch_shape", [(), (2,), (2, 1)], ids=str)
def test_a_wrong_last_dimension_is_named_with_the_right_one(layer, batch_shape):
    for call, width in product(calls(layer, d_in=7), [1, 6, 8, 13]):
        assert_error_names(["x", 7, width], ValueError, call, torch.zeros(*batch_shape, 9, width))


@each(CAUSAL)
@pytest.mark.parametrize("batch_shape", [(), (2,), (2, 3)], ids=str)
def test_a_text_too_long_is_named_with_its_limit(layer, batch_shape):
    for call in calls(layer):
        call(torch.zeros(*batch_shape, 9, 6))
        assert_error_names(["x", 10, "context_length", 9], ValueError, call, torch.zeros(*batch_shape, 10, 6))


sizes = [(layer, name) for layer in LEARNED for name in ACCEPTED[layer] if name not in ("dropout", "qkv_bias")]


@pytest.mark.parametrize(("layer", "name"), sizes, ids=lambda part: getattr(part, "__name__", part))
def test_sizes_must_be_positive_integers(layer, name):
    for value in (0, -2):
        assert_error_names([name, value], ValueError, made, layer, **{name: value})
    for value in (2.0, "2", None, True):
        assert_error_names([name, repr(value)], TypeError, made, layer, **{name: value})


@each(LEARNED)
def test_sizes_may_be_integers_of_any_library(layer):
    """Small ones must not overflow: 3 · 200 is not a uint8."""
    sizes = {
        "d_in": np.uint8(200),
        "d_out": np.uint8(200),
        "context_length": torch.tensor(200),
        "num_heads": np.int8(2),
    }
    x = vectors(2, 200, 200)
    module = made(layer, dropout=np.float32(0.5), **sizes)
    plain = made(layer, **{name: int(size) for name, size in sizes.items()})
    assert torch.equal(module(x), plain(x))
    for part in module.modules():
        kept = {name: type(value) for name, value in vars(part).items() if not name.startswith("_")}
        assert set(kept.values()) <= {int, float, bool}, kept


@each(LEARNED)
@pytest.mark.parametrize("qkv_bias", ["False", 1, None], ids=repr)
def test_qkv_bias_must_be_true_or_false(layer, qkv_bias):
    assert_error_names(["qkv_bias", repr(qkv_bias)], TypeError, made, layer, qkv_bias=qkv_bias)


@each(CAUSAL)
@pytest.mark.parametrize("dropout", [-0.1, 1.1, math.nan, math.inf, 10, "0.1", None, True], ids=repr)
def test_dropout_must_be_a_fraction(layer, dropout):
    error = ValueError if type(dropout) in (int, float) else TypeError
    assert_error_names(["dropout", repr(dropout)], error, made, layer, dropout=dropout)


@each(WITH_HEADS)
@pytest.mark.parametrize(("d_out", "num_heads"), [(8, 3), (3, 2), (4, 5), (768, 13)])
def test_heads_must_divide_d_out(layer, d_out, num_heads):
    facts = ["d_out", d_out, "num_heads", num_heads]
    assert_error_names(facts, ValueError, made, layer, d_out=d_out, num_heads=num_heads)
