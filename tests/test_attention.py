"""utils.attention against its contract: known values, what holds for any shape and dtype, and bad input.

The five layers share their tests: what holds for all comes first, then what holds for causal attention, for
dropout and for heads.
"""

import copy
import math
import re
from io import BytesIO
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from states import random_states
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from utils.attention import CausalAttention, MultiHeadAttention, SelfAttention, StackedHeads, simple_attention
from utils.cache import KeyValueCache

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
any_layer = st.fixed_dictionaries(
    {
        "d_in": st.integers(1, 8),
        "d_out": st.sampled_from([4, 8, 12]),
        "num_heads": st.sampled_from([1, 2, 4]),
        "qkv_bias": st.booleans(),
        "seed": st.integers(0, 999),
        "dtype": st.sampled_from(list(TOLERANCE)),
    }
)


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


def projected(module, x, num_heads):
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


def by_torch(module, x, num_heads):
    scale, is_causal = 1.0 if isinstance(module, Simple) else None, type(module) in CAUSAL
    heads = F.scaled_dot_product_attention(*projected(module, x, num_heads), is_causal=is_causal, scale=scale)
    return joined(module, heads)


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
    context_vectors, attn_weights = simple_attention(x)
    expected = [
        [0.4421, 0.5931, 0.5790],
        [0.4419, 0.6515, 0.5683],
        [0.4431, 0.6496, 0.5671],
        [0.4304, 0.6298, 0.5510],
        [0.4671, 0.5910, 0.5266],
        [0.4177, 0.6503, 0.5645],
    ]
    close(context_vectors, torch.tensor(expected), 6e-5)
    close(attn_weights[1], torch.tensor([0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581]), 5e-5)
    assert attn_weights.argmax(dim=-1).tolist() == [0, 1, 1, 1, 2, 1], "a longer neighbour can win"
    x[1] = x[0]  # a duplicate cannot be told from its twin
    expected = [
        [0.4181, 0.4459, 0.6276],
        [0.4181, 0.4459, 0.6276],
        [0.4130, 0.5147, 0.5924],
        [0.4038, 0.5031, 0.5789],
        [0.4442, 0.4635, 0.5573],
        [0.3882, 0.5229, 0.5909],
    ]
    close(simple_attention(x)[0], torch.tensor(expected), 6e-5)


def test_one_word_in_two_contexts():
    """The fractions of pets, wildlife and sports in the context vector of "horse"."""
    cat, horse, ticket, race, other = [2.0, 0.1, 0.0], [1.2, 0.8, 2.0], [0.2, 0.1, 2.4], [0.1, 0.2, 3.0], [0.1] * 3
    for text, expected in (
        [[ticket, other, horse, race], [0.15, 0.12, 0.73]],
        [[cat, other, horse], [0.31, 0.20, 0.49]],
    ):
        context = simple_attention(torch.tensor(text))[0][2]
        close(context / context.sum(), torch.tensor(expected), 5e-3)


def test_what_simple_attention_cannot_do():
    """Inputs in another order, a duplicate, scores, and which token wins where all vectors have length 1."""
    x, order = vectors(6, 3), torch.tensor([3, 0, 5, 1, 4, 2])
    contexts, weights = simple_attention(x)
    close(simple_attention(x[order])[0], contexts[order])
    scores = weights.log()  # up to one number per row
    scores -= scores[:, :1] - (x @ x[0])[:, None]
    close(scores, scores.T)
    assert simple_attention(F.normalize(x, dim=-1))[1].argmax(dim=-1).tolist() == [0, 1, 2, 3, 4, 5]
    batch = torch.stack([x, x.flip(0)])
    close(simple_attention(batch)[0], torch.stack([contexts, contexts.flip(0)]))
    twins, positions = x[[0, 1, 0]], 0.3 * torch.eye(3)
    close(simple_attention(twins)[0][0], simple_attention(twins)[0][2])
    with_positions = simple_attention(twins + positions)[0]
    assert (with_positions[0] - with_positions[2]).abs().max() > 0.01


@each(LEARNED)
def test_scores_are_divided_by_the_square_root_of_head_dim(layer):
    """Query [1, 1], keys [0, 0] and [1, 1]: head_dim is 2, d_in is 4."""
    module = made(layer, d_in=4, d_out=4 if layer in WITH_HEADS else 2, qkv_bias=False)
    one_hot = torch.eye(4)
    set_parameters(module, W_query_weight=one_hot[0], W_key_weight=one_hot[0])
    weights = module.attention_weights(one_hot[[1, 0]])[..., 1, :]
    torch.testing.assert_close(weights, torch.tensor([0.19557, 0.80443]).expand(weights.shape), atol=5e-6, rtol=0)


@each(CAUSAL)
def test_equal_scores_give_equal_shares_of_what_is_visible(layer):
    """The inverted mask would give row 0 = [0, 1/3, 1/3, 1/3]."""
    module = set_parameters(made(layer), W_query_weight=0, W_query_bias=0)
    rows = torch.tensor([[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4] * 4])
    close(module.attention_weights(vectors(4, 6)), rows.expand(*heads_axis(layer), 4, 4))


# What holds for every layer, shape and dtype


@each(EVERY)
@examples(25)
@given(any_layer, any_shape)
def test_weights_context_vectors_and_gradients_are_those_of_torch(layer, options, shape):
    module, x = layer_and_vectors(layer, options, shape)
    before = x.clone()
    weights, contexts = module.attention_weights(x.requires_grad_()), module(x)
    assert torch.equal(x, before), "the caller's tensor is left as it was"
    num_heads, (*batch_shape, num_tokens) = options["num_heads"], shape
    assert weights.shape == (*batch_shape, *heads_axis(layer, num_heads), num_tokens, num_tokens)
    assert contexts.shape == (*shape, options["d_in" if layer is Simple else "d_out"])
    assert weights.dtype == contexts.dtype == x.dtype
    close(weights.double().sum(dim=-1), torch.ones(weights.shape[:-1], dtype=torch.float64), TOLERANCE[x.dtype])
    assert layer not in CAUSAL or not weights.triu(diagonal=1).any()
    assert torch.equal(module.train().attention_weights(x), weights), "before dropout"
    by_head = weights if layer in WITH_HEADS else weights.unsqueeze(-3)
    shown = joined(module, by_head @ projected(module, x, num_heads)[2])
    expected = by_torch(module, x, num_heads)
    sources, gradients = [x, *module.parameters()], []
    for found in (contexts, shown, expected):
        close(found, expected)
        gradients.append(torch.autograd.grad((found**3).sum(), sources))
    for ours, of_shown, theirs in zip(*gradients):
        assert ours.isfinite().all()
        if x.dtype == torch.float64:  # the others round too much away
            close(ours, theirs)
            close(of_shown, theirs)


@each(EVERY)
@examples(10)
@given(any_layer, any_shape, st.floats(1, 1e4, width=32))
def test_large_inputs_give_finite_results(layer, options, shape, size):
    module, x = layer_and_vectors(layer, options | {"dtype": torch.float32}, shape)
    for large in (size * x.sign(), size * x.clamp(-1, 1)):
        weights, contexts = module.attention_weights(large), module(large.requires_grad_())
        assert contexts.isfinite().all()
        close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
        (contexts / size).sum().backward()
        assert large.grad.isfinite().all()


@each(EVERY)
@examples(12)
@given(any_layer, any_length, st.integers(0, 2), st.sampled_from([-3, math.nan]), st.booleans())
def test_batch_items_never_mix(layer, options, num_tokens, item, factor, training):
    """One item is changed, to NaN even: the others stay bit for bit, because the same shape takes the same route."""
    module, x = layer_and_vectors(layer, options, (3, num_tokens))
    changed, others = x.clone(), [other for other in range(3) if other != item]
    changed[item] *= factor
    module.train(training)
    assert torch.equal(seeded(module, changed)[others], seeded(module, x)[others])
    assert torch.equal(module.attention_weights(changed)[others], module.attention_weights(x)[others])


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
        close(torch.stack([torch.stack([call(text) for text in row]) for row in x]), every)
        close(torch.vmap(call)(x), every)
        assert call(x[:, :0]).shape == (2, 0, *every.shape[2:])


# As modules among modules


@each(LEARNED)
def test_state_dict_holds_linear_layers_alone(layer):
    required = {name: value for name, value in arguments(layer).items() if name != "qkv_bias"}
    module, twin, x = layer(**required), layer(**required), vectors(2, 5, 6)
    assert not torch.equal(module(x), twin(x)), "each starts with random numbers of its own"
    linear = {f"{name}.weight" for name, part in module.named_modules() if isinstance(part, nn.Linear)}
    assert module.state_dict().keys() == linear | ({"out_proj.bias"} if layer in WITH_HEADS else set())
    assert not list(module.buffers()), "no mask is kept"


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
    loaded = made(layer, seed=1, context_length=5)
    assert not torch.equal(loaded(x), module(x))
    loaded.load_state_dict(module.state_dict())
    for twin in (empty, loaded, copy.deepcopy(module)):
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
@pytest.mark.parametrize("own_score", [-2e4, -1e30])
def test_no_score_beats_the_mask(layer, own_score):
    """Token 0 has this score for itself, and 5 for the hidden token 1: a finite fill may be beaten."""
    size = (-own_score) ** 0.5
    module = set_parameters(made(layer, num_heads=1, d_in=1, d_out=1), bias=0, weight=1)
    set_parameters(module, W_query_weight=-1)
    x = torch.tensor([[size], [-5 / size]])
    assert module.attention_weights(x)[..., 0, :].flatten().tolist() == [1, 0]
    assert torch.equal(module(x)[0], x[0])


# Dropout


@each(EVERY)
def test_only_dropout_in_training_is_random(layer):
    state = random_states()
    module, x = made(layer), vectors(2, 9, 6)
    calm = module(x)
    module.train().attention_weights(x)
    assert torch.equal(made(layer, dropout=0).train()(x), calm)
    assert layer in CAUSAL or torch.equal(module(x), calm)
    assert random_states() == state
    if layer in CAUSAL:
        first, other, again = (seeded(module, x, seed=seed) for seed in (7, 8, 7))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert not torch.equal(first, calm)
    assert torch.equal(module.eval()(x), calm)


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
    """Tokens and values are one-hot, so that the context vectors are the weights that `forward` used."""
    num_heads = 2 if layer in WITH_HEADS else 1
    module, x = made(layer, dropout=dropout, d_out=6 * num_heads), torch.eye(6).expand(500, 6, 6)
    values = torch.eye(6) if layer is StackedHeads else torch.eye(6).repeat(num_heads, 1)
    set_parameters(module, W_value_weight=values, W_value_bias=0, out_proj_weight=torch.eye(12), out_proj_bias=0)
    weights = module.attention_weights(x).view(500, num_heads, 6, 6)
    module.train()
    used = seeded(module, x).unflatten(-1, (num_heads, 6)).transpose(1, 2)
    visible = torch.ones(6, 6, dtype=torch.bool).tril()
    assert not used[..., ~visible].any(), "masked weights stay 0"
    factors = (used / weights)[..., visible]  # (500, num_heads, 21)
    kept = factors != 0
    close(factors, kept / (1 - dropout))
    spread = (dropout / (1 - dropout) / 500) ** 0.5
    close(factors.mean(dim=0), torch.ones(num_heads, 21), 5.5 * spread)
    assert len(kept.flatten(end_dim=1)[:40].unique(dim=0)) > 30, "each text and each head has a mask of its own"
    # Each value is now [1, 1, …], so that a context vector repeats the sum of its row.
    set_parameters(module, W_value_weight=1)
    sums = used.sum(dim=-1, keepdim=True).expand(500, num_heads, 6, 6)
    close(seeded(module, x).unflatten(-1, (num_heads, 6)).transpose(1, 2), sums)


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


@pytest.mark.parametrize("num_heads", [1, 8])
def test_tokens_after_those_in_a_cache(num_heads):
    module, cache, x = made(MultiHeadAttention, num_heads=num_heads), KeyValueCache(), vectors(9, 6)
    first = module(x[:4], cache.layer(0))
    cache.num_tokens = 4
    close(torch.cat([first, module(x[4:], cache.layer(0))]), module(x))
    with pytest.raises(ValueError, match="x has 6 tokens and the cache 4, more than context_length 9"):
        module(vectors(6, 6), cache.layer(0))


def as_stacked(multi_head):
    state = multi_head.state_dict()
    for name, part in product(PROJECTIONS, ("weight", "bias")):
        for head, rows in enumerate(state.pop(f"{name}.{part}").chunk(2)):
            state[f"heads.{head}.{name}.{part}"] = rows
    module = made(StackedHeads, torch.float64, d_in=8)
    module.load_state_dict(state)
    return module


def as_torchs(multi_head):
    """Torch's module takes the opposite mask: True means hidden."""
    state = multi_head.state_dict()
    for part in ("weight", "bias"):
        state[f"in_proj_{part}"] = torch.cat([state.pop(f"{name}.{part}") for name in PROJECTIONS])
    module = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    module.load_state_dict(state)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(diagonal=1)
    return lambda x: module(x, x, x, attn_mask=hidden, need_weights=False)[0]


@pytest.mark.parametrize("form", [as_stacked, as_torchs])
def test_all_forms_are_one_layer(form):
    module, x = made(MultiHeadAttention, torch.float64, d_in=8), vectors(2, 5, 8, dtype=torch.float64).requires_grad_()
    found, expected = form(module)(x), module(x)
    close(found, expected)
    for gradients in zip(*(torch.autograd.grad((contexts**3).sum(), x) for contexts in (found, expected))):
        close(*gradients)


# torch.export


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


NO_TOKENS, WRONG_WIDTHS = [(0, 6), (2, 0, 6), (6,), ()], [(9, 1), (9, 5), (2, 1, 9, 7)]
wrong_shapes = [*product(EVERY, NO_TOKENS), *product(LEARNED, WRONG_WIDTHS)]


@pytest.mark.parametrize(("layer", "shape"), wrong_shapes, ids=lambda part: getattr(part, "__name__", str(part)))
def test_a_wrong_shape_is_named_with_the_right_one(layer, shape):
    module, (name, d_in) = made(layer), ("inputs", "d_in") if layer is Simple else ("x", 6)
    said = f"{name} must have shape (…, num_tokens, {d_in}) with a token or more, not {shape}"
    for call in (module, module.attention_weights):
        with pytest.raises(ValueError, match=re.escape(said)):
            call(torch.zeros(shape))


@each(EVERY)
@pytest.mark.parametrize(
    ("x", "kind"),
    [
        ([[0.5] * 6], "list"),
        (np.zeros((2, 6), dtype=np.float32), "ndarray"),
        (torch.ones(2, 6, dtype=torch.int64), "torch.int64"),  # IDs, say, which have not been embedded
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_vectors_must_be_a_floating_point_tensor(layer, x, kind):
    module, name = made(layer), "inputs" if layer is Simple else "x"
    for call in (module, module.attention_weights):
        with pytest.raises(TypeError, match=f"{name} must be a tensor of floating-point numbers, not {kind}"):
            call(x)


@each(CAUSAL)
@pytest.mark.parametrize("batch_shape", [(), (2,), (2, 3)], ids=str)
def test_a_text_too_long_is_named_with_its_limit(layer, batch_shape):
    for context_length in (1, 9):
        module = made(layer, context_length=context_length)
        for call in (module, module.attention_weights):
            call(torch.zeros(*batch_shape, context_length, 6))
            said = f"x has {context_length + 1} tokens, more than context_length {context_length}"
            with pytest.raises(ValueError, match=said):
                call(torch.zeros(*batch_shape, context_length + 1, 6))


WRONG = {name: [(0, ValueError), (2.0, TypeError)] for name in ("d_in", "d_out", "context_length", "num_heads")} | {
    "dropout": [(-0.1, ValueError), (1.1, ValueError), (math.nan, ValueError), ("0.1", TypeError)],
    "qkv_bias": [("False", TypeError), (1, TypeError)],
}


@each(LEARNED)
def test_a_wrong_argument_is_named_with_its_value(layer):
    for name in ACCEPTED[layer]:
        for value, error in WRONG[name]:
            with pytest.raises(error, match=f"{name} .*{value!r}"):
                made(layer, **{name: value})


@each(LEARNED)
def test_sizes_may_be_integers_of_any_library(layer):
    """Small ones must not overflow: 3 · 200 is not a uint8."""
    size = np.uint8(200)
    sizes = {"d_in": size, "d_out": size, "context_length": torch.tensor(200), "num_heads": np.int8(2)}
    module = made(layer, dropout=np.float32(0.5), **sizes)
    plain = made(layer, **{name: int(size) for name, size in sizes.items()})
    assert torch.equal(module(vectors(2, 200, 200)), plain(vectors(2, 200, 200)))


@each(WITH_HEADS)
def test_heads_must_divide_d_out(layer):
    with pytest.raises(ValueError, match=r"d_out 3 .*num_heads 2"):
        made(layer, d_out=3, num_heads=2)
