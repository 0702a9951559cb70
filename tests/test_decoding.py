"""How a GPT writes: generate, its draws, what it leaves as it found it, and the keys and values it keeps."""

import inspect
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from utils.attention import MultiHeadAttention
from utils.cache import KeyValueCache
from utils.embeddings import TokenAndPositionEmbedding
from utils.gpt import GPTConfig, GPTModel, evaluating, generate

moderate = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
VOCAB_SIZE, CONTEXT_LENGTH = 29, 12
# What a model of `says` gives: five tokens with shares .4, .3, .15, .1 and .05.
SHARES = [0.1, 0.4, 0.05, 0.3, 0.15]


def model_of(seed=0, dtype=torch.float64, context_length=CONTEXT_LENGTH, **changes):
    sizes = {"vocab_size": VOCAB_SIZE, "emb_dim": 16, "n_heads": 4, "n_layers": 2, "drop_rate": 0.5, "qkv_bias": True}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPTModel(GPTConfig(**{**sizes, "context_length": context_length, **changes}))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += torch.randn_like(parameter) / 2
    return model.to(dtype).eval()


def says(logits, dtype=torch.float64):
    """Return a model whose logits are the given ones, whatever it reads."""
    model = model_of(dtype=dtype, vocab_size=len(logits), tie_weights=False)
    with torch.no_grad():
        model.final_norm.weight.zero_()
        model.final_norm.bias.zero_()[0] = 1.0
        model.out_head.weight.zero_()[:, 0] = torch.tensor(logits, dtype=dtype)
    return model


def some_ids(*shape, seed=0):
    return torch.randint(VOCAB_SIZE, shape, generator=torch.Generator().manual_seed(seed))


def greedy_by_hand(model, ids, max_new_tokens, context_length=CONTEXT_LENGTH):
    """Return what a loop gives that keeps nothing and reads the last context_length tokens anew each time."""
    for _ in range(max_new_tokens):
        logits = model(ids[:, -context_length:])[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    return ids


def draws(model, number=4000, seed=0, **options):
    """Return how often each token is drawn."""
    generator = torch.Generator().manual_seed(seed)
    ids = generate(model, torch.zeros(number, 1, dtype=torch.int64), 1, generator=generator, **options)
    return torch.bincount(ids[:, 1], minlength=model.config.vocab_size).double()


# Greedy


@moderate
@given(st.integers(1, 2), st.integers(1, 20), st.integers(0, 16), st.integers(0, 99))
def test_greedy_equals_a_loop_that_keeps_nothing_and_crops(batch_size, num_tokens, max_new_tokens, seed):
    model, ids = model_of(seed), some_ids(batch_size, num_tokens, seed=seed)
    before = ids.clone()
    written = generate(model, ids, max_new_tokens)
    assert written.tolist() == greedy_by_hand(model, ids, max_new_tokens).tolist()
    assert written.shape == (batch_size, num_tokens + max_new_tokens)
    assert torch.equal(ids, before)


def test_tokens_beyond_the_context_length_are_not_seen():
    model, ids = model_of(), some_ids(1, 20)
    changed = ids.clone()
    changed[:, :8] = (ids[:, :8] + 1) % VOCAB_SIZE
    assert torch.equal(generate(model, ids, 9)[:, 8:], generate(model, changed, 9)[:, 8:])


def test_a_batch_is_its_texts_one_by_one():
    model, ids = model_of(), some_ids(4, 5)
    assert torch.equal(generate(model, ids, 15), torch.cat([generate(model, text[None], 15) for text in ids]))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_ids_keep_their_dtype(dtype):
    assert generate(model_of(), some_ids(1, 3).to(dtype), 2, temperature=1.0).dtype == dtype


def test_the_next_token_is_read_at_the_last_position_and_is_the_likeliest():
    assert generate(says([0.1, 0.2, 3.0, 0.3]), torch.tensor([[0, 1]]), 3).tolist() == [[0, 1, 2, 2, 2]]


# Draws


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ({"temperature": 1.0}, SHARES),
        ({"temperature": 0.5}, [0.0350877, 0.5614035, 0.0087719, 0.3157895, 0.0789474]),  # squared, over their sum
        ({"temperature": 1.0, "top_k": 2}, [0, 0.5714286, 0, 0.4285714, 0]),
        ({"temperature": 0.5, "top_k": 3}, [0, 0.5871560, 0, 0.3302752, 0.0825688]),
        ({"temperature": 1.0, "top_k": 5}, SHARES),
        ({"temperature": 1e12}, [0.2] * 5),
    ],
    ids=str,
)
def test_draws_follow_the_shares(options, shares):
    counts = draws(says([math.log(share) for share in SHARES]), **options)
    expected = 4000 * torch.tensor(shares, dtype=torch.float64)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    # With 4 degrees of freedom, chi-square is above 24 once in ten thousand; the seed is fixed.
    assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < 24


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-40, 1e-8, 1e300])
def test_no_temperature_overflows(temperature, dtype):
    counts = draws(says([300.0, -300.0, 304.0, 4.0], dtype), 40, temperature=temperature)
    assert counts.tolist() == [0, 0, 40, 0] if temperature < 1 else (counts > 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_k": 1, "temperature": 50.0}, {"temperature": 1e-9}], ids=str)
def test_the_best_alone_is_greedy(options, dtype):
    model, ids = model_of(dtype=dtype), some_ids(3, 4)
    assert torch.equal(generate(model, ids, 12, **{"temperature": 1.0, **options}), generate(model, ids, 12))


def test_texts_of_a_batch_draw_for_themselves():
    ids = generate(says([0.0] * 29), torch.zeros(2, 1, dtype=torch.int64), 10, temperature=1.0)
    assert ids[0].tolist() != ids[1].tolist()
    assert len(set(ids[0, 1:].tolist())) > 1


def test_torchs_seed_makes_texts_repeatable():
    model, ids, texts = model_of(), some_ids(1, 3), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        texts.append(generate(model, ids, 20, temperature=5.0).tolist())
    assert texts[0] == texts[1] != texts[2]


def test_an_own_generator_decides_and_moves_on():
    model, ids = model_of(), some_ids(1, 3)
    one, other = (torch.Generator().manual_seed(5) for _ in range(2))
    torch.manual_seed(1)
    first = generate(model, ids, 20, temperature=5.0, generator=one)
    second = generate(model, ids, 20, temperature=5.0, generator=one)
    torch.manual_seed(2)
    assert torch.equal(generate(model, ids, 20, temperature=5.0, generator=other), first)
    assert not torch.equal(first, second)


# What is left as it was found


def failing_at(model, call):
    """Let a model's last norm raise an error at its n-th call."""
    calls = []

    def hook(module, inputs):
        calls.append(module)
        if len(calls) == call:
            raise RuntimeError("half-way")

    model.final_norm.register_forward_pre_hook(hook)
    return model


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("mode", ["train", "eval", "mixed"])
def test_each_modules_mode_is_left_as_found(mode, fails):
    model = failing_at(model_of(), 3 if fails else None).train(mode == "train")
    if mode == "mixed":
        model.train()
        model.blocks[1].eval()
        model.blocks[1].attention.dropout.train()
        model.embedding.dropout.eval()
    before = [module.training for module in model.modules()]
    if fails:
        with pytest.raises(RuntimeError, match="half-way"):
            generate(model, some_ids(1, 3), 5)
    else:
        assert torch.equal(generate(model, some_ids(1, 3), 5), greedy_by_hand(model_of(), some_ids(1, 3), 5))
    assert [module.training for module in model.modules()] == before


def test_evaluating_lasts_for_its_block_alone():
    model = model_of().train()
    with evaluating(model):
        assert not any(module.training for module in model.modules())
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_callers_random_state_is_left_as_found(temperature, fails):
    model = failing_at(model_of(), 3 if fails else None).train()
    before = torch.get_rng_state()
    if fails:
        with pytest.raises(RuntimeError, match="half-way"):
            generate(model, some_ids(1, 3), 5, temperature=temperature)
    else:
        generate(model, some_ids(1, 3), 5, temperature=temperature)
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_get_no_gradients_and_gradients_stay_enabled():
    model, graphs = model_of(), []
    model.blocks[1].register_forward_hook(lambda module, inputs, output: graphs.append(output.requires_grad))
    generate(model, some_ids(1, 3), 2, temperature=1.0)
    assert graphs == [False, False]
    assert torch.is_grad_enabled()
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


# Kept keys and values


@moderate
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 99))
def test_a_text_in_pieces_gives_the_logits_of_the_whole(lengths, seed):
    model = model_of(seed, context_length=25)
    ids, cache = some_ids(2, sum(lengths), seed=seed), KeyValueCache()
    logits = torch.cat([model(piece, cache) for piece in ids.split(lengths, dim=1)], dim=1)
    torch.testing.assert_close(logits, model(ids), rtol=0, atol=1e-10)
    assert [cache.num_tokens(block.attention) for block in model.blocks] == [sum(lengths)] * 2


@pytest.mark.parametrize("shape", [(7, 8), (2, 7, 8), (2, 3, 7, 8)], ids=str)
def test_attention_over_pieces_equals_attention_over_the_whole(shape):
    torch.manual_seed(0)
    attention, cache, x = MultiHeadAttention(8, 8, 7, 0.0, 2).double(), KeyValueCache(), torch.randn(shape).double()
    pieces = [attention(piece, cache) for piece in x.split([2, 4, 1], dim=-2)]
    torch.testing.assert_close(torch.cat(pieces, dim=-2), attention(x), rtol=0, atol=1e-12)


def test_tokens_that_come_together_after_others_do_not_see_later_ones():
    model, ids = model_of(), some_ids(1, 9)
    changed = ids.clone()
    changed[:, 7:] = (ids[:, 7:] + 1) % VOCAB_SIZE
    logits = []
    for text in (ids, changed):
        cache = KeyValueCache()
        model(text[:, :4], cache)
        logits.append(model(text[:, 4:], cache))
    assert torch.equal(logits[0][:, :3], logits[1][:, :3])
    assert not torch.equal(logits[0][:, 3:], logits[1][:, 3:])


@pytest.mark.parametrize(
    ("num_tokens", "work"),
    [(5, [5, 1, 1, 1, 1, 1, 1, 1, 12, 12]), (15, [12, 12, 12]), (12, [12, 12])],
    ids=str,
)
def test_a_new_token_costs_one_tokens_work_up_to_the_context_length(num_tokens, work):
    model, seen = model_of(), []
    model.blocks[1].register_forward_hook(lambda module, inputs, output: seen.append(output.shape[1]))
    generate(model, some_ids(1, num_tokens), len(work))
    assert seen == work


def test_more_tokens_than_fit_beside_those_kept_are_refused_with_the_numbers():
    attention, cache = MultiHeadAttention(8, 8, 7, 0.0, 2), KeyValueCache()
    attention(torch.ones(1, 5, 8), cache)
    with pytest.raises(ValueError, match=r"3 tokens.*5.*7"):
        attention(torch.ones(1, 3, 8), cache)
    assert cache.num_tokens(attention) == 5
    model = model_of()
    cache = KeyValueCache()
    model(some_ids(1, 10), cache)
    with pytest.raises(ValueError, match=r"3 tokens.*10.*12"):
        model(some_ids(1, 3), cache)


def test_positions_may_start_later():
    embedding, ids = TokenAndPositionEmbedding(VOCAB_SIZE, 4, 9), some_ids(2, 9)
    assert torch.equal(embedding(ids[:, 3:7], start=3), embedding(ids)[:, 3:7])
    assert torch.equal(embedding(ids[:, 5:], 5), embedding(ids)[:, 5:])


@pytest.mark.parametrize(("start", "said"), [(7, r"3 tokens.*7.*9"), (-1, "-1"), (9, r"3 tokens.*9.*9")])
def test_positions_outside_the_table_are_refused(start, said):
    with pytest.raises(ValueError, match=said):
        TokenAndPositionEmbedding(VOCAB_SIZE, 4, 9)(some_ids(2, 3), start=start)


def test_one_cache_may_serve_two_models():
    models, ids, cache = [model_of(0), model_of(1)], some_ids(1, 7), KeyValueCache()
    for model in models:
        pieces = [model(piece, cache) for piece in ids.split([4, 3], dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), model(ids), rtol=0, atol=1e-10)


def test_another_batch_does_not_go_into_a_filled_cache():
    model = model_of()
    cache = KeyValueCache()
    model(some_ids(2, 3), cache)
    with pytest.raises(ValueError, match=r"1.*2|2.*1"):
        model(some_ids(1, 3), cache)


# Bad input


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"temperature": -0.1}, ValueError, r"temperature.*-0\.1"),
        ({"temperature": math.nan}, ValueError, "temperature.*nan"),
        ({"temperature": math.inf}, ValueError, "temperature.*inf"),
        ({"temperature": "1"}, TypeError, "temperature.*'1'"),
        ({"temperature": True}, TypeError, "temperature.*True"),
        ({"temperature": None}, TypeError, "temperature.*None"),
        ({"top_k": 0}, ValueError, "top_k.*0"),
        ({"top_k": -1}, ValueError, "top_k.*-1"),
        ({"top_k": 30}, ValueError, "top_k.*29.*30"),
        ({"top_k": 2.0}, TypeError, r"top_k.*2\.0"),
        ({"max_new_tokens": -1}, ValueError, "max_new_tokens.*-1"),
        ({"max_new_tokens": 1.0}, TypeError, r"max_new_tokens.*1\.0"),
        ({"input_ids": torch.zeros(1, 0, dtype=torch.int64)}, ValueError, r"input_ids.*\(1, 0\)"),
        ({"input_ids": torch.zeros(0, 3, dtype=torch.int64)}, ValueError, r"input_ids.*\(0, 3\)"),
        ({"input_ids": torch.tensor([1, 2])}, ValueError, r"input_ids.*\(2,\)"),
        ({"input_ids": torch.zeros(1, 2)}, TypeError, "input_ids.*float32"),
        ({"input_ids": torch.ones(1, 2, dtype=torch.bool)}, TypeError, "input_ids.*bool"),
        ({"input_ids": [[1, 2]]}, TypeError, "input_ids.*list"),
        ({"input_ids": torch.tensor([[1, 29]])}, ValueError, r"input_ids\[0, 1\] is 29"),
        ({"input_ids": torch.tensor([[29] + [1] * 12])}, ValueError, "29"),  # an ID that cropping hides
        ({"input_ids": torch.tensor([[29]]), "max_new_tokens": 0}, ValueError, "29"),
        ({"generator": 5, "temperature": 1.0}, TypeError, "generator.*5|generator.*int"),
        ({"model": torch.nn.Linear(2, 2)}, TypeError, "model.*GPTModel.*Linear"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) and len(str(value)) < 40 else "",
)
def test_a_wrong_argument_is_named_with_its_value(changes, error, said):
    arguments = {"model": model_of(), "input_ids": some_ids(1, 3), "max_new_tokens": 2, **changes}
    with pytest.raises(error, match=said):
        generate(**arguments)


def test_signature_is_the_contracts():
    parameters = inspect.signature(generate).parameters
    assert list(parameters) == ["model", "input_ids", "max_new_tokens", "temperature", "top_k", "generator"]
    assert [p.default for p in parameters.values() if p.kind is p.KEYWORD_ONLY] == [0.0, None, None]
