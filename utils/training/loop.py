"""The loop that trains a model."""

import math
from collections.abc import Callable, Iterator, Sized
from dataclasses import asdict
from itertools import count

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from utils.arguments import as_bool, as_integer, as_number
from utils.gpt import evaluating
from utils.progress_bar import progress_bar
from utils.training.checkpoints import Checkpoints
from utils.training.history import History
from utils.training.loss import ADVICE, Batches, add_gradients, evaluate
from utils.training.processes import (
    DistributedLoader,
    original,
    random_states,
    rank_and_world_size,
    set_random_state,
)
from utils.training.schedule import learning_rate, parameter_groups


def train(
    model: nn.Module,
    loader: Batches,
    *,
    steps: int | None = None,
    epochs: int | None = None,
    lr: float,
    warmup: int | None = None,
    weight_decay: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.99),
    clip: float | None = 1.0,
    accumulation: int = 1,
    held_out: Batches | None = None,
    evaluate_every: int | None = None,
    report: Callable[[int, float], None] | None = None,
    checkpoints: Checkpoints | None = None,
    progress: bool = True,
) -> History:
    """Train with AdamW (Loshchilov and Hutter 2019); the model's own mode is left as it was found.

    Nothing is seeded: dropout draws from torch's own random state, and the order of the batches is the loader's.
    When training fails or is interrupted, the model keeps what the steps so far have made of its weights.
    Where torch.distributed has been started, each process calls this with its part of each batch: the parts count as
    one batch, and losses are means over the targets of all processes.

    Args:
        model: returns logits (batch_size, num_tokens, vocab_size) of input_ids; also one inside torch.compile or
            DistributedDataParallel, and inside the latter where there are several processes.
        loader: an iterable of (input_ids, target_ids), each (batch_size, num_tokens) integers; when it has no more
            batches, it is iterated over again. A target of −100 does not count. Where its sampler is a
            DistributedSampler, as in `make_distributed_loader`, set_epoch is called before each epoch.
        steps, epochs: how long; one of the two. An epoch is len(loader) batches.
        lr, warmup: as for `learning_rate`; by default a tenth of the steps are warm-up.
        weight_decay: as for `parameter_groups`.
        betas: of AdamW's running means of the gradient and of its square.
        clip: a gradient with a larger norm is scaled down to this norm; None leaves it as it is.
        accumulation: parts into which a batch (a process's part of it) is cut to save memory, at most: gradients are
            added, the step is the same.
        held_out: batches of which the loss is measured before the first step and after the last.
        evaluate_every: number of steps from one further measurement to the next; by default there are none.
        report: called with the number of steps done and the held-out loss after each evaluation, in eval mode.
        checkpoints: where the run is written from time to time; it goes on from the newest one there. They need the
            loader of `make_distributed_loader`, whose order can be found again.
        progress: show a bar while training, in a terminal or a notebook. In a notebook, whatever the cell has
            displayed so far is cleared with the bar.

    Raises:
        TypeError: an argument of the wrong kind, epochs with a loader that has no length, or checkpoints with
            another loader.
        ValueError: an argument out of range, both or neither of steps and epochs, evaluate_every or report without
            held_out, a loader without batches, a batch without targets, a loss or gradient that is nan or infinite
            (the step is named), several processes without DistributedDataParallel, or as for `Checkpoints`.
        RuntimeError: another process does not answer.
    """
    accumulation = as_integer("accumulation", accumulation, at_least=1)
    steps = _number_of_steps(loader, steps, epochs)
    warmup = as_integer("warmup", steps // 10 if warmup is None else warmup, at_least=0, at_most=steps)
    lr = as_number("lr", lr, at_least=0)
    clip = math.inf if clip is None else as_number("clip", clip, at_least=0)
    if held_out is None and (evaluate_every is not None or report is not None):
        raise ValueError("evaluate_every and report need held_out, the batches whose loss is measured")
    evaluate_every = as_integer("evaluate_every", steps if evaluate_every is None else evaluate_every, at_least=1)
    optimizer = torch.optim.AdamW(parameter_groups(model, weight_decay), lr=lr, betas=betas, fused=True)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    rank, world_size = rank_and_world_size()
    if world_size > 1 and not any(isinstance(module, DistributedDataParallel) for module in model.modules()):
        raise ValueError(f"{world_size} processes would train {world_size} models: wrap it in DistributedDataParallel")
    if checkpoints is not None and not isinstance(loader, DistributedLoader):
        raise TypeError(f"checkpoints need the loader of make_distributed_loader, not a {type(loader).__name__}")
    done, history = 0, History()
    settings = {"steps": steps, "lr": lr, "warmup": warmup, "weight_decay": weight_decay, "betas": tuple(betas)}
    settings |= {"clip": clip, "accumulation": accumulation}
    if checkpoints is not None and (state := checkpoints.load(**settings)) is not None:
        original(model).load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        set_random_state(state["random"])
        done, history = state["step"], History(**state["history"])
    batches = _batches_after(done, loader)

    def measure(step: int) -> None:
        if held_out is not None and (step % evaluate_every == 0 or step == steps):
            history.steps.append(step)
            history.held_out.append(evaluate(model, held_out))
            if report is not None:
                with evaluating(model):
                    report(step, history.held_out[-1])

    progress = as_bool("progress", progress) and rank == 0
    with evaluating(model), progress_bar(steps, progress) as bar:  # puts each mode back
        model.train()
        optimizer.zero_grad()  # of what was computed before
        bar.update(done)
        if done == 0:
            measure(0)
        for step in range(done + 1, steps + 1):
            loss = add_gradients(model, *next(batches), accumulation)
            norm = nn.utils.clip_grad_norm_(parameters, clip).item()
            if not math.isfinite(loss + norm):
                raise ValueError(
                    f"step {step} of {steps}: the loss is {loss:.3g} and the norm of its gradient {norm:.3g}. "
                    "The model has the weights from before this step. Try a smaller lr or a longer warmup"
                )
            rate = learning_rate(step, lr=lr, steps=steps, warmup=warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
            history.losses.append(loss)
            history.learning_rates.append(rate)
            bar.set_postfix(loss=loss, refresh=False)
            bar.update()
            measure(step)
            if checkpoints is not None and step % checkpoints.every == 0:
                state = {"model": original(model).state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                checkpoints.save(state | {"random": random_states(), "history": asdict(history)}, **settings)
    return history


def _batches_after(done: int, loader: Batches) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batches of epoch after epoch, but not the first `done` of them."""
    sampler = getattr(loader, "sampler", None)
    first, skipped = divmod(done, len(loader)) if done else (0, 0)
    for epoch in count(first):
        if isinstance(sampler, DistributedSampler):
            sampler.set_epoch(epoch)  # or each epoch would have the same order
        batch = None
        for batch in loader.after(skipped) if skipped else loader:
            yield batch
        if batch is None:
            raise ValueError(f"the loader has no batches (left): {ADVICE}")
        skipped = 0


def _number_of_steps(loader: Batches, steps: int | None, epochs: int | None) -> int:
    if (steps is None) == (epochs is None):
        raise ValueError(f"exactly one of steps and epochs must be given, not steps={steps} and epochs={epochs}")
    if epochs is None:
        return as_integer("steps", steps, at_least=1)
    epochs = as_integer("epochs", epochs, at_least=1)
    if not isinstance(loader, Sized):
        raise TypeError(f"epochs needs a loader with a length, which a {type(loader).__name__} lacks: give steps")
    if not len(loader):
        raise ValueError(f"the loader has no batches (left): {ADVICE}")
    return epochs * len(loader)
