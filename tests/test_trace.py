"""utils.trace against its contract: each station in order, nothing changed, and faults found where they are."""

import copy

import numpy as np
import pytest
import torch
from models import model_of
from torch import nn

from utils.trace import Trace, first_difference, trace

SIZES = {"vocab_size": 50257, "context_length": 24, "n_layers": 3}
SHAPES = {
    "text": None,
    "token_ids": (4,),
    "batch": (1, 4),
    "token_embeddings": (1, 4, 12),
    "position_embeddings": (4, 12),
    "input_embeddings": (1, 4, 12),
    "block_1": (1, 4, 12),
    "block_2": (1, 4, 12),
    "block_3": (1, 4, 12),
    "final_norm": (1, 4, 12),
    "logits": (1, 4, 50257),
    "next_token": None,
}
TEXT = " Every effort moves you"


class Letters:
    """A tokenizer of letters, whose IDs come as an array, and which names IDs instead of decoding them."""

    def encode(self, text):
        return np.frombuffer(text.encode("latin-1"), dtype=np.uint8).copy()

    def decode(self, ids):
        return f"IDs {ids}"


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
    shapes = {name: getattr(value, "shape", None) for name, value in good.items()}
    assert [*shapes.items()] == [*SHAPES.items()]
    assert good["text"] == TEXT
    assert good["token_ids"].tolist() == [3887, 3626, 6100, 345]


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


def test_the_next_token_is_the_likeliest_at_the_last_position(model):
    # Only the last token's last station points at 2651; at the others another is likelier.
    def answer(module, inputs, logits):
        logits[0, :, 100] = 1e4
        logits[0, -1, 2651] = 1e5
        return logits

    model.out_head.register_forward_hook(answer)
    assert trace(model, TEXT)["next_token"] == " forward"


def test_an_own_tokenizer_says_the_ids_and_the_next_token():
    run = trace(sized(vocab_size=256), "äb", Letters())
    assert run["token_ids"].tolist() == [228, 98]
    assert run["token_ids"].dtype == torch.int64
    assert run["next_token"] == f"IDs [{run['logits'][0, -1].argmax()}]"
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
    assert [line.split()[0] for line in lines] == [*SHAPES]
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


@pytest.mark.parametrize("text", [TEXT, ""], ids=["right", "empty"])
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
        ({"text": "a" + " a" * 24}, ValueError, "25 tokens.*24"),
    ],
    ids=["model", "text", "too long"],
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
    return trace(model, TEXT, Letters())


def shifted_positions(model):
    table = model.embedding.position_embedding
    table.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    return trace(model, TEXT)


def forgotten_eval(model):
    return trace(model.train(), TEXT)


def inverted_mask(model):
    """Let the second block's attention see the future and not the past: the same tokens, reversed."""
    attention = model.blocks[1].attention
    plain = attention.forward
    attention.forward = lambda x, cache=None: plain(x.flip(-2), cache).flip(-2)
    return trace(model, TEXT)


@pytest.mark.parametrize(
    ("fault", "station"),
    [
        (lost_space, "text"),
        (other_tokenizer, "token_ids"),
        (shifted_positions, "position_embeddings"),
        (forgotten_eval, "input_embeddings"),
        (inverted_mask, "block_2"),
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


@pytest.mark.parametrize(
    ("expected", "actual", "options", "differs"),
    [
        (torch.zeros(2), torch.zeros(1), {}, True),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), {}, False),
        (torch.zeros(2), torch.tensor([0.0, 9e-6]), {}, False),
        (torch.zeros(2), torch.tensor([0.0, 2e-5]), {}, True),
        (torch.full((2,), 1e4), torch.full((2,), 1e4 + 0.01), {}, True),
        (torch.zeros(2), torch.tensor([0.0, 0.4]), {"atol": 0.5}, False),
        (torch.zeros(2), torch.tensor([0.0, 1e-30]), {"atol": 0}, True),
        (torch.tensor([torch.nan, 1]), torch.tensor([torch.nan, 1]), {}, False),
        (torch.tensor([torch.nan, 1]), torch.tensor([1.0, torch.nan]), {}, True),
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
