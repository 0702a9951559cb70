"""Token IDs to vectors: what a token is, plus its position."""

import torch
from torch import Tensor, nn

from utils.arguments import as_fraction, as_integer


class TokenAndPositionEmbedding(nn.Module):
    """The sum of a learned vector for each token and one for each position, as GPT-2's input (Radford et al. 2019).

    Args:
        vocab_size: how many tokens there are.
        emb_dim: how many entries each vector has.
        context_length: how many positions there are.
        dropout: fraction of the sum's entries that training sets to zero.

    >>> embedding = TokenAndPositionEmbedding(vocab_size=50_257, emb_dim=8, context_length=16)
    >>> embedding(torch.tensor([[6109, 3626, 6100, 345], [6109, 1110, 6622, 257]])).shape
    torch.Size([2, 4, 8])
    """

    def __init__(self, vocab_size: int, emb_dim: int, context_length: int, dropout: float = 0.0):
        super().__init__()
        emb_dim = as_integer("emb_dim", emb_dim, at_least=1)
        self.token_embedding = nn.Embedding(as_integer("vocab_size", vocab_size, at_least=1), emb_dim)
        self.position_embedding = nn.Embedding(as_integer("context_length", context_length, at_least=1), emb_dim)
        self.dropout = nn.Dropout(as_fraction("dropout", dropout))

    def forward(self, input_ids: Tensor, start: int = 0) -> Tensor:
        """Return the vectors of the tokens at their positions.

        Args:
            input_ids: (…, num_tokens) integers in 0..vocab_size − 1.
            start: the position of the first of them; start + num_tokens ≤ context_length.

        Returns:
            (…, num_tokens, emb_dim).

        Raises:
            TypeError: `input_ids` does not hold integers.
            ValueError: no tokens, more positions than context_length, or an ID outside the
                vocabulary (named, with its index).
        """
        _check_kind(input_ids)
        num_tokens, start = input_ids.shape[-1] if input_ids.dim() else 0, as_integer("start", start, at_least=0)
        context_length = self.position_embedding.num_embeddings
        if num_tokens == 0 or start + num_tokens > context_length:
            after = f" after {start} others" if start else ""
            raise ValueError(
                f"input_ids has {num_tokens} tokens{after}: 1 to {context_length} (context_length) are allowed"
            )
        tokens = self._look_up(input_ids)  # (…, num_tokens) -> (…, num_tokens, emb_dim)
        positions = torch.arange(start, start + num_tokens, device=input_ids.device)
        return self.dropout(tokens + self.position_embedding(positions))  # + (num_tokens, emb_dim)

    def _look_up(self, input_ids: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or not input_ids.is_cpu:  # there a failed look-up cannot be explained
            return self.token_embedding(_checked_ids(input_ids, self.token_embedding.num_embeddings))
        try:
            return self.token_embedding(input_ids)
        except IndexError:  # looked for only now: a check each time would cost each time
            self.check_ids(input_ids)
            raise

    def check_ids(self, input_ids: Tensor) -> None:
        """Raise a TypeError for what are not integers, a ValueError that names the first ID outside the vocabulary."""
        _check_kind(input_ids)
        _check_range(input_ids, self.token_embedding.num_embeddings)


# An operator of our own stays whole in a compiled graph, where a check in Python cannot.
@torch.library.custom_op("text_to_attention::checked_ids", mutates_args=())
def _checked_ids(input_ids: Tensor, vocab_size: int) -> Tensor:
    _check_range(input_ids, vocab_size)
    return input_ids.clone()


@_checked_ids.register_fake
def _(input_ids: Tensor, vocab_size: int) -> Tensor:
    return torch.empty_like(input_ids)


def _check_range(input_ids: Tensor, vocab_size: int) -> None:
    wrong = ((input_ids < 0) | (input_ids >= vocab_size)).nonzero()
    if len(wrong):
        index = wrong[0].tolist()
        raise ValueError(f"input_ids{index} is {input_ids[tuple(index)]}: IDs are 0..{vocab_size - 1} (vocab_size)")


def _check_kind(input_ids: Tensor) -> None:
    kind = input_ids.dtype if isinstance(input_ids, Tensor) else type(input_ids).__name__
    if kind not in (torch.int64, torch.int32):
        raise TypeError(f"input_ids must be a tensor of int64 or int32, not {kind}")
