"""The learning rate of each step, and which parameters get weight decay."""

import math

from torch import nn

from utils.arguments import as_integer, as_number


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
