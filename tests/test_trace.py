"""utils.trace against its contract: each station in order, nothing changed, and faults found where they are."""

import copy

import numpy as np
import pytest
import torch
from models import model_of
from torch import nn

from utils.tokenizer import get_tokenizer
from utils.trace import Trace, first_difference, trace

SIZES = {"vocab_size": 50257, "context_length": 16, "n_layers": 3}
STATIONS = [
    "text",
    "token_ids",
    "batch",
    "token_embeddings",
    "position_embeddings",
    "input_embeddings",
    "block_1",
    "block_2",
    "block_3",
    "final_norm",
    "logits",
    "next_token",
]
TEXT = " Every effort moves you"


class Shifted:
    """GPT-2's tokens, numbered from 1."""

    def encode(self, text):
        return [token_id + 1 for token_id in get_tokenizer().encode(text)]

    def decode(self, ids):
        return get_tokenizer().decode([token_id - 1 for token_id in ids])


def sized(**changes):
    return model_of(dtype=torch.float32, **{**SIZES, **changes})


@pytest.fixture(scope="module")
def shared_model():
    return sized()


@pytest.fixture
def model(shared_model):
    return copy.deepcopy(shared_model)


@pytest.fixture(scope="module")
def good(shared_model):
    return trace(shared_model, TEXT)


# What a trace holds


def test_stations_are_in_order_with_their_shapes(good):
    assert list(good) == STATIONS
    assert {name: tuple(value.shape) for name, value in good.items() if isinstance(value, torch.Tensor)} == {
        "token_ids": (4,),
        "batch": (1, 4),
        "token_embeddings": (1, 4, 12),
        "position_embeddings": (4, 12),
        "input_embeddings": (1, 4, 12),
        **dict.fromkeys(["block_1", "block_2", "block_3", "final_norm"], (1, 4, 12)),
        "logits": (1, 4, 50257),
    }
    assert good["text"] == TEXT
    assert good["token_ids"].tolist() == [3887, 3626, 6100, 345]
    assert good["token_ids"].dtype == torch.int64


def test_stations_are_those_of_a_plain_forward(model, good):
    state = model.state_dict()
    tokens = state["embedding.token_embedding.weight"][[3887, 3626, 6100, 345]]
    positions = state["embedding.position_embedding.weight"][:4]
    assert torch.equal(good["token_embeddings"][0], tokens)
    assert torch.equal(good["position_embeddings"], positions)
    assert torch.equal(good["input_embeddings"][0], tokens + positions)
    x = good["input_embeddings"]
    with torch.no_grad():
        for number, block in enumerate(model.blocks, start=1):
            x = block(x)
            assert torch.equal(good[f"block_{number}"], x)
        assert torch.equal(good["final_norm"], model.final_norm(x))
        assert torch.equal(good["logits"], model(good["batch"]))


@pytest.mark.parametrize(("next_id", "next_token"), [(2651, " forward"), (13, "."), (50256, "<|endoftext|>")])
def test_the_next_token_is_the_likeliest_at_the_last_position(model, next_id, next_token):
    # Only the last token's last station points at next_id; at the others another is likelier.
    def answer(module, inputs, logits):
        logits[0, :, 100] = 1e4
        logits[0, -1, next_id] = 1e5
        return logits

    model.out_head.register_forward_hook(answer)
    assert trace(model, TEXT)["next_token"] == next_token


class Letters:
    """A tokenizer of letters, whose IDs come as an array, and which marks what it decodes."""

    def encode(self, text):
        return np.frombuffer(text.encode("latin-1"), dtype=np.uint8).copy()

    def decode(self, ids):
        return f"<{bytes(ids).decode('latin-1')}>"


def test_an_own_tokenizer_says_the_ids_and_the_next_token():
    run = trace(sized(vocab_size=256), "äb", Letters())
    assert run["token_ids"].tolist() == [228, 98]
    assert run["token_ids"].dtype == torch.int64
    assert run["next_token"] == f"<{chr(run['logits'][0, -1].argmax())}>"
    with pytest.raises(ValueError, match="0 tokens"):
        trace(sized(vocab_size=256), "", Letters())


def test_a_next_token_that_the_tokenizer_does_not_know_is_named():
    model = sized(vocab_size=50304)  # rounded up, as is usual for speed
    model.out_head.register_forward_hook(lambda module, inputs, logits: logits.index_fill(-1, torch.tensor(50300), 1e9))
    with pytest.raises(ValueError, match="50300"):
        trace(model, TEXT)


def test_a_special_token_in_a_text_is_plain_text(model):
    assert trace(model, "<|endoftext|>")["token_ids"].tolist() == [27, 91, 437, 1659, 5239, 91, 29]


def test_a_trace_is_shown_as_a_table_of_shapes(good):
    lines = repr(good).splitlines()
    assert [line.split()[0] for line in lines] == STATIONS
    assert TEXT in lines[0]
    assert lines[2].endswith("(1, 4)")
    assert lines[10].endswith("(1, 4, 50257)")


def test_stations_are_copies_that_a_later_step_does_not_change(model, good):
    model.blocks[1].register_forward_pre_hook(lambda module, inputs: (inputs[0].zero_(),))
    run = trace(model, TEXT)
    assert torch.equal(run["block_1"], good["block_1"])
    assert first_difference(good, run) == "block_2"


# What is left as it was found


def test_each_modules_mode_is_untouched_and_used(model):
    model.train()
    model.blocks[0].eval()
    before = [module.training for module in model.modules()]
    run = trace(model, TEXT)
    assert [module.training for module in model.modules()] == before
    assert first_difference(run, trace(model, TEXT)) == "input_embeddings"


def test_eval_draws_nothing_and_no_graph_is_kept(model):
    before, graphs = torch.get_rng_state(), []
    model.blocks[1].register_forward_hook(lambda module, inputs, output: graphs.append(output.requires_grad))
    trace(model, TEXT)
    assert torch.equal(torch.get_rng_state(), before)
    assert graphs == [False]


@pytest.mark.parametrize("text", [TEXT, "", "word " * 17], ids=["right", "empty", "too long"])
def test_hooks_are_gone_afterwards(model, text):
    try:
        trace(model, text)
    except ValueError:
        assert text != TEXT
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    model(torch.tensor([[1, 2]])).sum().backward()


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"model": nn.Linear(2, 2)}, TypeError, "model.*GPTModel.*Linear"),
        ({"text": ["a"]}, TypeError, "text.*str.*list"),
        ({"text": ""}, ValueError, "0 tokens"),
        ({"text": "a" + " a" * 16}, ValueError, "17 tokens.*16"),
        ({"model": sized(vocab_size=400)}, ValueError, "3887.*399"),
    ],
    ids=["model", "text", "empty", "too long", "unknown ID"],
)
def test_a_wrong_argument_is_named(model, changes, error, said):
    with pytest.raises(error, match=said):
        trace(**{"model": model, "text": TEXT, **changes})


# Where two runs part


def test_equal_runs_have_no_difference(model, good):
    assert first_difference(good, trace(model, TEXT)) is None
    assert first_difference(good, trace(model.double(), TEXT)) is None


def lost_space(model):
    return trace(model, TEXT.lstrip())


def other_tokenizer(model):
    return trace(model, TEXT, Shifted())


def shifted_positions(model):
    table = model.embedding.position_embedding
    table.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    return trace(model, TEXT)


def forgotten_eval(model):
    return trace(model.train(), TEXT)


def forgotten_eval_in_a_block(model):
    model.blocks[2].train()
    return trace(model, TEXT)


def inverted_mask(model):
    """Let the second block's attention see the future and not the past: the same tokens, reversed."""
    attention = model.blocks[1].attention
    plain = attention.forward
    attention.forward = lambda x, cache=None: plain(x.flip(-2), cache).flip(-2)
    return trace(model, TEXT)


def biased_final_norm(model):
    model.final_norm.eps = 0.1
    return trace(model, TEXT)


def head_not_tied(model):
    model.out_head.weight = nn.Parameter(model.out_head.weight + 0.01)
    return trace(model, TEXT)


@pytest.mark.parametrize(
    ("fault", "station"),
    [
        (lost_space, "text"),
        (other_tokenizer, "token_ids"),
        (shifted_positions, "position_embeddings"),
        (forgotten_eval, "input_embeddings"),
        (forgotten_eval_in_a_block, "block_3"),
        (inverted_mask, "block_2"),
        (biased_final_norm, "final_norm"),
        (head_not_tied, "logits"),
    ],
)
def test_a_planted_fault_is_found_at_its_station(model, good, fault, station):
    assert first_difference(good, fault(model)) == station


def test_the_first_of_several_differences_is_named(good):
    wrong = Trace(good)
    for name in ("logits", "block_2", "final_norm"):
        wrong[name] = good[name] + 1
    assert first_difference(good, wrong) == first_difference(wrong, good) == "block_2"


@pytest.mark.parametrize("station", ["block_1", "block_3"])
def test_a_station_that_one_run_lacks_is_a_difference(good, station):
    fewer = Trace({name: value for name, value in good.items() if name != station})
    assert first_difference(good, fewer) == first_difference(fewer, good) == station


def test_one_block_more_is_a_difference(good):
    longer = sized(n_layers=4)
    with torch.no_grad():  # equal in all that both have, and a last block that does nothing
        longer.load_state_dict(sized().state_dict(), strict=False)
        for layer in (longer.blocks[3].attention.out_proj, longer.blocks[3].feed_forward.narrow):
            layer.weight.zero_()
            layer.bias.zero_()
    run = trace(longer, TEXT)
    assert first_difference(good, run) == first_difference(run, good) == "block_4"


@pytest.mark.parametrize(
    ("expected", "actual", "options", "differs"),
    [
        (torch.zeros(2), torch.zeros(2), {}, False),
        (torch.zeros(2), torch.zeros(1, 2), {}, True),
        (torch.zeros(2), torch.zeros(1), {}, True),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), {}, False),
        (torch.zeros(2), torch.tensor([0.0, 9e-6]), {}, False),
        (torch.zeros(2), torch.tensor([0.0, 2e-5]), {}, True),
        (torch.full((2,), 1e4), torch.full((2,), 1e4 + 0.01), {}, True),
        (torch.zeros(2), torch.tensor([0.0, 0.4]), {"atol": 0.5}, False),
        (torch.zeros(2), torch.tensor([0.0, 1e-30]), {"atol": 0}, True),
        (torch.tensor([torch.nan, 1]), torch.tensor([torch.nan, 1]), {}, False),
        (torch.tensor([torch.nan, 1]), torch.tensor([1.0, torch.nan]), {}, True),
        (torch.tensor([torch.inf]), torch.tensor([torch.inf]), {}, False),
        (torch.tensor([torch.inf]), torch.tensor([-torch.inf]), {}, True),
        (torch.tensor([5, 6]), torch.tensor([5, 7]), {"atol": 2}, True),
        ("a", "a", {}, False),
        ("a", " a", {"atol": 9}, True),
        ("a", torch.zeros(1), {}, True),
    ],
)
def test_what_is_a_difference(expected, actual, options, differs):
    station = "station" if differs else None
    assert first_difference(Trace(station=expected), Trace(station=actual), **options) == station
    assert first_difference(Trace(station=actual), Trace(station=expected), **options) == station
