"""Look at each station of the route from text to the next token, and find where two runs part."""

import contextlib
from itertools import zip_longest

import torch
from torch import Tensor, nn

from utils.gpt import unwrapped
from utils.tokenizer import ids_to_text, text_to_ids


class Trace(dict):
    """The stations of one run, in order: name to text or tensor; shown as a table of shapes."""

    def __repr__(self) -> str:
        return "\n".join(
            f"{name:20} {tuple(value.shape) if isinstance(value, Tensor) else repr(value)}"
            for name, value in self.items()
        )


@torch.no_grad()
def trace(model: nn.Module, text: str, tokenizer=None) -> Trace:
    """Run a text through a model and keep what each station gave.

    Args:
        model: a GPTModel, run in the mode that it is in; one inside torch.compile is run uncompiled,
            since a compiled one has no stations.
        text: at least one token, at most the model's context_length.
        tokenizer: anything with encode(text) and decode(ids); by default GPT-2's, for which
            all of `text` is plain text.

    Returns:
        The stations:
        text: str.
        token_ids: (num_tokens,).
        batch: (1, num_tokens).
        token_embeddings: (1, num_tokens, emb_dim).
        position_embeddings: (num_tokens, emb_dim).
        input_embeddings: (1, num_tokens, emb_dim); their sum after dropout, as the first block gets it.
        block_1, block_2, …: (1, num_tokens, emb_dim).
        final_norm: (1, num_tokens, emb_dim).
        logits: (1, num_tokens, vocab_size); what `model(...)` returns.
        next_token: str; of the highest logit at the last position.

    Raises:
        TypeError: `model` is not a GPTModel, or `text` is not a string.
        ValueError: `text` has no tokens or too many, or an ID that the model does not know; or the
            next token is one that GPT-2's tokenizer does not know.
    """
    inner = unwrapped(model)
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    stations = Trace(text=text)
    ids = text_to_ids(text) if tokenizer is None else tokenizer.encode(text)
    stations["token_ids"] = torch.as_tensor(ids, dtype=torch.int64)
    device = inner.out_head.weight.device
    stations["batch"] = stations["token_ids"].unsqueeze(0).to(device)  # (num_tokens,) -> (1, num_tokens)
    modules = {
        "token_embeddings": inner.embedding.token_embedding,
        "position_embeddings": inner.embedding.position_embedding,
        "input_embeddings": inner.embedding,
        **{f"block_{number}": block for number, block in enumerate(inner.blocks, start=1)},
        "final_norm": inner.final_norm,
    }
    with contextlib.ExitStack() as hooks:
        for name, module in modules.items():
            hooks.enter_context(module.register_forward_hook(_keep(stations, name)))
        hooks.enter_context(torch.compiler.set_stance("force_eager"))
        stations["logits"] = model(stations["batch"])
    next_id = int(stations["logits"][0, -1].argmax())
    stations["next_token"] = ids_to_text([next_id]) if tokenizer is None else tokenizer.decode([next_id])
    return stations


def _keep(stations: Trace, name: str):
    def hook(module, inputs, output: Tensor) -> None:
        # A copy: a later step that works in place must not change what was seen here.
        stations[name] = output.detach().clone()

    return hook


def first_difference(expected: Trace, actual: Trace, atol: float = 1e-5) -> str | None:
    """Return the name of the first station at which two runs differ, or None.

    Args:
        expected: a run that is known to be good.
        actual: the run to be looked at.
        atol: how far two numbers may be apart; NaN equals NaN.

    Texts and IDs must be equal, and tensors of the same shape. A station that only one of the runs has
    (one more block, say) is a difference.
    """
    for name, other in zip_longest(expected, actual):
        if name != other:  # the one that only one of the runs has
            return name if other is None or other in expected else other
        if not _same(expected[name], actual[name], atol):
            return name
    return None


def _same(expected, actual, atol: float) -> bool:
    if not isinstance(expected, Tensor) or not isinstance(actual, Tensor):
        return type(expected) is type(actual) and expected == actual
    if expected.shape != actual.shape:
        return False
    if not expected.is_floating_point():
        return torch.equal(expected.cpu(), actual.cpu())
    expected, actual = expected.double().cpu(), actual.double().cpu()
    return torch.allclose(actual, expected, rtol=0, atol=atol, equal_nan=True)
