"""Training a model, and measuring its loss; `python -m utils.training` trains one on a file."""

import math
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from itertools import islice, pairwise
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.arguments import as_bool, as_integer, as_number
from utils.gpt import evaluating
from utils.progress_bar import progress_bar

IGNORED = -100  # a target that does not count, as in F.cross_entropy
ADVICE = "a list or a DataLoader can be iterated over again, a generator only once"
Batches = Iterable[tuple[Tensor, Tensor]]


@dataclass
class History:
    """How a training went; losses are in nats per target token.

    Drawn by `plot_lines({"Loss": {"training": h.training, "held out": h.held_out}}, h.steps, "steps done")`.

    Args:
        losses: of each step, the loss of its batch, before the step.
        learning_rates: of each step.
        steps: how many steps were done at each evaluation: 0, …, all of them. Empty without held-out batches.
        held_out: the held-out loss at each evaluation.
    """

    losses: list[float] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)

    @property
    def training(self) -> list[float]:
        """The mean of `losses` from one evaluation to the next; nan at the first, which no step precedes."""
        return [math.nan] * len(self.steps[:1]) + [fmean(self.losses[a:b]) for a, b in pairwise(self.steps)]


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
    progress: bool = True,
) -> History:
    """Train with AdamW (Loshchilov and Hutter 2019); the model's own mode is left as it was found.

    Nothing is seeded: dropout draws from torch's own random state, and the order of the batches is the loader's.
    When training fails or is interrupted, the model keeps what the steps so far have made of its weights.

    Args:
        model: returns logits (batch_size, num_tokens, vocab_size) of input_ids; also one inside torch.compile or
            DistributedDataParallel.
        loader: an iterable of (input_ids, target_ids), each (batch_size, num_tokens) integers; when it has no more
            batches, it is iterated over again. A target of −100 does not count.
        steps, epochs: how long; one of the two. An epoch is len(loader) batches.
        lr, warmup: as for `learning_rate`; by default a tenth of the steps are warm-up.
        weight_decay: as for `parameter_groups`.
        betas: of AdamW's running means of the gradient and of its square.
        clip: a gradient with a larger norm is scaled down to this norm; None leaves it as it is.
        accumulation: batches per step, which count as one large batch.
        held_out: batches of which the loss is measured before the first step and after the last.
        evaluate_every: number of steps from one further measurement to the next; by default there are none.
        report: called with the number of steps done and the held-out loss after each evaluation, in eval mode.
        progress: show a bar while training, in a terminal or a notebook. In a notebook, whatever the cell has
            displayed so far is cleared with the bar.

    Raises:
        TypeError: an argument of the wrong kind, or epochs with a loader that has no length.
        ValueError: an argument out of range, both or neither of steps and epochs, evaluate_every or report without
            held_out, a loader without batches, a batch without targets, or a loss or gradient that is nan or infinite
            (the step is named).
    """
    accumulation = as_integer("accumulation", accumulation, at_least=1)
    steps = _number_of_steps(loader, steps, epochs, accumulation)
    warmup = as_integer("warmup", steps // 10 if warmup is None else warmup, at_least=0, at_most=steps)
    lr = as_number("lr", lr, at_least=0)
    clip = math.inf if clip is None else as_number("clip", clip, at_least=0)
    if held_out is None and (evaluate_every is not None or report is not None):
        raise ValueError("evaluate_every and report need held_out, the batches whose loss is measured")
    evaluate_every = as_integer("evaluate_every", steps if evaluate_every is None else evaluate_every, at_least=1)
    optimizer = torch.optim.AdamW(parameter_groups(model, weight_decay), lr=lr, betas=betas, fused=True)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    batches, history = _repeated(loader), History()

    def measure(step: int) -> None:
        if held_out is not None and (step % evaluate_every == 0 or step == steps):
            history.steps.append(step)
            history.held_out.append(evaluate(model, held_out))
            if report is not None:
                with evaluating(model):
                    report(step, history.held_out[-1])

    with evaluating(model), progress_bar(steps, as_bool("progress", progress)) as bar:  # puts each mode back
        model.train()
        optimizer.zero_grad()  # of what was computed before
        measure(0)
        for step in range(1, steps + 1):
            loss = _add_gradients(model, list(islice(batches, accumulation)))
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
    return history


@torch.no_grad()
def evaluate(model: nn.Module, loader: Batches) -> float:
    """Return the mean loss over all targets, in nats per token, in eval mode; the model's own mode is put back.

    Args:
        model, loader: as for `train`; a target of −100 does not count.

    Raises:
        ValueError: the loader has no target that counts.
    """
    total, num_targets = 0.0, 0
    with evaluating(model):
        for input_ids, target_ids in loader:
            total += _summed_loss(model, input_ids, target_ids).item()
            num_targets += _num_targets(target_ids)
    if num_targets == 0:
        raise ValueError(f"the loader has no targets (left) to evaluate: {ADVICE}")
    return total / num_targets


def learning_rate(step: int, *, lr: float, steps: int, warmup: int) -> float:
    """Return the learning rate of a step in 1..steps: linear warm-up to lr at step `warmup`, then a cosine to 0.

    It would be 0 at step 0 and at step steps + 1, which are not done (Loshchilov and Hutter 2017, one period).

    >>> [round(learning_rate(step, lr=1.0, steps=9, warmup=2), 2) for step in range(1, 10)]
    [0.5, 1.0, 0.96, 0.85, 0.69, 0.5, 0.31, 0.15, 0.04]
    """
    step = as_integer("step", step, at_least=1, at_most=steps)
    if step < warmup:
        return lr * step / warmup
    return lr * (1 + math.cos(math.pi * (step - warmup) / (steps + 1 - warmup))) / 2


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Return the parameters that are trained, for an optimizer: weight decay on matrices alone.

    Vectors, that is biases and the scales of norms, keep their size. A tied matrix is there once.
    """
    weight_decay = as_number("weight_decay", weight_decay, at_least=0)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in trained if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
    ]


def _summed_loss(model: nn.Module, input_ids: Tensor, target_ids: Tensor) -> Tensor:
    device = next(model.parameters()).device
    logits = model(input_ids.to(device)).flatten(0, 1)  # (batch_size · num_tokens, vocab_size)
    return F.cross_entropy(logits, target_ids.to(device).flatten(), ignore_index=IGNORED, reduction="sum")


def _num_targets(target_ids: Tensor) -> int:
    return int((target_ids != IGNORED).sum())


def _add_gradients(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Return the mean loss over all targets of the batches, and add its gradient to that of each parameter."""
    # Divided by the number of all targets at once, so that each counts the same where batches have unequal numbers.
    num_targets = sum(_num_targets(target_ids) for _, target_ids in batches)
    if num_targets == 0:
        raise ValueError(f"a batch has no targets: all of them are {IGNORED}")
    total = 0.0
    for input_ids, target_ids in batches:
        loss = _summed_loss(model, input_ids, target_ids) / num_targets
        loss.backward()
        total += loss.item()
    return total


def _repeated(loader: Batches) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        batch = None
        for batch in loader:
            yield batch
        if batch is None:
            raise ValueError(f"the loader has no batches (left): {ADVICE}")


def _number_of_steps(loader: Batches, steps: int | None, epochs: int | None, accumulation: int) -> int:
    if (steps is None) == (epochs is None):
        raise ValueError(f"exactly one of steps and epochs must be given, not steps={steps} and epochs={epochs}")
    if epochs is None:
        return as_integer("steps", steps, at_least=1)
    epochs = as_integer("epochs", epochs, at_least=1)
    if not isinstance(loader, Sized):
        raise TypeError(f"epochs needs a loader with a length, which a {type(loader).__name__} lacks: give steps")
    if (num_batches := epochs * len(loader)) < accumulation:
        raise ValueError(f"{epochs} epochs have {num_batches} batches, too few for one step of {accumulation}")
    return num_batches // accumulation
