"""utils.training against its contract: each step is that of a plain loop, and what is kept, refused and left behind."""

import contextlib
import io
import math
import sys
from types import SimpleNamespace

import nbformat
import pytest
import torch
import torch.nn.functional as F
from lessons import ROOT
from models import model_of, some_ids
from normalise import renewed
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from utils.batches import make_loader
from utils.plots import plot_lines
from utils.training import History, evaluate, learning_rate, loop, parameter_groups, train

pytestmark = pytest.mark.usefixtures("one_thread")


def batches_of(*sizes, num_tokens=6, seed=3):
    """Return batches with these numbers of texts."""
    rows = some_ids(sum(sizes), num_tokens + 1, seed=seed).split(sizes)
    return [(ids[:, :-1], ids[:, 1:].clone()) for ids in rows]


def with_ignored(batches):
    """Return the same batches, in which few targets count, and not equally many in each."""
    for number, (_, target_ids) in enumerate(batches):
        target_ids[:, number + 1 :] = -100
    return batches


def modes(model):
    return [module.training for module in model.modules()]


def weights_of(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def changed(model, before):
    return [not torch.equal(new, old) for new, old in zip(model.parameters(), before, strict=True)]


@pytest.fixture
def gradients():
    """The gradient, as one vector, with which each step is done."""
    seen = []

    def note(optimizer, *_):
        found = [p.grad.flatten() for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        seen.append(torch.cat(found))

    handle = register_optimizer_step_pre_hook(note)
    yield seen
    handle.remove()


# Steps


def plain_losses(model, batches, steps):
    """Return the losses of a loop that shares no code with `train`: steps 1.., warm-up 2, lr 0.01, clip 1."""
    matrices, vectors = [], []
    for name, parameter in model.named_parameters():
        (vectors if name.endswith("bias") or "norm" in name else matrices).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.3}, {"params": vectors, "weight_decay": 0.0}],
        betas=(0.8, 0.95),
        foreach=False,
    )
    model.train()
    losses = []
    for step in range(steps):
        rate = [0.005, 0.01][step] if step < 2 else 0.01 * math.cos(math.pi / 2 * (step - 1) / (steps - 1)) ** 2
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, targets = batches[step % len(batches)]
        loss = F.cross_entropy(model(ids).transpose(1, 2), targets)
        optimizer.zero_grad()
        loss.backward()
        norm = sum((p.grad**2).sum() for p in model.parameters()).sqrt()
        for parameter in model.parameters():
            parameter.grad *= min(1.0, 1 / norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("tie_weights", [True, False])
@pytest.mark.parametrize("accumulation", [1, 3])
def test_steps_are_those_of_a_plain_loop(tie_weights, accumulation):
    changes = {"drop_rate": 0.0 if accumulation == 3 else 0.5, "tie_weights": tie_weights}
    batches = with_ignored(batches_of(4, 3, 5))
    ours, plain = model_of(**changes), model_of(**changes)
    torch.manual_seed(5)
    expected = plain_losses(plain, batches, 8)
    torch.manual_seed(5)
    settings = {"lr": 0.01, "warmup": 2, "weight_decay": 0.3, "betas": (0.8, 0.95)}
    history = train(ours, batches, steps=8, accumulation=accumulation, **settings)
    assert history.losses == pytest.approx(expected, abs=1e-6)
    assert all(changed(ours, weights_of(model_of(**changes))))
    for parameter, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(parameter, other, rtol=0, atol=1e-5)


def test_the_defaults_are_those_of_the_course(monkeypatch):
    seen = []

    def optimizer(groups, **settings):
        seen.append((settings["betas"], [group["weight_decay"] for group in groups]))
        return torch.optim.SGD(groups, lr=0.1)

    monkeypatch.setattr(torch.optim, "AdamW", optimizer)
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda _, clip: seen.append(clip) or torch.ones(()))
    history = train(model_of(), batches_of(2), steps=20, lr=1)
    assert seen[:2] == [((0.9, 0.99), [0.1, 0.0]), 1.0]
    assert history.learning_rates[:3] == [0.5, 1.0, pytest.approx((1 + math.cos(math.pi / 19)) / 2)]


@pytest.mark.parametrize("clip", [0.01, 1e6, None])
def test_a_long_gradient_is_scaled_down_to_clip(gradients, clip):
    for limit in (None, clip):
        train(model_of(drop_rate=0.0), batches_of(4), steps=1, lr=0.1, clip=limit)
    norm = gradients[0].norm()
    assert norm > 0.02
    expected = gradients[0] * (0.01 / norm if clip == 0.01 else 1)
    torch.testing.assert_close(gradients[1], expected, rtol=1e-4, atol=0)


def test_what_was_computed_before_does_not_count_and_nothing_is_left(gradients):
    model = model_of(drop_rate=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 100)
    train(model, batches_of(4), steps=1, lr=0.1)
    train(model_of(drop_rate=0.0), batches_of(4), steps=1, lr=0.1)
    assert torch.equal(*gradients)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_same_seed_gives_the_same_run_and_nothing_is_seeded():
    ids = some_ids(60)

    def run(seed):
        torch.manual_seed(seed)
        model = model_of()
        loader = make_loader(ids, context_length=6, stride=3, batch_size=4)
        return train(model, loader, steps=6, lr=0.01, held_out=batches_of(2)), weights_of(model)

    (one, weights), (two, same), (other, _) = run(1), run(1), run(2)
    assert one == two
    assert all(map(torch.equal, weights, same))
    assert one.losses != other.losses
    before = torch.get_rng_state()
    train(model_of(drop_rate=0.0), batches_of(3), steps=2, lr=0.01, held_out=batches_of(2))
    assert torch.equal(torch.get_rng_state(), before)


def test_only_trained_parameters_change():
    model = model_of()
    model.embedding.requires_grad_(False)
    before = weights_of(model)
    train(model, batches_of(4), steps=2, lr=0.1)
    assert changed(model, before) == [parameter.requires_grad for parameter in model.parameters()]
    before = weights_of(model)
    train(model, batches_of(4), steps=2, lr=0)
    assert not any(changed(model, before))


class Counted(list):
    """A list that counts how often it is iterated over, and how many batches were taken."""

    passes = taken = 0

    def __iter__(self):
        self.passes += 1
        for batch in super().__iter__():
            self.taken += 1
            yield batch


@pytest.mark.parametrize(
    ("settings", "steps", "taken"),
    [
        ({"steps": 7}, 7, 7),
        ({"epochs": 2}, 6, 6),
    ],
    ids=str,
)
def test_the_loader_is_iterated_over_again_and_no_batch_is_lost(settings, steps, taken):
    loader = Counted(batches_of(1, 1, 1))
    assert len(train(model_of(), loader, lr=0.01, **settings).losses) == steps
    assert (loader.taken, loader.passes) == (taken, math.ceil(taken / 3))


def test_a_model_in_a_wrapper_is_trained_the_same():
    class Wrapped(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, *inputs):
            return self.module(*inputs)

    runs = []
    for wrap in (Wrapped, lambda model: model):
        torch.manual_seed(0)
        runs.append(train(wrap(model_of()), batches_of(4, 4), steps=4, lr=0.01).losses)
    assert runs[0] == runs[1]


# The learning rate, and weight decay


def test_the_learning_rate_rises_along_a_line_and_falls_along_a_cosine():
    def rates(steps, warmup):
        return [learning_rate(step, lr=2.0, steps=steps, warmup=warmup) for step in range(1, steps + 1)]

    half = math.sqrt(0.5)
    assert rates(7, 4) == pytest.approx([0.5, 1, 1.5, 2, 1 + half, 1, 1 - half])
    assert rates(3, 0) == pytest.approx([1 + half, 1, 1 - half])
    assert rates(4, 4) == pytest.approx([0.5, 1, 1.5, 2])
    history = train(model_of(), batches_of(1), steps=7, lr=2e-3, warmup=4)
    assert history.learning_rates == pytest.approx([rate / 1000 for rate in rates(7, 4)])
    for step in (0, 8):
        with pytest.raises(ValueError, match=f"step must be from 1 to 7, not {step}"):
            learning_rate(step, lr=1, steps=7, warmup=2)


@pytest.mark.parametrize("tie_weights", [True, False])
def test_weight_decay_is_for_matrices_and_each_parameter_is_there_once(tie_weights):
    model = model_of(tie_weights=tie_weights)
    model.blocks[0].requires_grad_(False)
    decayed, others = parameter_groups(model, 0.3)
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    names = {parameter: name for name, parameter in model.named_parameters()}
    found = [[names[parameter] for parameter in group["params"]] for group in (decayed, others)]
    kinds = ["W_query", "W_key", "W_value", "out_proj"]
    matrices = [f"blocks.1.attention.{kind}.weight" for kind in kinds]
    matrices += [f"blocks.1.feed_forward.{kind}.weight" for kind in ("widen", "narrow")]
    matrices += [f"embedding.{kind}_embedding.weight" for kind in ("token", "position")]
    matrices += [] if tie_weights else ["out_head.weight"]
    assert sorted(found[0]) == sorted(matrices)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert sorted(found[0] + found[1]) == sorted(trained)


# Evaluation


def test_each_target_counts_the_same():
    model = model_of()
    batches = with_ignored(batches_of(5, 1, 3))
    batches.append((batches[0][0], torch.full_like(batches[0][1], -100)))
    losses = []
    for ids, targets in batches:
        log_probabilities = model(ids).log_softmax(-1)
        for row, position in torch.argwhere(targets != -100).tolist():
            losses.append(-log_probabilities[row, position, targets[row, position]].item())
    assert evaluate(model, batches) == pytest.approx(sum(losses) / len(losses), abs=1e-9)
    assert len(losses) == 5 * 1 + 1 * 2 + 3 * 3


def test_evaluation_is_without_dropout_gradients_or_traces():
    model, batches = model_of(), batches_of(2, 2)
    expected = evaluate(model, batches)
    model.train()
    model.blocks[1].eval()
    before, state = modes(model), torch.get_rng_state()
    wants_gradients = []
    handle = model.register_forward_hook(lambda *arguments: wants_gradients.append(arguments[-1].requires_grad))
    assert evaluate(model, iter(batches)) == expected
    handle.remove()
    assert wants_gradients == [False, False]
    assert modes(model) == before
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(ValueError, match="12"):
        evaluate(model, [(some_ids(1, 13), some_ids(1, 13))])
    assert modes(model) == before


@pytest.mark.parametrize("loader", [[], iter([]), [(some_ids(1, 3), torch.full((1, 3), -100))]])
def test_without_targets_nothing_is_evaluated(loader):
    with pytest.raises(ValueError, match="no targets"):
        evaluate(model_of(), loader)


def test_held_out_losses_are_those_at_the_time():
    model, held_out, seen = model_of(), batches_of(2, 1, seed=8), []

    def report(step, loss):
        assert not any(modes(model))
        seen.append((step, loss, evaluate(model, held_out)))

    model.train()
    history = train(
        model, batches_of(4), steps=7, lr=0.01, held_out=held_out, evaluate_every=3, report=report, progress=False
    )
    assert history.steps == [0, 3, 6, 7]
    assert history.held_out == [loss for _, loss, _ in seen] == [again for _, _, again in seen]
    assert [step for step, *_ in seen] == history.steps
    assert len(set(history.held_out)) == 4
    assert history.held_out[0] == evaluate(model_of(), held_out)
    a, b, c, d, e, f, g = history.losses
    assert history.training[1:] == pytest.approx([(a + b + c) / 3, (d + e + f) / 3, g])
    assert math.isnan(history.training[0])
    lines = {"training": history.training, "held out": history.held_out}
    figure = plot_lines({"Loss": lines}, history.steps, "steps done")
    assert [line.get_xdata().tolist() for line in figure.axes[0].lines] == [[0, 3, 6, 7]] * 2


def test_evaluating_does_not_change_the_run():
    def run(**settings):
        torch.manual_seed(0)
        return train(model_of(), batches_of(4, 4), steps=4, lr=0.01, **settings)

    without, between = run(), run(held_out=batches_of(2), evaluate_every=1)
    assert between.losses == without.losses
    assert (without.steps, without.held_out, without.training) == ([], [], [])
    assert run(held_out=batches_of(2)).steps == [0, 4]
    assert History().training == []


# The model's mode, and what stops a run


class Interrupting(list):
    def __iter__(self):
        yield self[0]
        raise KeyboardInterrupt


RUNS = {
    "whole": lambda model: train(model, batches_of(2), steps=3, lr=0.01, held_out=batches_of(1), evaluate_every=1),
    "interrupted": lambda model: train(model, Interrupting(batches_of(2)), steps=3, lr=0.01),
    "interrupted evaluation": lambda model: train(
        model, batches_of(2), steps=3, lr=0.01, held_out=Interrupting(batches_of(2))
    ),
    "too long a text": lambda model: train(model, batches_of(2, num_tokens=13), steps=3, lr=0.01),
    "empty": lambda model: train(model, [], steps=3, lr=0.01),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("mode", [False, True])
def test_each_module_keeps_its_mode(run, mode):
    model = model_of().train(mode)
    model.blocks[0].attention.train(not mode)
    before, seen = modes(model), []
    handle = model.register_forward_pre_hook(lambda *_: seen.append(set(modes(model))))
    with contextlib.suppress(KeyboardInterrupt, ValueError):
        run(model)
    handle.remove()
    assert modes(model) == before
    assert all(len(found) == 1 for found in seen), "all in training, or all in evaluation"


class Spoilt(nn.Module):
    """A model of which the third call spoils the loss, or only the gradient."""

    def __init__(self, spoil):
        super().__init__()
        self.model, self.spoil, self.calls = model_of(), spoil, 0

    def forward(self, ids):
        self.calls += 1
        logits = self.model(ids)
        return self.spoil(logits) if self.calls == 3 else logits


class InfiniteGradient(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient * math.inf


SPOILS = {
    "nan": lambda logits: logits * math.nan,
    "inf": lambda logits: logits.masked_fill(torch.arange(29) != 0, -math.inf),
    "gradient": InfiniteGradient.apply,
}


@pytest.mark.parametrize("kind", SPOILS)
def test_a_run_that_goes_wrong_stops_and_keeps_the_weights_before_that_step(kind):
    torch.manual_seed(0)
    model, good = Spoilt(SPOILS[kind]), Spoilt(None)
    with pytest.raises(ValueError, match=r"step 3 of 4: the loss is .*(nan|inf).*smaller lr"):
        train(model, batches_of(4), steps=4, lr=0.01, warmup=1)
    torch.manual_seed(0)
    rates = iter([0.01, 0.01 * (1 + math.cos(math.pi / 4)) / 2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "learning_rate", lambda *_, **__: next(rates))
        train(good, batches_of(4), steps=2, lr=0.01)
    assert not any(changed(model, weights_of(good)))


WRONG = [
    ({}, ValueError, "exactly one of steps and epochs .*None.*None"),
    ({"steps": 3, "epochs": 1}, ValueError, "exactly one of steps and epochs .*3.*1"),
    ({"steps": 0}, ValueError, "steps must be at least 1, not 0"),
    ({"steps": 2.0}, TypeError, "steps must be an integer"),
    ({"epochs": 0}, ValueError, "epochs must be at least 1, not 0"),
    ({"epochs": "1"}, TypeError, "epochs must be an integer"),
    ({"epochs": 1, "loader": iter(batches_of(1))}, TypeError, "length.* list_iterator .*steps"),
    ({"epochs": 1, "loader": []}, ValueError, "no batches"),
    ({"steps": 3, "loader": []}, ValueError, "no batches"),
    ({"steps": 3, "loader": iter(batches_of(1, 1))}, ValueError, r"no batches \(left\).*generator"),
    ({"steps": 3, "loader": [(some_ids(1, 3), torch.full((1, 3), -100))]}, ValueError, "no targets.* -100"),
    ({"steps": 3, "lr": math.nan}, ValueError, "lr must be finite"),
    ({"steps": 3, "lr": -1}, ValueError, "lr must be at least 0, not -1"),
    ({"steps": 3, "lr": "1"}, TypeError, "lr must be a number"),
    ({"steps": 3, "warmup": 4}, ValueError, "warmup must be from 0 to 3, not 4"),
    ({"steps": 3, "warmup": -1}, ValueError, "warmup must be from 0 to 3, not -1"),
    ({"steps": 3, "weight_decay": -0.1}, ValueError, "weight_decay must be at least 0"),
    ({"steps": 3, "betas": (0.9, 1.0)}, ValueError, "beta.*1.0"),
    ({"steps": 3, "clip": -1}, ValueError, "clip must be at least 0"),
    ({"steps": 3, "accumulation": 0}, ValueError, "accumulation must be at least 1"),
    ({"steps": 3, "evaluate_every": 2}, ValueError, "evaluate_every .*held_out"),
    ({"steps": 3, "report": print}, ValueError, "report .*held_out"),
    ({"steps": 3, "evaluate_every": 0, "held_out": batches_of(1)}, ValueError, "evaluate_every must be at least 1"),
    ({"steps": 3, "held_out": []}, ValueError, "no targets"),
    ({"steps": 3, "progress": "no"}, TypeError, "progress must be True or False"),
]


@pytest.mark.parametrize(("settings", "error", "said"), WRONG, ids=[said for *_, said in WRONG])
def test_what_cannot_be_is_named(settings, error, said):
    with pytest.raises(error, match=said):
        train(model_of(), **{"loader": batches_of(1), "lr": 0.01, **settings})


# The bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(text):
    """Return what a terminal shows after a text of one line, in which \\r goes back to its start."""
    line = ""
    for part in text.split("\r"):
        line = part + line[len(part) :]
    return line.strip()


def test_the_bar_is_for_terminals_and_is_cleared(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "IPython", None)
    train(model_of(), batches_of(1), steps=2, lr=0.01)
    assert capsys.readouterr() == ("", "")
    for progress in (True, False):
        monkeypatch.setattr(sys, "stderr", Terminal())
        train(model_of(), batches_of(1), steps=2, lr=0.01, progress=progress)
        written = sys.stderr.getvalue()
        assert ("0/2" in written) is progress
        assert shown(written) == ""
        monkeypatch.undo()
        monkeypatch.setitem(sys.modules, "IPython", None)
    assert capsys.readouterr() == ("", "")


def test_in_a_notebook_the_bar_is_for_those_who_watch_and_is_cleared(monkeypatch, capsys):
    kernel, order = SimpleNamespace(_allow_stdin=True), []
    publisher = SimpleNamespace(clear_output=lambda: order.append(capsys.readouterr()))
    shell = SimpleNamespace(kernel=kernel, display_pub=publisher)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    train(model_of(), batches_of(1), steps=2, lr=0.01)
    with pytest.raises(ValueError, match="no batches"):
        train(model_of(), [], steps=2, lr=0.01)
    assert len(order) == 2, "also when it fails"
    assert all("0/2" in out and not err for out, err in order)
    train(model_of(), batches_of(1), steps=2, lr=0.01, progress=False)
    kernel._allow_stdin = False
    train(model_of(), batches_of(1), steps=2, lr=0.01)
    assert capsys.readouterr() == ("", "")
    assert len(order) == 2


CELLS = """
import sys; sys.path[:0] = {path}
from tests.test_training import *
---
print("kept")
train(model_of(), batches_of(1), steps=2, lr=0.01);
---
get_ipython().kernel._allow_stdin = True  # as if someone was watching
train(model_of(), batches_of(1), steps=2, lr=0.01);
"""


def test_a_stored_notebook_keeps_nothing_of_a_bar(tmp_path, monkeypatch):
    path = tmp_path / "lesson.ipynb"
    root = ROOT / "tests"
    cells = CELLS.replace("{path}", repr([str(root.parent), str(root)])).split("---")
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    notebook = renewed(path)
    assert [[output.get("text") for output in cell.outputs] for cell in notebook.cells] == [[], ["kept\n"], []]
    assert "widgets" not in notebook.metadata
