"""A GPT, put together from the parts of the lessons, and how it writes."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from utils.arguments import as_integer, as_fraction
from utils.attention import MultiHeadAttention
from utils.cache import KeyValueCache
from utils.embeddings import TokenAndPositionEmbedding

# The sizes of GPT-2 Small (Radford et al. 2019). Its published weights have qkv biases besides: utils.pretrained.
GPT_CONFIG_124M = {
    "vocab_size": 50_257,
    "context_length": 1_024,
    "emb_dim": 768,
    "n_heads": 12,
    "n_layers": 12,
    "drop_rate": 0.1,
    "qkv_bias": False,
}


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT.

    Args:
        vocab_size: how many tokens there are.
        context_length: how many tokens the model sees at most.
        emb_dim: length of a token's vector, all the way through.
        n_heads: how many heads an attention has; must divide emb_dim.
        n_layers: how many transformer blocks.
        drop_rate: share of entries that training sets to zero, in 0..1.
        qkv_bias: give queries, keys and values a bias; the published GPT-2 has them.
        tie_weights: use the token embedding's table for the logits too.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: a value out of range, or an emb_dim that n_heads does not divide (both are said).

    >>> GPTConfig(**GPT_CONFIG_124M).emb_dim
    768
    """

    vocab_size: int
    context_length: int
    emb_dim: int
    n_heads: int
    n_layers: int
    drop_rate: float
    qkv_bias: bool
    tie_weights: bool = True

    def __post_init__(self):
        for name in ("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers"):
            as_integer(name, getattr(self, name), at_least=1)
        as_fraction("drop_rate", self.drop_rate)
        for name in ("qkv_bias", "tie_weights"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.emb_dim % self.n_heads:
            raise ValueError(f"emb_dim {self.emb_dim} cannot be divided among n_heads {self.n_heads}")


class FeedForward(nn.Module):
    """Two layers with a GELU between them, four times as wide inside; each token is treated on its own."""

    def __init__(self, emb_dim: int):
        super().__init__()
        self.widen = nn.Linear(emb_dim, 4 * emb_dim)
        self.gelu = nn.GELU(approximate="tanh")  # the form that GPT-2 was trained with (Hendrycks and Gimpel 2016)
        self.narrow = nn.Linear(4 * emb_dim, emb_dim)

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, emb_dim) of (…, emb_dim)."""
        return self.narrow(self.gelu(self.widen(x)))  # (…, emb_dim) -> (…, 4 · emb_dim) -> (…, emb_dim)


class TransformerBlock(nn.Module):
    """Attention between tokens, then a feed-forward on each; both are added to what came in (pre-norm)."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        emb_dim, dropout = config.emb_dim, config.drop_rate
        self.norm1 = nn.LayerNorm(emb_dim)
        self.attention = MultiHeadAttention(
            emb_dim, emb_dim, config.context_length, dropout, config.n_heads, config.qkv_bias
        )
        self.norm2 = nn.LayerNorm(emb_dim)
        self.feed_forward = FeedForward(emb_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Return (batch_size, num_tokens, emb_dim) of the same shape; `cache` as for `MultiHeadAttention`."""
        x = x + self.dropout(self.attention(self.norm1(x), cache))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class GPTModel(nn.Module):
    """Token IDs to one score for each token of the vocabulary, at every position (Radford et al. 2019).

    A fresh model's weights are drawn from a normal distribution with standard deviation 0.02, which
    puts its first loss close to ln(vocab_size); biases are 0. The last layer before each of the
    2 · n_layers additions has 0.02 / √(2 · n_layers), so that the sum does not grow with the depth.

    Args:
        config: the sizes.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        if not isinstance(config, GPTConfig):
            raise TypeError(f"config must be a GPTConfig, not {type(config).__name__}: GPTConfig(**GPT_CONFIG_124M)")
        self.config = config
        self.embedding = TokenAndPositionEmbedding(
            config.vocab_size, config.emb_dim, config.context_length, config.drop_rate
        )
        self.blocks = nn.ModuleList(TransformerBlock(config) for _ in range(config.n_layers))
        self.final_norm = nn.LayerNorm(config.emb_dim)
        self.out_head = nn.Linear(config.emb_dim, config.vocab_size, bias=False)
        self.tie_weights()
        self._initialise()

    def tie_weights(self) -> None:
        """Let the head use the token embedding's own table, if the configuration says so."""
        if self.config.tie_weights:
            self.out_head.weight = self.embedding.token_embedding.weight

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        for block in self.blocks:
            for layer in (block.attention.out_proj, block.feed_forward.narrow):
                nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * self.config.n_layers))

    def final_vectors(self, input_ids: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Return the vectors from which the logits are read, (batch_size, num_tokens, emb_dim).

        Args and errors are those of `forward`.
        """
        x = self.embedding(input_ids, start=cache.num_tokens(self.blocks[0].attention) if cache else 0)
        for block in self.blocks:
            x = block(x, cache)
        return self.final_norm(x)

    def forward(self, input_ids: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Return the logits; those at a position are about the token after it.

        Args:
            input_ids: (batch_size, num_tokens) integers in 0..vocab_size − 1, num_tokens ≤ context_length.
            cache: keeps what the model has seen; `input_ids` then are only the tokens after that.

        Returns:
            (batch_size, num_tokens, vocab_size).

        Raises:
            TypeError: `input_ids` holds no integers.
            ValueError: no tokens, more tokens than context_length, or an ID outside the vocabulary.
        """
        return self.out_head(self.final_vectors(input_ids, cache))


@torch.no_grad()
def generate(
    model: GPTModel,
    input_ids: Tensor,
    max_new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue texts, token by token, in eval mode; the model's own mode is left as it was found.

    The model sees the last context_length tokens and no others. Up to there, a new token costs one
    token's work, for keys and values are kept; from there on each costs a whole window, because with
    every step the window's tokens stand at other positions.

    Args:
        model: the model.
        input_ids: (batch_size, num_tokens) integers; num_tokens may exceed context_length.
        max_new_tokens: how many tokens to add to each text; 0 returns the texts as they are.
        temperature: 0 takes the token of the highest logit; else one is drawn from
            softmax(logits / temperature).
        top_k: draw only from the top_k tokens with the highest logits.
        generator: where draws come from; the next call goes on from there. By default a copy of
            torch's random state, which itself is left alone: two calls in a row draw the same.

    Returns:
        (batch_size, num_tokens + max_new_tokens): the texts with what was added.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: empty or misshapen input_ids, an ID outside the vocabulary, max_new_tokens < 0,
            temperature < 0 or not finite, top_k outside 1..vocab_size, or logits that are not numbers.
    """
    _check_decoding(model, input_ids, max_new_tokens, temperature, top_k, generator)
    if generator is None:
        generator = torch.Generator()
        generator.set_state(torch.get_rng_state())
    ids, cache, context_length = input_ids.clone(), None, model.config.context_length
    with evaluating(model):
        for _ in range(max_new_tokens):
            unseen = ids[:, -1:]
            if cache is None or ids.shape[1] > context_length:
                cache, unseen = KeyValueCache(), ids[:, -context_length:]
            final_vectors = model.final_vectors(unseen, cache)[:, -1]  # (batch_size, emb_dim)
            next_ids = _choose(model.out_head(final_vectors), temperature, top_k, generator)  # (batch_size, 1)
            ids = torch.cat([ids, next_ids.to(ids)], dim=1)
    return ids


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into eval mode for a while, and then each of its modules back into its own mode."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def _choose(logits: Tensor, temperature: float, top_k: int | None, generator: torch.Generator) -> Tensor:
    """Return (batch_size, 1): the next ID of each text, of (batch_size, vocab_size) logits."""
    if logits.isnan().any():
        raise ValueError("the model's logits are nan: has its training gone wrong?")
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    logits, ids = logits.topk(logits.shape[-1] if top_k is None else top_k)  # (batch_size, top_k), the highest first
    # In float64 and from the highest down, so that no temperature overflows.
    probabilities = torch.softmax((logits - logits[:, :1]).double() / temperature, dim=-1)
    place = torch.multinomial(probabilities.to(generator.device), 1, generator=generator)
    return ids.gather(-1, place.to(ids.device))


def _check_decoding(
    model: GPTModel,
    input_ids: Tensor,
    max_new_tokens: int,
    temperature: float,
    top_k: int | None,
    generator: torch.Generator | None,
) -> None:
    if not isinstance(model, GPTModel):
        raise TypeError(f"model must be a GPTModel, not {type(model).__name__}")
    if not isinstance(generator, torch.Generator | None):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    model.embedding.check_ids(input_ids)
    if input_ids.dim() != 2 or input_ids.numel() == 0:
        shape = tuple(input_ids.shape)
        raise ValueError(f"input_ids must have shape (batch_size, num_tokens), with a token or more, not {shape}")
    as_integer("max_new_tokens", max_new_tokens, at_least=0)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float | np.number):
        raise TypeError(f"temperature must be a number, not {temperature!r}")
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be 0 or more and finite, not {temperature}")
    if top_k is not None and as_integer("top_k", top_k, at_least=1) > model.config.vocab_size:
        raise ValueError(f"top_k must be from 1 to {model.config.vocab_size} (vocab_size), not {top_k}")
