"""The loss of a model: what it is evaluated by, and whose gradient trains it."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.gpt import evaluating
from utils.training.processes import IGNORED, averaging, original, rank_and_world_size, summed

ADVICE = "a list or a DataLoader can be iterated over again, a generator only once"
Batches = Iterable[tuple[Tensor, Tensor]]


@torch.no_grad()
def evaluate(model: nn.Module, loader: Batches) -> float:
    """Return the mean loss over all targets, in nats per token, in eval mode; the model's own mode is put back.

    Args:
        model, loader: as for `train`; a target of −100 does not count, those of all processes do.

    Raises:
        ValueError: the loader has no target that counts.
    """
    total, num_targets, model = 0.0, 0, original(model)
    with evaluating(model):
        for input_ids, target_ids in loader:
            total += _summed_loss(model, input_ids, target_ids).item()
            num_targets += _num_targets(target_ids)
    total, num_targets = (summed(number, _device(model)) for number in (total, num_targets))
    if num_targets == 0:
        raise ValueError(f"the loader has no targets (left) to evaluate: {ADVICE}")
    return total / num_targets


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _summed_loss(model: nn.Module, input_ids: Tensor, target_ids: Tensor) -> Tensor:
    device = _device(model)
    logits = model(input_ids.to(device)).flatten(0, 1)  # (batch_size · num_tokens, vocab_size)
    return F.cross_entropy(logits, target_ids.to(device).flatten(), ignore_index=IGNORED, reduction="sum")


def _num_targets(target_ids: Tensor) -> int:
    return int((target_ids != IGNORED).sum())


def add_gradients(model: nn.Module, input_ids: Tensor, target_ids: Tensor, accumulation: int) -> float:
    """Return the mean loss over all targets of a batch, in all processes, and add its gradient to each parameter's."""
    # Divided by the number of all targets at once, so that each counts the same where parts have unequal numbers.
    num_targets = summed(_num_targets(target_ids), _device(model))
    if num_targets == 0:
        raise ValueError(f"a batch has no targets: all of them are {IGNORED}")
    total, world_size = 0.0, rank_and_world_size()[1]
    parts = [*zip(input_ids.chunk(accumulation), target_ids.chunk(accumulation))]
    for number, part in enumerate(parts, start=1):
        with averaging(model, number == len(parts)):  # once is enough, after the last part
            loss = _summed_loss(model, *part) * world_size / num_targets  # of which the processes' mean is taken
            loss.backward()
        total += loss.item()
    return summed(total, _device(model)) / world_size
