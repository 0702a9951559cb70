"""How a GPT generates text: generate, its samples, what takes effect in it, and what it leaves as it found it."""

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import SMALL, Bytes, model_of, some_ids

from utils.gpt import GPTModel, generate
from utils.trace import first_difference, trace

moderate = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
VOCAB_SIZE, CONTEXT_LENGTH = SMALL.vocab_size, SMALL.context_length
# What a model of `says` gives: five tokens with probabilities .4, .3, .15, .1 and .05.
PROBABILITIES = [0.1, 0.4, 0.05, 0.3, 0.15]


def says(logits, dtype=torch.float64):
    """Return a model whose logits are the given ones, whatever it reads."""
    model = model_of(dtype=dtype, vocab_size=len(logits), tie_weights=False)
    with torch.no_grad():
        model.final_norm.weight.zero_()
        model.final_norm.bias.zero_()[0] = 1.0
        model.out_head.weight.zero_()[:, 0] = torch.tensor(logits, dtype=dtype)
    return model


class Sevens(GPTModel):
    """A GPT that says 7, written by one who has no use for a cache."""

    def forward(self, input_ids):
        return seven(super().forward(input_ids))


class SevensPassing(GPTModel):
    """The same, with whatever arguments there may be."""

    def forward(self, *arguments, **options):
        return seven(super().forward(*arguments, **options))


def seven(logits):
    return logits.index_fill(-1, torch.tensor(7), 1e9)


def greedy_by_hand(model, ids, max_new_tokens, context_length=CONTEXT_LENGTH):
    """Return what a loop gives that keeps nothing and reads the last context_length tokens each time."""
    for _ in range(max_new_tokens):
        logits = model(ids[:, -context_length:])[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    return ids


def sample(model, number=4000, seed=0, **options):
    """Return how often each token is sampled."""
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


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_ids_keep_their_dtype(dtype):
    assert generate(model_of(), some_ids(1, 3).to(dtype), 2, temperature=1.0).dtype == dtype


# Samples


@pytest.mark.parametrize(
    ("options", "probabilities"),
    [
        ({"temperature": 1.0}, PROBABILITIES),
        ({"temperature": 0.5}, [0.0350877, 0.5614035, 0.0087719, 0.3157895, 0.0789474]),  # squared, over their sum
        ({"temperature": 0.5, "top_k": 3}, [0, 0.5871560, 0, 0.3302752, 0.0825688]),
    ],
    ids=str,
)
def test_samples_follow_the_probabilities(options, probabilities):
    counts = sample(says([math.log(p) for p in PROBABILITIES]), **options)
    expected = 4000 * torch.tensor(probabilities, dtype=torch.float64)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    # With 4 degrees of freedom, chi-square is above 24 once in ten thousand; the seed is fixed.
    assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < 24


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-40, 1e-8, 1e300])
def test_no_temperature_overflows(temperature, dtype):
    counts = sample(says([300.0, -300.0, 304.0, 4.0], dtype), 40, temperature=temperature)
    assert counts.tolist() == [0, 0, 40, 0] if temperature < 1 else (counts > 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_k": 1, "temperature": 50.0}, {"temperature": 1e-9}], ids=str)
def test_the_best_alone_is_greedy(options, dtype):
    model, ids = model_of(dtype=dtype), some_ids(3, 4)
    assert torch.equal(generate(model, ids, 12, **{"temperature": 1.0, **options}), generate(model, ids, 12))


def test_each_text_of_a_batch_is_sampled_for_itself():
    ids = generate(says([0.0] * 29), torch.zeros(2, 1, dtype=torch.int64), 10, temperature=1.0)
    assert ids[0].tolist() != ids[1].tolist()
    assert len(set(ids[0, 1:].tolist())) > 1


@pytest.mark.parametrize("own", [False, True])
def test_a_seed_makes_texts_repeatable_and_two_calls_differ(own):
    model, ids, texts = model_of(), some_ids(1, 3), []
    for _ in range(2):
        torch.manual_seed(len(texts) if own else 1)  # a generator of one's own decides alone
        generator = torch.Generator().manual_seed(1) if own else None
        texts += [generate(model, ids, 20, temperature=5.0, generator=generator).tolist() for _ in range(2)]
    assert texts[:2] == texts[2:]
    assert texts[0] != texts[1]


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
def test_each_modules_mode_is_left_as_found(fails):
    model = failing_at(model_of(), 3 if fails else None).train()
    model.blocks[1].eval()
    model.blocks[1].attention.dropout.train()
    before = [module.training for module in model.modules()]
    if fails:
        with pytest.raises(RuntimeError, match="half-way"):
            generate(model, some_ids(1, 3), 5)
    else:
        assert torch.equal(generate(model, some_ids(1, 3), 5), greedy_by_hand(model_of(), some_ids(1, 3), 5))
    assert [module.training for module in model.modules()] == before


@pytest.mark.parametrize("options", [{}, {"temperature": 1.0, "generator": torch.Generator()}], ids=["greedy", "own"])
def test_torchs_random_state_is_left_as_found_where_it_is_not_asked(options):
    before = torch.get_rng_state()
    generate(model_of().train(), some_ids(1, 3), 5, **options)
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_get_no_gradients_and_gradients_stay_enabled():
    model, graphs = model_of(), []
    model.blocks[1].register_forward_hook(lambda module, inputs, output: graphs.append(output.requires_grad))
    generate(model, some_ids(1, 3), 2, temperature=1.0)
    assert graphs == [False, False]
    assert torch.is_grad_enabled()
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("kind", [GPTModel, SevensPassing])
@pytest.mark.parametrize(
    ("num_tokens", "work"),
    [(5, [5, 1, 1, 1, 1, 1, 1, 1, 12, 12]), (15, [12, 12, 12]), (12, [12, 12])],
    ids=str,
)
def test_a_new_token_costs_one_tokens_work_up_to_the_context_length(num_tokens, work, kind):
    model, seen, logits = model_of(kind=kind), [], []
    model.blocks[1].register_forward_hook(lambda module, inputs, output: seen.append(output.shape[1]))
    model.out_head.register_forward_hook(lambda module, inputs, output: logits.append(output.shape[1]))
    generate(model, some_ids(1, num_tokens), len(work))
    assert seen == work
    assert logits == [1] * len(work)


# The end of a text


def test_a_text_ends_at_the_stop_id_and_is_filled_up_with_it():
    ids = torch.arange(9).expand(3, 9)[:, :3].clone()
    model = scripted([[4, 8, 5, 6, 8, 7], [8, 4, 4, 4, 4, 4], [4, 5, 6, 8, 4, 4]], ids.shape[1])
    assert generate(model, ids, 9, stop_id=8)[:, 3:].tolist() == [[4, 8, 8, 8], [8] * 4, [4, 5, 6, 8]]
    assert generate(model, ids, 3, stop_id=8)[:, 3:].tolist() == [[4, 8, 8], [8] * 3, [4, 5, 6]]
    assert generate(model, ids, 6, stop_id=0)[:, 3:].tolist() == model.texts
    ids[:, 1] = 8  # one that was in the text before does not end it
    assert generate(model, ids, 2, stop_id=8)[:, 3:].tolist() == [[4, 8], [8, 8], [4, 5]]


def scripted(texts, start):
    """Return a model that generates the given texts from position `start` on."""

    class Scripted(GPTModel):
        def forward(self, input_ids, cache=None):
            logits = super().forward(input_ids, cache)
            logits[range(len(texts)), -1, [text[cache.num_tokens - start] for text in texts]] = 1e9
            return logits

    model = model_of(kind=Scripted)
    model.texts = texts
    return model


# What takes effect


def hooked(**sizes):
    model = model_of(**sizes)
    model.register_forward_hook(lambda module, inputs, output: seven(output))
    return model


def kind(sevens):
    return lambda **sizes: model_of(kind=sevens, **sizes)


@pytest.mark.parametrize(
    "make",
    [kind(Sevens), kind(SevensPassing), hooked],
    ids=["forward without a cache", "forward with any arguments", "hook"],
)
def test_a_forward_and_hooks_of_ones_own_take_effect(make):
    assert generate(make(), some_ids(2, 9), 5)[:, 9:].tolist() == [[7] * 5] * 2
    run = trace(make(vocab_size=256), "text", Bytes())
    assert run["logits"].argmax(-1).tolist() == [[7] * 4]
    assert run["next_token"] == "\a"


@pytest.fixture
def process_group(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_a_compiled_model_runs_compiled_and_is_traced():
    runs = []

    def backend(graph, inputs):
        def run(*values):
            runs.append(graph)
            return graph(*values)

        return run

    model = model_of(vocab_size=256, n_layers=1)
    ids, run = some_ids(2, 5), trace(model, "text", Bytes())
    written = generate(model, ids, 9)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    assert torch.equal(generate(compiled, ids, 9), written)
    # The text, the first token after it, all others, and a window that is full: no graph for every length.
    assert len(runs) == 9
    assert len(set(runs)) == 4
    assert first_difference(run, trace(compiled, "text", Bytes())) is None
    model.compile(backend=backend, fullgraph=True)
    assert torch.equal(generate(model, ids, 1), written[:, :6])
    assert len(runs) == 10
    assert first_difference(run, trace(model, "text", Bytes())) is None


@pytest.mark.usefixtures("process_group")
def test_a_model_in_ddp_is_accepted():
    model = model_of(vocab_size=256)
    parallel = torch.nn.parallel.DistributedDataParallel(model).train()
    seen = []
    parallel.register_forward_hook(lambda module, inputs, output: seen.append(module.training))
    assert torch.equal(generate(parallel, some_ids(2, 5), 3), generate(model, some_ids(2, 5), 3))
    assert seen == [False] * 3
    assert parallel.training
    parallel.eval()
    assert first_difference(trace(model, "text", Bytes()), trace(parallel, "text", Bytes())) is None


# Logits that are not finite


@pytest.mark.parametrize("options", [{}, {"temperature": 1.0}, {"temperature": 0.1, "top_k": 2}], ids=str)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_an_error_in_every_mode(value, options):
    model = model_of()
    model.out_head.register_forward_hook(lambda module, inputs, output: output.index_fill(-1, torch.tensor(3), value))
    with pytest.raises(ValueError, match="not finite"):
        generate(model, some_ids(2, 3), 2, **options)


@pytest.mark.parametrize("options", [{}, {"temperature": 50.0}], ids=str)
def test_minus_infinity_forbids_a_token(options):
    model, forbidden = model_of(), torch.tensor([token not in (5, 6) for token in range(VOCAB_SIZE)])
    model.register_forward_hook(lambda module, inputs, output: output.masked_fill(forbidden, -math.inf))
    assert set(generate(model, some_ids(2, 3), 9, **options)[:, 3:].flatten().tolist()) <= {5, 6}
    all_of_one_text = torch.tensor([math.inf, 0.0]).view(2, 1, 1)
    model.register_forward_hook(lambda module, inputs, output: output - all_of_one_text)
    with pytest.raises(ValueError, match="not finite"):
        generate(model, some_ids(2, 3), 2, **options)


# Bad input


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"temperature": -0.1}, ValueError, r"temperature.*-0\.1"),
        ({"temperature": "1"}, TypeError, "temperature.*'1'"),
        ({"top_k": 0}, ValueError, "top_k.*0"),
        ({"top_k": 30}, ValueError, "top_k.*29.*30"),
        ({"max_new_tokens": -1}, ValueError, "max_new_tokens.*-1"),
        ({"stop_id": 29}, ValueError, "stop_id.*28.*29"),
        ({"stop_id": -1}, ValueError, "stop_id.*-1"),
        ({"input_ids": torch.zeros(1, 0, dtype=torch.int64)}, ValueError, r"input_ids.*\(1, 0\)"),
        ({"input_ids": torch.zeros(0, 3, dtype=torch.int64)}, ValueError, r"input_ids.*\(0, 3\)"),
        ({"input_ids": torch.tensor([1, 2])}, ValueError, r"input_ids.*\(2,\)"),
        ({"input_ids": torch.zeros(1, 2)}, TypeError, "input_ids.*float32"),
        ({"input_ids": [[1, 2]]}, TypeError, "input_ids.*list"),
        ({"input_ids": torch.tensor([[29] + [1] * 12])}, ValueError, r"input_ids\[0, 0\] is 29"),  # cropping hides it
        ({"input_ids": torch.tensor([[29]]), "max_new_tokens": 0}, ValueError, "29"),
        ({"generator": 5, "temperature": 1.0}, TypeError, "generator.*int"),
        ({"model": torch.nn.Linear(2, 2)}, TypeError, "model.*GPTModel.*Linear"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) and len(str(value)) < 40 else "",
)
def test_a_wrong_argument_is_named_with_its_value(changes, error, said):
    arguments = {"model": model_of(), "input_ids": some_ids(1, 3), "max_new_tokens": 2, **changes}
    with pytest.raises(error, match=said):
        generate(**arguments)
