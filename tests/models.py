"""Small models, IDs and a tokenizer that several tests share."""

from dataclasses import replace

import torch

from utils.gpt import GPTConfig, GPTModel

SMALL = GPTConfig(
    vocab_size=29, context_length=12, emb_dim=12, n_heads=3, n_layers=2, drop_rate=0.5, qkv_bias=True, tie_weights=True
)


def model_of(seed=0, dtype=torch.float64, kind=GPTModel, **changes):
    """Return a model in eval mode of which no parameter is 0 or 1 by default."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(replace(SMALL, **changes))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += torch.randn_like(parameter) / 3
    return model.to(dtype).eval()


def some_ids(*shape, seed=0, vocab_size=SMALL.vocab_size):
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(seed))


class Bytes:
    """A tokenizer with 256 tokens."""

    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode(errors="replace")
