"""A GPT, put together from the parts of the lessons, and how it generates text."""

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from utils.arguments import as_bool, as_fraction, as_integer, as_number
from utils.attention import MultiHeadAttention
from utils.cache import KeyValueCache, LayerCache
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
        emb_dim: how many entries a token's vector has before and after each block.
        n_heads: how many heads an attention has; must divide emb_dim.
        n_layers: how many transformer blocks.
        drop_rate: fraction of entries that training sets to zero, in 0..1.
        qkv_bias: give queries, keys and values a bias; the published GPT-2 has them.
        tie_weights: use the token embedding's table for the logits too.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: a value out of range, or an emb_dim that n_heads does not divide (both are named).

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
        parse = {"drop_rate": as_fraction, "qkv_bias": as_bool, "tie_weights": as_bool}
        for name, value in list(vars(self).items()):
            parsed = parse[name](name, value) if name in parse else as_integer(name, value, at_least=1)
            object.__setattr__(self, name, parsed)  # the one way to set an attribute of a frozen dataclass
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

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        """Return (batch_size, num_tokens, emb_dim) of the same shape; `cache` as for `MultiHeadAttention`."""
        x = x + self.dropout(self.attention(self.norm1(x), cache))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class GPTModel(nn.Module):
    """Token IDs to one score for each token of the vocabulary, at every position (Radford et al. 2019).

    The weights of a fresh model's embeddings and linear layers are drawn from a normal distribution with
    standard deviation 0.02, which puts its first loss close to ln(vocab_size); biases are 0, scales of norms
    1. The last layer before each of the 2 · n_layers additions has 0.02 / √(2 · n_layers), so that the size
    of the sum does not grow with the depth.

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
        """Let the head use the token embedding's own table, if the configuration says so.

        To be called again after what replaces parameters: load_state_dict(assign=True), to_empty, .to("meta").
        """
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

    def forward(self, input_ids: Tensor, cache: KeyValueCache | None = None, last_only: bool = False) -> Tensor:
        """Return the logits; those at a position are about the token after it.

        Args:
            input_ids: (batch_size, num_tokens) integers in 0..vocab_size − 1, num_tokens ≤ context_length.
            cache: keeps what the model has seen; `input_ids` then holds only the tokens after that.
            last_only: compute the logits at the last position alone.

        Returns:
            (batch_size, num_tokens, vocab_size); with last_only, (batch_size, 1, vocab_size).

        Raises:
            TypeError: `input_ids` does not hold integers.
            ValueError: another shape, no tokens, more tokens than context_length, an ID outside the
                vocabulary, or a cache of another batch size, dtype or device.
        """
        x = self.embedding(input_ids, start=cache.num_tokens if cache is not None else 0)
        if x.dim() != 3:
            raise ValueError(f"input_ids must have shape (batch_size, num_tokens), not {tuple(input_ids.shape)}")
        for number, block in enumerate(self.blocks):
            x = block(x, cache.layer(number) if cache is not None else None)
        logits = self.out_head(self.final_norm(x[:, -1:] if last_only else x))
        if cache is not None:
            cache.num_tokens += input_ids.shape[1]  # only now that every layer has seen them
        return logits


@torch.no_grad()
def generate(
    model: nn.Module,
    input_ids: Tensor,
    max_new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    stop_id: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue texts, token by token, in eval mode; the model's own mode is left as it was found.

    The model sees the last context_length tokens and no others. The first step sends what it sees of the
    texts through it. Up to context_length, each step after that sends one token per text, because keys and
    values are kept; from there on each sends a whole window, because with every step the window's tokens are
    at other positions.

    Padding is a token like any other: the model attends to it, and the text goes on after it. So let
    texts of different lengths be continued one by one, not as a padded batch.

    Args:
        model: a GPTModel, also one inside torch.compile or DistributedDataParallel. Each step calls
            `model(...)`, so forward hooks and a subclass's `forward` take effect.
        input_ids: (batch_size, num_tokens) integers; num_tokens may exceed context_length.
        max_new_tokens: how many tokens to add to each text at most; 0 returns the texts as they are.
        temperature: 0 takes the token of the highest logit; else one is sampled from
            softmax(logits / temperature).
        top_k: sample only from the top_k tokens with the highest logits.
        stop_id: a text that has produced this token is finished and filled up with it; when all texts
            are, no more tokens are added.
        generator: where samples come from; by default torch's own random state, as with torch.multinomial.

    Returns:
        (batch_size, num_tokens + the number of new tokens): the texts with what was added.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: empty or misshapen input_ids, an ID outside the vocabulary, max_new_tokens < 0,
            temperature < 0 or not finite, top_k outside 1..vocab_size, stop_id outside the vocabulary,
            or logits of which the highest is not finite (−inf only forbids a token).
    """
    inner = unwrapped(model)
    inner.embedding.check_ids(input_ids)
    if input_ids.dim() != 2 or input_ids.numel() == 0:
        shape = tuple(input_ids.shape)
        raise ValueError(f"input_ids must have shape (batch_size, num_tokens), with a token or more, not {shape}")
    if not isinstance(generator, torch.Generator | None):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    context_length, vocab_size = inner.config.context_length, inner.config.vocab_size
    max_new_tokens = as_integer("max_new_tokens", max_new_tokens, at_least=0)
    temperature = as_number("temperature", temperature, at_least=0)
    top_k = as_integer("top_k", vocab_size if top_k is None else top_k, at_least=1, at_most=vocab_size)
    if stop_id is not None:
        stop_id = as_integer("stop_id", stop_id, at_least=0, at_most=vocab_size - 1)
    takes = _optional_arguments(inner.forward)

    ids, cache = input_ids.clone(), None
    finished = torch.zeros(len(ids), 1, dtype=torch.bool, device=ids.device)
    with evaluating(model):
        for _ in range(max_new_tokens):
            unseen = ids[:, -1:]
            if cache is None or ids.shape[1] > context_length or "cache" not in takes:
                cache, unseen = KeyValueCache(), ids[:, -context_length:]
            options = {name: value for name, value in (("cache", cache), ("last_only", True)) if name in takes}
            logits = model(unseen, **options)[:, -1]  # (batch_size, vocab_size)
            next_ids = _choose(logits, temperature, top_k, generator).to(ids)  # (batch_size, 1)
            if stop_id is not None:
                next_ids = next_ids.masked_fill(finished, stop_id)
                finished |= next_ids == stop_id
            ids = torch.cat([ids, next_ids], dim=1)
            if stop_id is not None and finished.all():
                break
    return ids


def unwrapped(model: nn.Module) -> GPTModel:
    """Return the GPTModel inside what torch.compile or DistributedDataParallel returns; TypeError if there is none."""
    inner = model
    while isinstance(inner, nn.Module) and not isinstance(inner, GPTModel):
        inner = getattr(inner, "_orig_mod", getattr(inner, "module", None))
    if not isinstance(inner, GPTModel):
        raise TypeError(f"model must be a GPTModel, not {type(model).__name__}")
    return inner


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


def _optional_arguments(forward: Callable) -> set[str]:
    """Return which of GPTModel's optional arguments a forward takes: a subclass's may have none of them."""
    parameters = inspect.signature(forward).parameters.values()
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return {"cache", "last_only"} if anything else {parameter.name for parameter in parameters}


def _choose(logits: Tensor, temperature: float, top_k: int, generator: torch.Generator | None) -> Tensor:
    """Return (batch_size, 1): the next ID of each text, of (batch_size, vocab_size) logits."""
    if not logits.amax(dim=-1).isfinite().all():
        raise ValueError("the model's logits are not finite: has its training gone wrong?")
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    logits, ids = logits.topk(top_k)  # (batch_size, top_k), the highest first
    # In float64 and from the highest down, so that no temperature overflows.
    probabilities = torch.softmax((logits - logits[:, :1]).double() / temperature, dim=-1)
    # Sampled in the logits' own precision, on which it depends what comes of a seed; but float32 at least.
    probabilities = probabilities.to(torch.promote_types(logits.dtype, torch.float32))
    if generator is not None:
        probabilities = probabilities.to(generator.device)
    index = torch.multinomial(probabilities, 1, generator=generator)  # (batch_size, 1)
    return ids.gather(-1, index.to(ids.device))
