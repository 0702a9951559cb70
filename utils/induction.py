"""An induction head with weights set by hand: it predicts what followed the same token the last times."""

import torch
from torch import Tensor, nn

from utils.arguments import as_integer
from utils.attention import MultiHeadAttention
from utils.embeddings import TokenAndPositionEmbedding

CERTAIN = 30.0  # a match gets e³⁰ ≈ 10¹³ times the weight of any other token


class InductionByHand(nn.Module):
    """Two layers of attention, each with a residual connection; no weight of them is trained.

    A token's vector has four parts: `token` and `position`, which the embedding fills in as one-hot vectors, and
    `before` and `prediction`, which are zero at first. Each layer has one head and fills in one of them:
    `previous` copies the token before this one to `before`, and `induction`, the induction head, attends to
    the tokens whose `before` is this token and copies them to `prediction` (Olsson et al. 2022).
    The token at position 0, which has none before it, counts as its own.

    Args:
        vocab_size: how many tokens there are.
        context_length: how many tokens it sees at most, at least 2.
    """

    @torch.no_grad()
    def __init__(self, vocab_size: int, context_length: int):
        super().__init__()
        vocab_size = as_integer("vocab_size", vocab_size, at_least=1)
        context_length = as_integer("context_length", context_length, at_least=2)
        sizes = [vocab_size, context_length, vocab_size, vocab_size]
        token, position, before, self.prediction = torch.arange(sum(sizes)).split(sizes)  # indices of the entries
        self.embedding = TokenAndPositionEmbedding(vocab_size, sum(sizes), context_length)
        self.previous = MultiHeadAttention(sum(sizes), sum(sizes), context_length, dropout=0.0, num_heads=1)
        self.induction = MultiHeadAttention(sum(sizes), sum(sizes), context_length, dropout=0.0, num_heads=1)
        for parameter in self.parameters():
            parameter.zero_()
        self.embedding.token_embedding.weight[:, token] = torch.eye(vocab_size)
        self.embedding.position_embedding.weight[:, position] = torch.eye(context_length)
        set_head(self.previous, query=position[1:], key=position[:-1], value=token, output=before)
        set_head(self.induction, query=token, key=before, value=token, output=self.prediction)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return (batch_size, num_tokens, vocab_size): each token's weight as the next, of (batch_size, num_tokens)."""
        x = self.embedding(input_ids)  # (batch_size, num_tokens, 3 · vocab_size + context_length)
        x = x + self.previous(x)
        x = x + self.induction(x)
        return x[..., self.prediction]

    def attention_weights(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return those of `previous` and of `induction`, each (batch_size, 1, num_tokens, num_tokens)."""
        x = self.embedding(input_ids)
        return self.previous.attention_weights(x), self.induction.attention_weights(x + self.previous(x))


@torch.no_grad()
def set_head(attention: MultiHeadAttention, *, query: Tensor, key: Tensor, value: Tensor, output: Tensor) -> None:
    """Let an attention with one head match entries and copy others; its other weights must be 0.

    Args:
        attention: changed in place.
        query, key: (num_matched,) indices: entry query[i] of a token's vector attends to entry key[i] of other tokens.
        value, output: (num_copied,) indices: entry value[i] of what is attended to is added to entry output[i].
    """
    match, copy = torch.eye(len(query)), torch.eye(len(value))
    attention.W_query.weight[: len(query), query] = CERTAIN * attention.head_dim**0.5 * match
    attention.W_key.weight[: len(key), key] = match
    attention.W_value.weight[: len(value), value] = copy
    attention.out_proj.weight[output, : len(value)] = copy
