"""Attention, class by class: read down the page to see what each adds to the one before."""

import torch
from torch import Tensor, nn

from utils.tokenizer import as_integer


def simple_attention(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return each token's average of all tokens, weighted by their dot product with it; nothing is learned.

    Args:
        inputs: (…, num_tokens, d_in).

    Returns:
        context_vectors: (…, num_tokens, d_in).
        attn_weights: (…, num_tokens, num_tokens); row i says how much token i takes from each token.

    Raises:
        ValueError: `inputs` has fewer than two axes or no tokens.

    >>> context_vectors, attn_weights = simple_attention(torch.zeros(2, 3))
    >>> attn_weights  # alike, so each takes half from each
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    _check_tokens(inputs, inputs.shape[-1] if inputs.dim() else 0)
    attn_scores = inputs @ inputs.transpose(-2, -1)  # (…, num_tokens, num_tokens)
    attn_weights = torch.softmax(attn_scores, dim=-1)
    return attn_weights @ inputs, attn_weights  # (…, num_tokens, d_in)


class SelfAttention(nn.Module):
    """Attention with learned queries, keys and values: scaled dot products (Vaswani et al. 2017).

    Args:
        d_in: length of the input vectors.
        d_out: length of queries, keys, values and context vectors.
        qkv_bias: give the three projections a bias.
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False):
        super().__init__()
        d_in, d_out = as_integer("d_in", d_in, at_least=1), as_integer("d_out", d_out, at_least=1)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def attention_weights(self, x: Tensor) -> Tensor:
        """Return (…, num_tokens, num_tokens): row i says how much token i takes from each token.

        Args and errors are those of `forward`.
        """
        _check_tokens(x, self.W_query.in_features)
        queries = self.W_query(x)  # (…, num_tokens, d_in) -> (…, num_tokens, d_out)
        keys = self.W_key(x)  # (…, num_tokens, d_out)
        attn_scores = queries @ keys.transpose(-2, -1)  # (…, num_tokens, num_tokens)
        return torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the context vectors.

        Args:
            x: (…, num_tokens, d_in).

        Returns:
            (…, num_tokens, d_out).

        Raises:
            ValueError: `x` has no tokens, or its last axis is not d_in (both numbers are said).
        """
        return self.attention_weights(x) @ self.W_value(x)


def _check_tokens(x: Tensor, d_in: int) -> None:
    if x.dim() < 2 or x.shape[-2] == 0 or x.shape[-1] != d_in or d_in == 0:
        raise ValueError(
            f"x must have shape (…, num_tokens, {d_in or 'd_in'}) with a token or more, not {tuple(x.shape)}"
        )
