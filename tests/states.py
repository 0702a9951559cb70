"""The random states, which tests compare to see that nothing has changed them."""

import random

import numpy as np
import torch


def random_states() -> str:
    """The states of all sources of random numbers, to be compared."""
    return repr((torch.get_rng_state().tolist(), np.random.get_state(), random.getstate()))
