"""What attention remembers while a model writes."""

import torch
from torch import Tensor, nn


class KeyValueCache:
    """The keys and values of the tokens that attentions have seen, so that only new tokens need to go through them.

    One cache serves all attentions of a model: each finds what is its own.
    """

    def __init__(self):
        self._kept: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def num_tokens(self, attention: nn.Module) -> int:
        """Return how many tokens this attention has seen."""
        return self._kept[attention][0].shape[-2] if attention in self._kept else 0

    def extend(self, attention: nn.Module, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the new tokens' keys and values, (batch_size, …, head_dim), and return those of all tokens."""
        if attention in self._kept:
            seen_keys, seen_values = self._kept[attention]
            if len(seen_keys) != len(keys):
                raise ValueError(f"the cache is of batch_size {len(seen_keys)}, and x has batch_size {len(keys)}")
            keys, values = torch.cat([seen_keys, keys], dim=-2), torch.cat([seen_values, values], dim=-2)
        self._kept[attention] = keys, values
        return keys, values
