"""The causal attentions of utils.attention: no token sees a later one, and all are one layer in several forms."""

import copy
import math
import pickle
import shutil
import sys
import sysconfig
from functools import partial
from io import BytesIO
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from utils.attention import CausalAttention, MultiHeadAttention, StackedHeads

pytestmark = pytest.mark.usefixtures("one_thread")
moderate = settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
# What rounding may do to numbers of about unit size.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 5e-2, torch.float16: 5e-3}


class Kind(NamedTuple):
    layer: type[nn.Module]
    qkv_bias: bool

    @property
    def has_heads(self):
        return self.layer is not CausalAttention


KINDS = [Kind(*pair) for pair in product([CausalAttention, StackedHeads, MultiHeadAttention], [False, True])]


def name_of(kind):
    return kind.layer.__name__ + ", qkv_bias" * kind.qkv_bias


every_kind = pytest.mark.parametrize("kind", KINDS, ids=name_of)
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
any_dtype, any_seed = st.sampled_from(list(TOLERANCE)), st.integers(0, 999)
any_length = st.integers(1, 9)
any_batch = st.lists(st.integers(1, 3), max_size=2).map(tuple)
any_heads = st.sampled_from([1, 2, 4])


def arguments(kind, **changed):
    given = {"d_in": 6, "d_out": 8, "context_length": 9, "dropout": 0.5, "qkv_bias": kind.qkv_bias}
    return given | ({"num_heads": 2} if kind.has_heads else {}) | changed


def made(kind, dtype=torch.float32, seed=0, num_heads=None, **changed):
    """Return the layer in eval mode; its dropout of one half must then do nothing."""
    if num_heads is not None and kind.has_heads:
        changed["num_heads"] = num_heads
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind.layer(**arguments(kind, **changed)).to(dtype).eval()


def vectors(*shape, dtype=torch.float32, seed=0):
    """Return vectors of length about 1."""
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (drawn / shape[-1] ** 0.5).to(dtype)


def seeded(call, *args, seed=7):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return call(*args)


def close(actual, expected, tolerance=None):
    tolerance = tolerance or TOLERANCE[expected.dtype]
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def from_weights(module, x, weights):
    """Return context vectors of attention weights, head by head, cut by columns and not by view."""
    if isinstance(module, CausalAttention):
        return weights @ module.W_value(x)
    if isinstance(module, StackedHeads):
        values = [head.W_value(x) for head in module.heads]
    else:
        values = module.W_value(x).chunk(weights.shape[-3], dim=-1)
    return module.out_proj(torch.cat([of_head @ v for of_head, v in zip(weights.unbind(dim=-3), values)], dim=-1))


def set_parameters(module, **values):
    """Fill each parameter whose name ends so, "W_value_weight" say, with a number or a tensor."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            for ending, value in values.items():
                if name.replace(".", "_").endswith(ending):
                    parameter.copy_(torch.as_tensor(value))
    return module


def showing_weights(kind, num_tokens, **changed):
    """Return a layer and x: its output for them is the attention weights that it used, after dropout."""
    module = made(kind, d_in=num_tokens, d_out=num_tokens * (1 + kind.has_heads), **changed)
    one_hot = torch.eye(num_tokens)
    for parameter in [parameter for name, parameter in module.named_parameters() if "W_value.weight" in name]:
        parameter.data = one_hot.repeat(len(parameter) // num_tokens, 1)
    set_parameters(module, W_value_bias=0, out_proj_bias=0, out_proj_weight=torch.eye(2 * num_tokens))

    def used_weights(x):
        contexts = module(x)  # (…, num_tokens, num_heads · num_tokens)
        return contexts.unflatten(-1, (2, num_tokens)).transpose(-3, -2) if kind.has_heads else contexts

    return module, used_weights, one_hot


# No token sees a later one


def assert_no_leak(call, x, positions):
    """Change all that comes after token t: what stands at 0…t stays bit for bit."""
    before = call(x)
    for t, factor in product(positions, [30, -1, 0]):
        changed = x.clone()
        changed[..., t + 1 :, :] *= factor
        after = call(changed)
        assert torch.equal(after[..., : t + 1, :], before[..., : t + 1, :]), f"token {t} sees its future"
        assert after.isfinite().all()
        assert not torch.equal(after[..., t + 1, :], before[..., t + 1, :]), "the change is seen where it may be"


@every_kind
@every_dtype
@pytest.mark.parametrize("shape", [(6,), (2, 9), (2, 1, 3)], ids=str)
def test_a_changed_future_leaves_the_past_bit_for_bit(kind, dtype, shape):
    module, x = made(kind, dtype), vectors(*shape, 6, dtype=dtype)
    assert_no_leak(module, x, range(shape[-1] - 1))
    assert_no_leak(module.attention_weights, x, range(shape[-1] - 1))
    module.train()
    assert_no_leak(lambda x: seeded(module, x), x, range(shape[-1] - 1))


@every_kind
def test_a_changed_future_leaves_the_past_of_a_long_text(kind):
    """The fused attention works block by block, in several threads: look on both sides of the borders."""
    torch.set_num_threads(2)
    assert_no_leak(made(kind, context_length=700), vectors(1, 600, 6), [0, 31, 32, 255, 256, 511, 512, 598])


@every_kind
@every_dtype
@pytest.mark.parametrize("training", [False, True])
def test_gradients_come_from_past_and_present_alone(kind, dtype, training):
    """A map of |∂output_i/∂input_j|, summed over both vectors: (num_tokens, num_tokens)."""
    visible = torch.ones(5, 5, dtype=torch.bool).tril()
    module = made(kind, dtype, d_out=4, dropout=0.2).train(training)
    for batch_shape in [(), (1,)]:
        x = vectors(*batch_shape, 5, 6, dtype=dtype)
        jacobian = torch.autograd.functional.jacobian(lambda x: seeded(module, x).reshape(5, 4), x)
        found = jacobian.reshape(5, 4, 5, 6).abs().sum(dim=(1, 3))
        assert found.isfinite().all()
        assert not found[~visible].any()
        assert training or found[visible].all()  # dropout may hide what is visible


@every_kind
@moderate
@given(any_batch, any_length, any_heads, any_dtype, any_seed)
def test_weights(kind, batch_shape, num_tokens, num_heads, dtype, seed):
    module = made(kind, dtype, seed, num_heads)
    x = vectors(*batch_shape, num_tokens, 6, dtype=dtype, seed=seed)
    before = x.clone()
    weights, contexts = module.attention_weights(x), module(x)
    assert torch.equal(x, before), "the caller's tensor is left alone"
    assert weights.shape == (*batch_shape, *([num_heads] if kind.has_heads else []), num_tokens, num_tokens)
    assert contexts.shape == (*batch_shape, num_tokens, 8)
    assert weights.dtype == contexts.dtype == dtype
    assert weights.isfinite().all()
    assert not weights.triu(diagonal=1).any()
    assert (weights.diagonal(dim1=-2, dim2=-1) > 0).all()
    assert (weights.tril() >= 0).all()
    close(weights.double().sum(dim=-1), torch.ones(weights.shape[:-1], dtype=torch.float64), TOLERANCE[dtype])
    close(contexts, from_weights(module, x, weights))
    assert torch.equal(module.train().attention_weights(x), weights), "before dropout"


@every_kind
@pytest.mark.parametrize("own_score", [-2e4, -1e10, -1e30])
def test_no_score_beats_the_mask(kind, own_score):
    """Token 0 has this score for itself, and 5 for the hidden token 1: a finite fill may be beaten."""
    size = (-own_score) ** 0.5
    module = made(kind, num_heads=1, d_in=1, d_out=1)
    set_parameters(module, bias=0, weight=1)
    set_parameters(module, W_query_weight=-1)
    x = torch.tensor([[size], [-5 / size]])
    assert module.attention_weights(x).flatten(end_dim=-2)[0].tolist() == [1, 0]
    assert torch.equal(module(x)[0], x[0])


@every_kind
def test_equal_scores_give_the_mean_of_what_is_visible(kind):
    module, used_weights, x = showing_weights(kind, 4)
    set_parameters(module, W_query_weight=0, W_query_bias=0)
    means = torch.ones(4, 4).tril() / torch.arange(1, 5)[:, None]
    close(module.attention_weights(x), means.expand(*[2] * kind.has_heads, 4, 4))
    close(used_weights(x), means.expand(*[2] * kind.has_heads, 4, 4))


@every_kind
@moderate
@given(any_batch, any_length, any_heads, any_dtype, any_seed)
def test_output_equals_that_of_the_prefix_alone(kind, batch_shape, num_tokens, num_heads, dtype, seed):
    module = made(kind, dtype, seed, num_heads)
    x = vectors(*batch_shape, num_tokens, 6, dtype=dtype, seed=seed)
    contexts, weights = module(x), module.attention_weights(x)
    for length in range(1, num_tokens + 1):
        close(module(x[..., :length, :]), contexts[..., :length, :])
        close(module.attention_weights(x[..., :length, :]), weights[..., :length, :length])


@every_kind
@moderate
@given(st.integers(2, 4), any_length, any_dtype, st.booleans(), st.booleans(), st.data())
def test_batch_items_never_mix(kind, batch_size, num_tokens, dtype, as_nan, training, data):
    module, x = made(kind, dtype).train(training), vectors(batch_size, num_tokens, 6, dtype=dtype)
    changed = data.draw(st.integers(0, batch_size - 1))
    others = [item for item in range(batch_size) if item != changed]
    other_x = x.clone()
    other_x[changed] = math.nan if as_nan else -3 * other_x[changed] + 1
    assert torch.equal(seeded(module, other_x)[others], seeded(module, x)[others])
    assert torch.equal(module.attention_weights(other_x)[others], module.attention_weights(x)[others])


@every_kind
def test_any_number_of_batch_axes(kind):
    module, x = made(kind), vectors(2, 3, 5, 6)
    for call in (module, module.attention_weights):
        every = call(x)
        close(torch.stack([call(row) for row in x]), every)
        close(torch.stack([torch.stack([call(text) for text in row]) for row in x]), every)
        close(call(x.transpose(0, 1)).transpose(0, 1), every)
        assert call(x[:0]).shape == (0, *every.shape[1:])
        assert call(x[0, :0]).shape == (0, *every.shape[2:])


# Dropout


@every_kind
def test_training_draws_and_eval_does_not(kind):
    module, x = made(kind), vectors(2, 9, 6)
    state = torch.get_rng_state()
    calm = module(x)
    assert torch.equal(module(x), calm)
    module.train().attention_weights(x)
    assert torch.equal(torch.get_rng_state(), state), "no draw was made"
    assert not torch.equal(seeded(module, x), calm)
    assert not torch.equal(seeded(module, x), seeded(module, x, seed=8))
    assert torch.equal(seeded(module, x), seeded(module, x))
    assert torch.equal(module.eval()(x), calm)
    assert not torch.equal(seeded(module.train(), x), calm), "and again"
    assert module.training
    assert not module.eval().training
    module(x)
    assert not module.training, "left as it was found"


@every_kind
@every_dtype
def test_no_dropout_makes_training_equal_eval(kind, dtype):
    module, x = made(kind, dtype, dropout=0), vectors(2, 9, 6, dtype=dtype)
    state = torch.get_rng_state()
    assert torch.equal(module.train()(x), module.eval()(x))
    assert torch.equal(torch.get_rng_state(), state)


@every_kind
def test_dropout_of_one_leaves_nothing(kind):
    module, x = made(kind, dropout=1).train(), vectors(2, 9, 6).requires_grad_()
    contexts = module(x)
    close(contexts, (module.out_proj.bias if kind.has_heads else torch.zeros(8)).expand(2, 9, 8))
    contexts.sum().backward()
    for tensor in (x, *module.parameters()):
        assert tensor.grad.isfinite().all()


@every_kind
@pytest.mark.parametrize("dropout", [0.2, 0.5])
def test_dropout_falls_on_the_weights_alone(kind, dropout):
    module, used_weights, x = showing_weights(kind, 6, dropout=dropout)
    x = x.expand(500, 6, 6)
    weights = module.attention_weights(x)
    close(used_weights(x), weights)
    module.train()
    used = seeded(used_weights, x)
    visible = torch.ones(6, 6, dtype=torch.bool).tril()
    assert not used[..., ~visible].any(), "masked places stay 0"
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
        assert not torch.equal(one, another), "each text, each head: a draw of its own"
    set_parameters(
        module, W_value_weight=1
    )  # each value is [1, 1, …]: a context is the sum of its row, again and again
    close(seeded(used_weights, x), rows[..., None].expand_as(used))


# State, sizes, kinds of numbers


@every_kind
def test_state_dict(kind):
    linear = ["W_query", "W_key", "W_value"]
    if kind.layer is StackedHeads:
        linear = [f"heads.{head}.{name}" for head in range(2) for name in linear]
    names = [f"{name}.{part}" for name in linear for part in ["weight", "bias"][: 1 + kind.qkv_bias]]
    names += ["out_proj.weight", "out_proj.bias"] if kind.has_heads else []
    module = made(kind)
    assert sorted(module.state_dict()) == sorted(names) == sorted(name for name, _ in module.named_parameters())
    assert all(isinstance(module.get_submodule(name.rpartition(".")[0]), nn.Linear) for name in names)
    assert all(parameter.requires_grad for parameter in module.parameters())
    x = vectors(2, 5, 6)
    for context_length in (5, 9, 40):
        other = made(kind, seed=1, context_length=context_length)
        assert not torch.equal(other(x), module(x))
        other.load_state_dict(module.state_dict(), strict=True)
        assert torch.equal(other(x), module(x))


def test_multi_head_attention_holds_no_mask_and_as_many_parameters_with_any_heads():
    for qkv_bias, num_heads, context_length in product([False, True], [1, 2, 12], [1, 1024]):
        module = MultiHeadAttention(768, 768, context_length, 0.1, num_heads, qkv_bias)
        assert list(module.buffers()) == []
        assert sum(p.numel() for p in module.parameters()) == 4 * 768**2 + 768 * (1 + 3 * qkv_bias)
        assert not any(isinstance(value, Tensor) for value in vars(module).values())


class LargestTensor(TorchDispatchMode):
    """Record how many entries the largest result of any operation has."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            self.entries = max(self.entries, tensor.numel() if isinstance(tensor, Tensor) else 0)
        return result


@pytest.mark.parametrize("batch_shape", [(1,), (), (1, 1)], ids=str)
@pytest.mark.parametrize("training", [False, True])
def test_multi_head_attention_builds_no_square(batch_shape, training):
    module = MultiHeadAttention(6, 8, 512, 0.0, 2).train(training)
    x = vectors(*batch_shape, 512, 6).requires_grad_(training)
    with LargestTensor() as largest, torch.set_grad_enabled(training):
        contexts = module(x)
        if training:
            contexts.sum().backward()
    assert 512 * 8 <= largest.entries < 512 * 512


@every_kind
@pytest.mark.parametrize("training", [False, True])
def test_every_length_up_to_context_length(kind, training):
    module = made(kind).train(training)
    for num_tokens in range(1, 10):
        assert module(vectors(2, num_tokens, 6)).shape == (2, num_tokens, 8)
    for call, batch_shape in product((module, module.attention_weights), [(), (2,), (2, 3)]):
        message = message_of(ValueError, call, torch.zeros(*batch_shape, 10, 6))
        assert message.startswith("x ")
        assert "10" in message
        assert "context_length 9" in message


@every_kind
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies_are_independent(kind, copied):
    module, x = made(kind), vectors(2, 5, 6)
    before = module(x)
    twin = copied(module)
    assert torch.equal(twin(x), before)
    set_parameters(twin, weight=0, bias=0)
    assert torch.equal(module(x), before)
    assert not twin(x).any()


@every_kind
def test_kinds_of_numbers(kind):
    exact, x = made(kind, torch.float64), vectors(2, 9, 6, dtype=torch.float64)
    for dtype, tolerance in TOLERANCE.items():
        rounded = copy.deepcopy(exact).to(dtype)
        assert all(parameter.dtype == dtype for parameter in rounded.parameters())
        for of, by in ((rounded, exact), (rounded.attention_weights, exact.attention_weights)):
            close(of(x.to(dtype)).double(), by(x), tolerance)
        twice = rounded.double()
        close(twice(x), exact(x), tolerance)


@every_kind
def test_meta_device(kind):
    """Made there, or moved there with all it has."""
    with torch.device("meta"):
        made_there = kind.layer(**arguments(kind)).eval()
    for module, num_tokens in product([made_there, made(kind).to("meta")], [1, 9]):
        x = torch.zeros(2, num_tokens, 6, device="meta")
        assert module(x).shape == (2, num_tokens, 8)
        assert module(x).device.type == "meta"
        assert module.attention_weights(x).shape == (2, *[2] * kind.has_heads, num_tokens, num_tokens)


@every_kind
def test_weights_loaded_into_an_empty_layer(kind):
    """A large model is built without memory, then filled from a checkpoint: its mask must not be lost."""
    module, x = made(kind), vectors(2, 5, 6)
    with torch.device("meta"):
        empty = kind.layer(**arguments(kind)).eval()
    empty.load_state_dict(module.state_dict(), assign=True)
    assert torch.equal(empty(x), module(x))


@every_kind
def test_gradcheck(kind):
    module = made(kind, torch.float64, d_in=2, d_out=4, context_length=3)
    names, parameters = zip(*module.named_parameters())
    x = vectors(2, 3, 2, dtype=torch.float64).requires_grad_()

    def outputs(x, *parameters):
        return functional_call(module, dict(zip(names, parameters)), (x,))

    assert torch.autograd.gradcheck(outputs, (x, *parameters))
    assert torch.autograd.gradcheck(module.attention_weights, (x,))


# Heads: cut from each token's vector


def test_heads_are_cut_from_each_token():
    """By view alone, head 0 of token 1 would be [3, 4, 5]."""
    x = torch.arange(24.0).view(1, 4, 6)
    module = MultiHeadAttention(6, 6, 4, 0.0, 2)
    assert module.split_heads(x).shape == (1, 2, 4, 3)
    assert module.split_heads(x)[0, 0, 1].tolist() == [6, 7, 8]
    assert module.split_heads(x)[0, 1, 1].tolist() == [9, 10, 11]
    set_parameters(module, W_query_weight=0, W_value_weight=torch.eye(6), out_proj_weight=torch.eye(6), out_proj_bias=0)
    means = x.cumsum(dim=1) / torch.arange(1, 5)[:, None]  # with all scores 0; token 1 is [3…8]
    close(module(x), means)
    assert module(x)[0, 1].tolist() == [3, 4, 5, 6, 7, 8]


# One layer in several forms


def by_hand(p, x, num_heads):
    """Loop over texts, heads and tokens."""
    head_dim, texts = len(p["out_proj.weight"]) // num_heads, []
    for text in x:
        queries, keys, values = (
            text @ p[f"{name}.weight"].T + p[f"{name}.bias"] for name in ("W_query", "W_key", "W_value")
        )
        rows = []
        for t in range(len(text)):
            parts = []
            for start in range(0, num_heads * head_dim, head_dim):
                part = slice(start, start + head_dim)
                scores = torch.stack([queries[t, part] @ keys[j, part] / math.sqrt(head_dim) for j in range(t + 1)])
                shares = scores.exp() / scores.exp().sum()
                parts.append(sum(shares[j] * values[j, part] for j in range(t + 1)))
            rows.append(p["out_proj.weight"] @ torch.cat(parts) + p["out_proj.bias"])
        texts.append(torch.stack(rows))
    return torch.stack(texts)


def as_stacked(p, x, num_heads):
    module = StackedHeads(x.shape[-1], len(p["out_proj.weight"]), 9, 0.0, num_heads, qkv_bias=True)
    parts = {f"out_proj.{part}": p[f"out_proj.{part}"] for part in ("weight", "bias")}
    for name, part in product(("W_query", "W_key", "W_value"), ("weight", "bias")):
        for head, rows in enumerate(p[f"{name}.{part}"].chunk(num_heads)):
            parts[f"heads.{head}.{name}.{part}"] = rows
    return functional_call(module, parts, (x,))


def as_multi_head(p, x, num_heads):
    module = MultiHeadAttention(x.shape[-1], len(p["out_proj.weight"]), 9, 0.0, num_heads, qkv_bias=True)
    return functional_call(module, p, (x,), strict=True)


def joined(p, part):
    return torch.cat([p[f"{name}.{part}"] for name in ("W_query", "W_key", "W_value")])


def as_fused(p, x, num_heads):
    """One matrix for queries, keys and values; the weights written out."""
    fused = x @ joined(p, "weight").T + joined(p, "bias")
    queries, keys, values = fused.unflatten(-1, (3, num_heads, -1)).permute(2, 0, 3, 1, 4)
    scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys) / queries.shape[-1] ** 0.5
    scores = scores + torch.full(scores.shape[-2:], -math.inf, dtype=x.dtype).triu(diagonal=1)
    contexts = torch.einsum("bhqk,bhkd->bqhd", scores.softmax(dim=-1), values).flatten(start_dim=-2)
    return F.linear(contexts, p["out_proj.weight"], p["out_proj.bias"])


def as_raw_sdpa(p, x, num_heads):
    """A mask by hand: True = may look."""
    parts = (F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"]) for name in ("W_query", "W_key", "W_value"))
    parts = (torch.stack(part.chunk(num_heads, dim=-1), dim=1) for part in parts)
    may_look = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    heads = F.scaled_dot_product_attention(*parts, attn_mask=may_look)
    return F.linear(torch.cat(heads.unbind(dim=1), dim=-1), p["out_proj.weight"], p["out_proj.bias"])


def as_torchs(p, x, num_heads, need_weights=False):
    """Its mask: True = hidden."""
    module = nn.MultiheadAttention(x.shape[-1], num_heads, batch_first=True, dtype=x.dtype)
    renamed = {f"out_proj.{part}": p[f"out_proj.{part}"] for part in ("weight", "bias")}
    renamed |= {f"in_proj_{part}": joined(p, part) for part in ("weight", "bias")}
    hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(diagonal=1)
    options = {"attn_mask": hidden, "need_weights": need_weights, "average_attn_weights": False}
    return functional_call(module, renamed, (x, x, x), options, strict=True)[0]


@pytest.mark.parametrize("num_tokens", [1, 2, 9])
@pytest.mark.parametrize("num_heads", [1, 2, 4])
@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=str)
@pytest.mark.parametrize("d_in", [8, 5])
def test_all_forms_are_one_layer(num_tokens, num_heads, qkv_bias, dtype, tolerance, d_in):
    module = made(Kind(MultiHeadAttention, True), dtype, d_in=d_in, num_heads=num_heads)
    if not qkv_bias:
        set_parameters(module, W_query_bias=0, W_key_bias=0, W_value_bias=0)
    p = dict(module.named_parameters())
    x = vectors(2, num_tokens, d_in, dtype=dtype).requires_grad_()
    direction = vectors(2, num_tokens, 8, dtype=dtype, seed=1)
    expected = by_hand(p, x, num_heads)
    gradients = torch.autograd.grad((expected * direction).sum(), [x, *p.values()])
    close(module(x), expected, tolerance)
    forms = [as_stacked, as_multi_head, as_fused, as_raw_sdpa]
    for form in forms + ([as_torchs, partial(as_torchs, need_weights=True)] if d_in == 8 else []):
        actual = form(p, x, num_heads)
        close(actual, expected, tolerance)
        found = torch.autograd.grad((actual * direction).sum(), [x, *p.values()])
        for name, one, another in zip(["x", *p], found, gradients):
            torch.testing.assert_close(one, another, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}")


def test_masks_say_opposite_things_in_torch():
    """Zero scores: rows [1], [1/2, 1/2] …; the inverted mask hides all from the last token, and nothing warns."""
    may_look = torch.ones(4, 4, dtype=torch.bool).tril()
    means = may_look / torch.arange(1, 5)[:, None]
    one_hot, zeros = torch.eye(4), torch.zeros(4, 4)
    close(F.scaled_dot_product_attention(zeros, zeros, one_hot, attn_mask=may_look), means)
    close(F.scaled_dot_product_attention(zeros, zeros, one_hot, is_causal=True), means)
    inverted = F.scaled_dot_product_attention(zeros, zeros, one_hot, attn_mask=~may_look)
    close(inverted[0], torch.tensor([0, 1 / 3, 1 / 3, 1 / 3]))
    assert inverted[3].tolist() == [0, 0, 0, 0]
    diagonal_hidden = F.scaled_dot_product_attention(zeros, zeros, one_hot, attn_mask=may_look.tril(diagonal=-1))
    assert diagonal_hidden[0].tolist() == [0, 0, 0, 0]

    torchs = nn.MultiheadAttention(4, 1, bias=False).eval()
    set_parameters(torchs, in_proj_weight=torch.cat([zeros, zeros, one_hot]), out_proj_weight=one_hot)
    x = one_hot[:, None].requires_grad_()  # (num_tokens, batch_size, emb_dim)
    for need_weights in (True, False):
        close(torchs(x, x, x, attn_mask=~may_look, need_weights=need_weights)[0][:, 0], means)
    inverted, weights = torchs(x, x, x, attn_mask=may_look)
    close(inverted[0, 0], torch.tensor([0, 1 / 3, 1 / 3, 1 / 3]))
    assert inverted[3].isnan().all()
    assert weights[0, 3].isnan().all()
    assert not torchs(x, x, x, attn_mask=may_look, need_weights=False)[0][3].any()


# torch.compile and torch.export


def can_compile():
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return sys.platform == "linux" and shutil.which("g++") is not None and header.exists()


# On its way to the compiler torch imports a module of its own that uses what torch deprecates.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled(backend):
    if backend == "inductor" and not can_compile():
        pytest.skip("needs Linux, g++ and Python's headers")
    module = made(Kind(MultiHeadAttention, False)).requires_grad_(backend == "aot_eager")  # to save half a minute
    torch.compiler.reset()
    compiled = torch.compile(module, backend=backend, fullgraph=True, dynamic=True)
    for num_tokens in (9, 5):
        x = vectors(2, num_tokens, 6)
        close(compiled(x), module(x))
        if backend == "aot_eager":
            found, expected = (torch.autograd.grad(call(x).sum(), module.parameters()) for call in (compiled, module))
            close(found, expected, 1e-5)
    torch.compiler.reset()


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_exported(qkv_bias):
    module = made(Kind(MultiHeadAttention, qkv_bias))
    sizes = {0: torch.export.Dim("batch_size"), 1: torch.export.Dim("num_tokens", min=1, max=9)}
    program = torch.export.export(module, (vectors(2, 9, 6),), dynamic_shapes={"x": sizes})
    file = BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for exported in (program.module(), torch.export.load(file).module()):
        for batch_size, num_tokens in [(2, 9), (2, 5), (3, 2), (1, 1)]:
            x = vectors(batch_size, num_tokens, 6)
            close(exported(x), module(x))
        assert_no_leak(exported, vectors(2, 6, 6), range(5))


# Bad input


def message_of(error, call, *args, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.has_heads], ids=name_of)
@pytest.mark.parametrize(("d_out", "num_heads"), [(8, 3), (3, 2), (4, 5), (768, 13)])
def test_heads_divide_d_out(kind, d_out, num_heads):
    message = message_of(ValueError, kind.layer, **arguments(kind, d_out=d_out, num_heads=num_heads))
    assert f"d_out {d_out}" in message
    assert f"num_heads {num_heads}" in message


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in KINDS[::2] for name in arguments(kind) if name not in ("dropout", "qkv_bias")],
    ids=lambda part: part if isinstance(part, str) else name_of(part),
)
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-2, ValueError), (2.0, TypeError), ("2", TypeError), (None, TypeError), (True, TypeError)],
    ids=repr,
)
def test_sizes_are_positive_integers(kind, name, value, error):
    message = message_of(error, kind.layer, **arguments(kind, **{name: value}))
    assert message.startswith(name)
    assert repr(value) in message


@every_kind
@pytest.mark.parametrize("dropout", [-0.1, 1.1, math.nan, math.inf, 10, "0.1", None, True], ids=repr)
def test_dropout_is_a_share(kind, dropout):
    message = message_of((ValueError, TypeError), kind.layer, **arguments(kind, dropout=dropout))
    assert message.startswith("dropout ")
    assert str(dropout) in message


@every_kind
@pytest.mark.parametrize(
    ("x", "said"),
    [
        (torch.zeros(2, 5, 7), ["6", "7"]),
        (torch.zeros(5, 1), ["6", "1"]),
        (torch.zeros(2, 0, 6), ["num_tokens", "(2, 0, 6)"]),
        (torch.zeros(6), ["num_tokens", "(6,)"]),
        (torch.ones(2, 5, 6, dtype=torch.int64), ["int64"]),
        ([[0.5] * 6], ["list"]),
        (None, ["None"]),
    ],
    ids=["d_in", "d_in of 1", "no tokens", "no token axis", "IDs", "list", "None"],
)
def test_input_is_checked(kind, x, said):
    module = made(kind)
    for call in (module, module.attention_weights):
        message = message_of((TypeError, ValueError), call, x)
        assert message.startswith("x ")
        assert all(part in message for part in said), message
