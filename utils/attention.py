"""Attention, class by class: read down the page to see what each adds to the one before."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.arguments import as_bool, as_fraction, as_integer
from utils.cache import LayerCache


def simple_attention(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return each token's average of all tokens, weighted by their dot product with it; nothing is learned.

    Args:
        inputs: (…, num_tokens, d_in).

    Returns:
        context_vectors: (…, num_tokens, d_in).
        attn_weights: (…, num_tokens, num_tokens); row i says how much token i takes from each token.

    Raises:
        TypeError: `inputs` is not a tensor of floating-point numbers.
        ValueError: `inputs` has fewer than two axes or no tokens.

    >>> context_vectors, attn_weights = simple_attention(torch.zeros(2, 3))
    >>> attn_weights  # equal tokens: each takes half from each
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    _check_tokens(inputs, name="inputs")
    attn_scores = inputs @ inputs.transpose(-2, -1)  # (…, num_tokens, num_tokens)
    attn_weights = torch.softmax(attn_scores, dim=-1)
    return attn_weights @ inputs, attn_weights  # (…, num_tokens, d_in)


class SelfAttention(nn.Module):
    """Attention with learned queries, keys and values: scaled dot products (Vaswani et al. 2017).

    Args:
        d_in: how many entries an input vector has.
        d_out: how many entries queries, keys, values and context vectors have.
        qkv_bias: give the three projections a bias.
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False):
        super().__init__()
        d_in, d_out = as_integer("d_in", d_in, at_least=1), as_integer("d_out", d_out, at_least=1)
        qkv_bias = as_bool("qkv_bias", qkv_bias)
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
            TypeError: `x` is not a tensor of floating-point numbers.
            ValueError: `x` has no tokens, or its last axis is not d_in (both numbers are named).
        """
        return self.attention_weights(x) @ self.W_value(x)


class CausalAttention(SelfAttention):
    """Self-attention in which no token attends to a later one, with dropout on the weights.

    Args:
        d_in, d_out, qkv_bias: as for `SelfAttention`.
        context_length: how many tokens there can be at most.
        dropout: fraction of the attention weights that training sets to zero, in 0..1.
    """

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False):
        super().__init__(d_in, d_out, qkv_bias)
        self.context_length = as_integer("context_length", context_length, at_least=1)
        self.dropout = nn.Dropout(as_fraction("dropout", dropout))

    def attention_weights(self, x: Tensor) -> Tensor:
        """Return (…, num_tokens, num_tokens), before dropout, 0 above the diagonal.

        Args and errors are those of `forward`.
        """
        _check_tokens(x, self.W_query.in_features, self.context_length)
        queries, keys = self.W_query(x), self.W_key(x)  # (…, num_tokens, d_out)
        attn_scores = queries @ keys.transpose(-2, -1)  # (…, num_tokens, num_tokens)
        attn_scores = attn_scores.masked_fill(_future(queries, keys), -torch.inf)
        return torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the context vectors, (…, num_tokens, d_out).

        Args:
            x: (…, num_tokens, d_in), num_tokens ≤ context_length.

        Raises:
            TypeError: `x` is not a tensor of floating-point numbers.
            ValueError: `x` has no tokens or more than context_length, or its last axis is not d_in
                (both numbers are named).
        """
        return self.dropout(self.attention_weights(x)) @ self.W_value(x)


class StackedHeads(nn.Module):
    """Several causal attentions side by side, their context vectors joined and mixed by one more layer.

    Args:
        d_in, context_length, dropout, qkv_bias: as for `CausalAttention`.
        d_out: how many entries a joined context vector has; each head has d_out / num_heads of them.
        num_heads: how many heads; must divide d_out.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False
    ):
        super().__init__()
        num_heads, head_dim = _divide(d_out, num_heads)
        heads = (CausalAttention(d_in, head_dim, context_length, dropout, qkv_bias) for _ in range(num_heads))
        self.heads = nn.ModuleList(heads)
        self.out_proj = nn.Linear(num_heads * head_dim, num_heads * head_dim)

    def attention_weights(self, x: Tensor) -> Tensor:
        """Return (…, num_heads, num_tokens, num_tokens), before dropout."""
        return torch.stack([head.attention_weights(x) for head in self.heads], dim=-3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the context vectors, (…, num_tokens, d_out); args and errors as for `CausalAttention`."""
        joined = torch.cat([head(x) for head in self.heads], dim=-1)  # (…, num_tokens, num_heads · head_dim)
        return self.out_proj(joined)


class MultiHeadAttention(nn.Module):
    """The same as `StackedHeads`, with one projection for all heads, split by view (Vaswani et al. 2017).

    `forward` goes through torch's fused attention: no (num_tokens, num_tokens) tensor is kept, and
    memory grows with num_tokens, not with its square, as long as no dropout is applied. (Several new tokens
    after those in a cache need a mask, which has one entry per new token and key.)

    The arguments are those of `StackedHeads`.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False
    ):
        super().__init__()
        d_in, qkv_bias = as_integer("d_in", d_in, at_least=1), as_bool("qkv_bias", qkv_bias)
        num_heads, self.head_dim = _divide(d_out, num_heads)
        d_out = num_heads * self.head_dim
        self.context_length = as_integer("context_length", context_length, at_least=1)
        self.dropout = nn.Dropout(as_fraction("dropout", dropout))
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def split_heads(self, vectors: Tensor) -> Tensor:
        """Return (…, num_heads, num_tokens, head_dim) of (…, num_tokens, d_out)."""
        # First view, so that a head takes its part of each token; only then swap the axes.
        return vectors.unflatten(-1, (-1, self.head_dim)).transpose(-3, -2)

    def attention_weights(self, x: Tensor) -> Tensor:
        """Return (…, num_heads, num_tokens, num_tokens), before dropout, from the same projections as `forward`."""
        _check_tokens(x, self.W_query.in_features, self.context_length)
        queries, keys = self.split_heads(self.W_query(x)), self.split_heads(self.W_key(x))
        attn_scores = queries @ keys.transpose(-2, -1)  # (…, num_heads, num_tokens, num_tokens)
        attn_scores = attn_scores.masked_fill(_future(queries, keys), -torch.inf)
        return torch.softmax(attn_scores / self.head_dim**0.5, dim=-1)

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        """Return the context vectors, (…, num_tokens, d_out); args and errors as for `CausalAttention`.

        With a cache, `x` holds only the tokens after those in it. They attend to themselves and to all
        in the cache, which keeps them too, and together must not be more than context_length.
        """
        _check_tokens(x, self.W_query.in_features, self.context_length, cache.num_tokens if cache is not None else 0)
        queries = self.split_heads(self.W_query(x))  # (…, num_tokens, d_in) -> (…, num_heads, num_tokens, head_dim)
        keys, values = self.split_heads(self.W_key(x)), self.split_heads(self.W_value(x))
        if cache is not None:
            keys, values = cache.extend(keys, values)  # (…, num_heads, seen + num_tokens, head_dim)
        # dropout_p ignores train() and eval(): it must be 0 in eval.
        heads = _fused_attention(queries, keys, values, self.dropout.p if self.dropout.training else 0.0)
        joined = heads.transpose(-3, -2).flatten(-2)  # (…, num_tokens, num_heads · head_dim)
        return self.out_proj(joined)


def _fused_attention(queries: Tensor, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
    """Return each head's context vectors, (…, num_heads, num_queries, head_dim); the last query is at the last key."""
    # is_causal puts the first query at the first key: wrong where keys from a cache come before it. There a
    # mask does it instead, unless the one new token may attend to all.
    hide = {"is_causal": True}
    if queries.shape[-2] < keys.shape[-2]:
        hide = {"attn_mask": ~_future(queries, keys)} if queries.shape[-2] > 1 else {}
    # torch's attention is fused only with exactly one batch axis: with none or several it builds the square.
    flat = (vectors.reshape(-1, *vectors.shape[-3:]) for vectors in (queries, keys, values))
    heads = F.scaled_dot_product_attention(*flat, dropout_p=dropout, **hide)
    return heads.view(queries.shape)


def _future(queries: Tensor, keys: Tensor) -> Tensor:
    """Return bool, (num_tokens of queries, of keys), True where the key comes after the query and must be hidden."""
    # Made each time rather than kept as a buffer: nothing to save, to move or to lose.
    num_queries, num_keys = queries.shape[-2], keys.shape[-2]
    square = torch.ones(num_queries, num_keys, dtype=torch.bool, device=queries.device)
    return square.triu(diagonal=1 + num_keys - num_queries)  # the last query is at the last key


def _divide(d_out: int, num_heads: int) -> tuple[int, int]:
    """Return num_heads and head_dim."""
    d_out, num_heads = as_integer("d_out", d_out, at_least=1), as_integer("num_heads", num_heads, at_least=1)
    if d_out % num_heads:
        raise ValueError(f"d_out {d_out} cannot be divided among num_heads {num_heads}")
    return num_heads, d_out // num_heads


def _check_tokens(
    x: Tensor, d_in: int | None = None, context_length: int | None = None, seen: int = 0, name: str = "x"
) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{name} must be a tensor of floating-point numbers, not {kind}")
    if x.dim() < 2 or x.shape[-2] == 0 or x.shape[-1] != (d_in or x.shape[-1]):
        shape = f"(…, num_tokens, {d_in or 'd_in'})"
        raise ValueError(f"{name} must have shape {shape} with a token or more, not {tuple(x.shape)}")
    if context_length is not None and seen + x.shape[-2] > context_length:
        in_cache = f" and the cache {seen}" if seen else ""
        raise ValueError(f"{name} has {x.shape[-2]} tokens{in_cache}, more than context_length {context_length}")
