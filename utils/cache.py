"""The key-value cache: what the attentions of a model keep of a text, so that only its new tokens go through them."""

from dataclasses import dataclass

import torch
from torch import Tensor


class KeyValueCache:
    """The keys and values of the tokens that a model has seen; use one cache per batch of texts and model.

    Plain data, to be copied and pickled like any. It does not notice that weights have changed since.

    Attributes:
        num_tokens: how many tokens all layers have seen. The model adds the new ones at the very end of
            a call, so a call that is broken off half-way leaves the cache as it was.
        layers: number of a layer -> its keys and values, each (…, num_heads, num_tokens, head_dim). More
            tokens than num_tokens, which a broken-off call has left there, do not count.
    """

    def __init__(self):
        self.num_tokens = 0
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def layer(self, number: int) -> "LayerCache":
        """Return the part of the cache that belongs to the attention of one layer."""
        return LayerCache(self, number)

    def select(self, rows: Tensor | list[int]) -> "KeyValueCache":
        """Keep only these texts of the batch, in this order, and return the cache itself.

        Args:
            rows: indices of texts, (new_batch_size,); one may occur several times (beams) or not at all
                (texts that have ended). Or bool, (batch_size,): True for each text to keep.

        Raises:
            IndexError: there is no such row.
        """
        rows = torch.as_tensor(rows)
        rows = rows if rows.numel() else rows.long()  # an empty list would be of floating-point numbers
        self.layers = {
            number: tuple(kept[..., : self.num_tokens, :][rows.to(kept.device)] for kept in pair)
            for number, pair in self.layers.items()
            if self.num_tokens
        }
        return self


@dataclass(frozen=True)
class LayerCache:
    """One layer's view of a `KeyValueCache`."""

    cache: KeyValueCache
    number: int

    @property
    def num_tokens(self) -> int:
        """How many tokens all layers have seen."""
        return self.cache.num_tokens

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the keys and values of new tokens, and return those of all tokens.

        Args:
            keys, values: (…, num_heads, num_new_tokens, head_dim).

        Returns:
            Two tensors, (…, num_heads, num_tokens + num_new_tokens, head_dim).

        Raises:
            ValueError: the cache holds another batch size, number of heads, head_dim, dtype or device, or
                was filled by another model (what differs is named).
        """
        if self.num_tokens:
            seen_keys, seen_values = (kept[..., : self.num_tokens, :] for kept in self._kept(keys))
            keys, values = torch.cat([seen_keys, keys], dim=-2), torch.cat([seen_values, values], dim=-2)
        # Another dictionary, so that a shallow copy of the cache goes its own way. No autograd graph is kept.
        self.cache.layers = {**self.cache.layers, self.number: (keys.detach(), values.detach())}
        return keys, values

    def _kept(self, new: Tensor) -> tuple[Tensor, Tensor]:
        pair = self.cache.layers.get(self.number)
        if pair is None or pair[0].shape[-2] < self.num_tokens:
            raise ValueError(
                f"the cache has not seen {self.num_tokens} tokens in layer {self.number}: another model's?"
            )
        kept, new = _facts(pair[0]), _facts(new)
        if kept != new:
            differing = (f"{name} {kept[name]}, not {new[name]}" for name in kept if kept[name] != new[name])
            raise ValueError(f"the cache is for {'; '.join(differing)}: start a new KeyValueCache")
        return pair


def _facts(keys: Tensor) -> dict[str, object]:
    """Return all that new keys must have in common with those in the cache."""
    batch_size = keys.shape[0] if keys.dim() == 4 else tuple(keys.shape[:-3])
    sizes = {"batch_size": batch_size, "num_heads": keys.shape[-3], "head_dim": keys.shape[-1]}
    return {**sizes, "dtype": keys.dtype, "device": keys.device}
