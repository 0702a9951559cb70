"""utils.gpt against its contract: sizes, initialisation, tied weights, the block, and a future that does not leak."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import SMALL, model_of, some_ids
from torch import nn

from utils.gpt import GPT_CONFIG_124M, FeedForward, GPTConfig, GPTModel, TransformerBlock

moderate = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
SIZES = ["vocab_size", "context_length", "emb_dim", "n_heads", "n_layers"]
TABLE, HEAD = "embedding.token_embedding.weight", "out_head.weight"


def small(**changes):
    return dataclasses.replace(SMALL, **changes)


def block_of(**changes):
    return model_of(**changes).blocks[0]


def some_vectors(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def silence(*layers):
    with torch.no_grad():
        for parameter in nn.ModuleList(layers).parameters():
            parameter.zero_()


# The configuration


def test_gpt2_small_has_its_published_sizes():
    config = GPTConfig(**GPT_CONFIG_124M)
    assert dataclasses.astuple(config) == (50257, 1024, 768, 12, 12, 0.1, False, True)


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.n_layers = 3


wrong_values = [({name: value}, error) for name in SIZES for value, error in ((0, ValueError), (2.0, TypeError))]
wrong_values += [({"drop_rate": 1.1}, ValueError), ({"drop_rate": "0.1"}, TypeError)]
wrong_values += [({"qkv_bias": None}, TypeError), ({"tie_weights": 1}, TypeError)]
wrong_values += [({"emb_dim": 12, "n_heads": 5}, ValueError)]


@pytest.mark.parametrize(("values", "error"), wrong_values, ids=str)
def test_a_wrong_value_is_named(values, error):
    said = ".* ".join(f"{name} .*{value}" for name, value in values.items())
    with pytest.raises(error, match=said):
        small(**values)


def test_sizes_may_be_numbers_of_numpy():
    sizes = {"n_layers": np.int64(3), "emb_dim": np.uint8(66), "n_heads": torch.tensor(3), "drop_rate": np.float32(0.5)}
    config = small(**sizes, qkv_bias=np.True_)
    assert [type(value) for value in vars(config).values()] == [int] * 5 + [float, bool, bool]
    model = GPTModel(config)
    assert model.blocks[0].feed_forward.widen.out_features == 264  # 4 · 66, which np.uint8 does not hold


def test_a_model_is_not_made_from_a_dict():
    with pytest.raises(TypeError, match=r"GPTConfig, not dict"):
        GPTModel(GPT_CONFIG_124M)


# How many parameters


@pytest.mark.parametrize(
    ("changes", "parameters"),
    [({}, 124_412_160), ({"tie_weights": False}, 163_009_536), ({"qkv_bias": True}, 124_439_808)],
    ids=str,
)
def test_gpt2_small_has_as_many_parameters_as_published(changes, parameters):
    with torch.device("meta"):
        model = GPTModel(GPTConfig(**{**GPT_CONFIG_124M, **changes}))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert not list(model.buffers()), "no mask is kept"


# A fresh model


def test_weights_are_drawn_as_gpt2s_and_smaller_where_they_write_into_the_sum():
    torch.manual_seed(0)
    model = GPTModel(small(vocab_size=500, context_length=400, emb_dim=192, n_layers=3, tie_weights=False))
    residual = {f"blocks.{n}.{part}" for n in range(3) for part in ("attention.out_proj", "feed_forward.narrow")}
    for name, parameter in model.named_parameters():
        layer, kind = name.rsplit(".", 1)
        if kind == "bias":
            assert torch.equal(parameter, torch.zeros_like(parameter)), name
        elif "norm" in layer:
            assert torch.equal(parameter, torch.ones_like(parameter)), name
        else:
            deviation = 0.0081650 if layer in residual else 0.02  # 0.02 / √(2 · 3)
            assert parameter.std().item() == pytest.approx(deviation, rel=0.03), name
            assert abs(parameter.mean().item()) < deviation / 30, name
            # 4.55 % of a normal distribution is beyond two deviations, and nothing of a uniform one.
            assert (parameter.abs() > 2 * deviation).double().mean().item() == pytest.approx(0.0455, abs=0.01), name


def test_a_fresh_models_loss_is_the_logarithm_of_the_vocabulary():
    torch.manual_seed(0)
    model = GPTModel(GPTConfig(**{**GPT_CONFIG_124M, "n_layers": 1})).eval()
    ids, targets = some_ids(2, 2, 130, vocab_size=50257)
    with torch.no_grad():
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).item()
    assert loss == pytest.approx(10.82, abs=0.3)


# Tied weights


def loaded(model):
    other = model_of(seed=9)
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize("treated", [loaded, copy.deepcopy, lambda model: model.bfloat16()])
def test_tied_is_the_same_tensor(treated):
    model = treated(model_of())
    assert model.out_head.weight is model.embedding.token_embedding.weight


@pytest.mark.parametrize("tie_weights", [True, False])
def test_a_training_step_changes_tied_tables_together(tie_weights):
    model = model_of(tie_weights=tie_weights).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.state_dict()[TABLE].clone()
    F.cross_entropy(model(some_ids(2, 5)).flatten(0, 1), some_ids(10)).backward()
    optimizer.step()
    after = model.state_dict()
    assert not torch.equal(after[TABLE], before)
    assert torch.equal(after[TABLE], after[HEAD]) == tie_weights


# What comes out, and what may go in


@pytest.mark.parametrize("shape", [(2, 4), (1, 1), (3, 8)], ids=str)
def test_one_score_for_each_token_of_the_vocabulary_at_each_position(shape):
    model, ids = model_of(), some_ids(*shape)
    logits = model(ids)
    assert logits.shape == (*shape, 29)
    assert logits.requires_grad
    torch.testing.assert_close(model(ids, last_only=True), logits[:, -1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        (torch.tensor([[1, 2], [3, 29]]), ValueError, r"\[1, 1\] is 29.*0\.\.28"),
        (torch.zeros(1, 13, dtype=torch.int64), ValueError, r"13 tokens.*12"),
        (torch.zeros(3, dtype=torch.int64), ValueError, r"\(batch_size, num_tokens\), not \(3,\)"),
        (torch.zeros(1, 2, 3, dtype=torch.int64), ValueError, r"\(batch_size, num_tokens\), not \(1, 2, 3\)"),
        ([[1, 2]], TypeError, "list"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_wrong_ids_are_named(ids, error, said):
    with pytest.raises(error, match=said):
        model_of()(ids)


# The block


def test_layer_norm_divides_by_the_biased_deviation():
    block = TransformerBlock(small(emb_dim=4, n_heads=1))
    for norm in (block.norm1, block.norm2, GPTModel(small(emb_dim=4, n_heads=1)).final_norm):
        normed = norm(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        torch.testing.assert_close(normed, torch.tensor([-1.34164, -0.44721, 0.44721, 1.34164]), rtol=0, atol=1e-4)


def test_feed_forward_is_four_times_as_wide_with_the_tanh_form_of_gelu():
    feed_forward = FeedForward(1)
    silence(feed_forward)
    feed_forward.widen.weight.data.fill_(1.0)
    feed_forward.narrow.weight.data.fill_(0.25)
    assert feed_forward(torch.ones(1, 1)).item() == pytest.approx(0.841192, abs=2e-6)


def test_zeroed_sub_layers_leave_the_identity():
    block = block_of()
    silence(block.attention.out_proj, block.feed_forward.narrow)
    x = some_vectors(2, 5, 12)
    assert torch.equal(block(x), x)


def test_both_sub_layers_read_normed_vectors_and_are_added_to_what_came_in():
    block, x = block_of(), 7 + 5 * some_vectors(2, 5, 12)
    attended = x + block.attention(block.norm1(x))
    torch.testing.assert_close(block(x), attended + block.feed_forward(block.norm2(attended)))


@pytest.mark.parametrize("silent", ["attention.out_proj", "feed_forward.narrow"])
def test_training_drops_from_both_sub_layers_and_eval_does_not(silent):
    block = block_of(drop_rate=0.5)
    silence(block.get_submodule(silent))
    x = some_vectors(40, 8, 12)
    assert torch.equal(block(x), block(x))
    assert ((block(x) - x) == 0).sum() == 0
    dropped = block.train()(x) - x
    assert (dropped == 0).double().mean().item() == pytest.approx(0.5, abs=0.05)


def test_training_drops_from_the_embeddings_and_eval_does_not():
    model, ids = model_of(drop_rate=0.5), some_ids(40, 8)
    assert torch.equal(model(ids), model(ids))
    assert (model.train().embedding(ids) == 0).double().mean().item() == pytest.approx(0.5, abs=0.05)


# The future does not leak


@moderate
@given(
    st.sampled_from([torch.float32, torch.float64]),
    st.sampled_from([(1, 1, 1), (2, 4, 1), (3, 12, 3), (2, 32, 2)]),
    st.booleans(),
    st.integers(2, 8),
    st.integers(0, 99),
    st.data(),
)
def test_later_tokens_change_nothing_before_them(dtype, sizes, training, num_tokens, seed, data):
    n_layers, emb_dim, n_heads = sizes
    model = model_of(seed, dtype, n_layers=n_layers, emb_dim=emb_dim, n_heads=n_heads, drop_rate=0.0).train(training)
    first_changed = data.draw(st.integers(1, num_tokens - 1))
    ids = some_ids(2, num_tokens, seed=seed)
    changed = ids.clone()
    changed[:, first_changed:] = (ids[:, first_changed:] + 1 + some_ids(1, seed=seed, vocab_size=28)) % 29
    with torch.no_grad():
        before, after = model(ids), model(changed)
        assert torch.equal(before[:, :first_changed], after[:, :first_changed])
        # emb_dim 1: a normed vector of one entry is its bias, whatever the token.
        assert emb_dim == 1 or not torch.equal(before[:, first_changed:], after[:, first_changed:])
        prefix = model(ids[:, :first_changed])
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12}[dtype] * max(1.0, before.abs().max().item())
    torch.testing.assert_close(prefix, before[:, :first_changed], rtol=0, atol=tolerance)


def test_texts_of_a_batch_do_not_mix():
    model, ids = model_of(), some_ids(3, 6)
    changed = ids.clone()
    changed[1] = (ids[1] + 1) % 29
    logits, after = model(ids), model(changed)
    assert torch.equal(logits[[0, 2]], after[[0, 2]])
    assert not torch.equal(logits[1], after[1])
    one_by_one = torch.cat([model(text[None]) for text in ids])
    torch.testing.assert_close(logits, one_by_one, rtol=0, atol=1e-12)
