"""What a training run has done."""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean


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
