"""GPT-2's published weights, from the hub or from a folder."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError, safe_open
from torch import Tensor

from utils.gpt import GPTConfig, GPTModel

_PUBLISHED = ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")
# Settings of config.json that change what is computed: the values that GPTModel has, first the default.
_COMPUTED = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
}
# Buffers of the causal mask, which older files hold: h.0.attn.bias and h.0.attn.masked_bias.
_MASK = re.compile(r"h\.\d+\.attn\.(masked_)?bias")


def load_gpt2(name_or_folder: str | Path = "gpt2") -> GPTModel:
    """Return a GPT-2 with published weights, in float32 and in eval mode.

    Args:
        name_or_folder: a folder with config.json and model.safetensors (or its numbered parts),
            as `save_pretrained` writes them; or "gpt2", "gpt2-medium", "gpt2-large" or "gpt2-xl",
            fetched from the hub the first time and taken from its cache on this machine later.

    Raises:
        FileNotFoundError: the folder lacks a file.
        ValueError: no such folder or name; config.json asks for something that GPTModel does not
            compute; a file is damaged; or a tensor is missing, misshapen, unknown, there twice, or
            does not hold floating-point numbers (the first is named).
        OSError: the hub, or something on the way to it, does not hand over the files.
    """
    folder = Path(name_or_folder)
    if not folder.is_dir():
        if str(name_or_folder) not in _PUBLISHED:
            raise ValueError(f"name_or_folder is {str(name_or_folder)!r}: no such folder, and none of {_PUBLISHED}")
        folder = _fetch(str(name_or_folder))
    config = _read_config(folder / "config.json")
    weights = _read_weights(folder, config)
    with torch.device("meta"):  # takes no memory: the weights are there already
        model = GPTModel(config)
    if config.tie_weights:
        weights["out_head.weight"] = weights["embedding.token_embedding.weight"]
    model.load_state_dict(weights, assign=True)
    model.tie_weights()  # the two share their memory already, but are two parameters
    return model.eval()


def _fetch(name: str) -> Path:
    """Return the folder in the hub's cache that holds a published model, after fetching what is not there yet."""
    try:
        return Path(snapshot_download(f"openai-community/{name}", allow_patterns=["config.json", "model*.safetensors"]))
    except Exception as error:
        # A portal's page, a proxy or a token that cannot be used, an endpoint without https://: the hub's client
        # passes on whatever they raise in it, from KeyError to ImportError. Nothing is hidden: it is the cause.
        raise OSError(
            f"{name} could not be fetched from the hub ({type(error).__name__}: {error}). Check the network and, if "
            "they are set, HF_ENDPOINT, HF_TOKEN and the proxy variables such as HTTPS_PROXY; or give a local folder "
            "with config.json and model.safetensors"
        ) from error


def _read_config(path: Path) -> GPTConfig:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(settings, dict):
            raise ValueError("it is not a JSON object")
        for name, allowed in _COMPUTED.items():
            if settings.get(name, allowed[0]) not in allowed:
                raise ValueError(f"{name} is {settings[name]!r}, where GPTModel has {allowed[0]!r}")
        emb_dim = settings["n_embd"]
        if settings.get("n_inner") not in (None, 4 * emb_dim):
            raise ValueError(f"n_inner is {settings['n_inner']}, where GPTModel has 4 · n_embd = {4 * emb_dim}")
        drop_rates = {name: settings.get(name, 0.1) for name in ("attn_pdrop", "embd_pdrop", "resid_pdrop")}
        if len(set(drop_rates.values())) > 1:
            raise ValueError(f"{drop_rates} differ, where GPTModel has one drop_rate")
        return GPTConfig(
            vocab_size=settings["vocab_size"],
            context_length=settings["n_positions"],
            emb_dim=emb_dim,
            n_heads=settings["n_head"],
            n_layers=settings["n_layer"],
            drop_rate=drop_rates["resid_pdrop"],
            qkv_bias=True,
            tie_weights=settings.get("tie_word_embeddings", True),
        )
    except KeyError as error:
        raise ValueError(f"{path}: {error} is missing") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _layout(config: GPTConfig) -> Iterator[tuple[str, tuple[int, ...], list[str]]]:
    """Yield each published tensor in order: its name, its shape, and the parameters that it holds."""
    emb_dim = config.emb_dim
    yield "wte.weight", (config.vocab_size, emb_dim), ["embedding.token_embedding.weight"]
    yield "wpe.weight", (config.context_length, emb_dim), ["embedding.position_embedding.weight"]
    linears = {
        "attn.c_attn": (emb_dim, 3 * emb_dim, ["attention.W_query", "attention.W_key", "attention.W_value"]),
        "attn.c_proj": (emb_dim, emb_dim, ["attention.out_proj"]),
        "mlp.c_fc": (emb_dim, 4 * emb_dim, ["feed_forward.widen"]),
        "mlp.c_proj": (4 * emb_dim, emb_dim, ["feed_forward.narrow"]),
    }
    for n in range(config.n_layers):
        for theirs, ours in (("ln_1", "norm1"), ("ln_2", "norm2")):
            for kind in ("weight", "bias"):
                yield f"h.{n}.{theirs}.{kind}", (emb_dim,), [f"blocks.{n}.{ours}.{kind}"]
        for theirs, (d_in, d_out, ours) in linears.items():
            yield f"h.{n}.{theirs}.weight", (d_in, d_out), [f"blocks.{n}.{part}.weight" for part in ours]
            yield f"h.{n}.{theirs}.bias", (d_out,), [f"blocks.{n}.{part}.bias" for part in ours]
    for kind in ("weight", "bias"):
        yield f"ln_f.{kind}", (emb_dim,), [f"final_norm.{kind}"]
    if not config.tie_weights:
        yield "lm_head.weight", (config.vocab_size, emb_dim), ["out_head.weight"]


def _read_weights(folder: Path, config: GPTConfig) -> dict[str, Tensor]:
    published = _find_tensors(folder)
    weights = {}
    for name, shape, parameters in _layout(config):
        if name not in published:
            raise ValueError(f"{folder}: tensor {name} is missing")
        weights |= zip(parameters, _read_parts(name, *published.pop(name), shape, len(parameters)), strict=True)
    if config.tie_weights and "lm_head.weight" in published:  # a second copy of the table, in some files
        _check_tied(*published.pop("lm_head.weight"), weights["embedding.token_embedding.weight"])
    for name in published:
        if not _MASK.fullmatch(name):
            raise ValueError(f"{folder}: tensor {name} is unknown")
    return weights


def _read_parts(name: str, key: str, path: Path, shape: tuple[int, ...], num_parts: int) -> list[Tensor]:
    """Return a published tensor cut along its last axis, each part in float32, in memory of its own."""
    # The file is mapped into memory while it is open, and what was read of it stays until it is
    # closed: opened again for each tensor, it never takes up more than one.
    with safe_open(path, "pt") as file:
        tensor = file.get_tensor(key)
        if tensor.shape != shape:
            raise ValueError(f"{path}: tensor {name} has shape {tuple(tensor.shape)}, not {shape}")
        if not tensor.is_floating_point():
            raise ValueError(f"{path}: tensor {name} holds {tensor.dtype}, not floating-point numbers")
        parts = tensor.chunk(num_parts, dim=-1)
        if ".c_" in name and len(shape) == 2:  # a layer: published as (in, out), where nn.Linear has (out, in)
            parts = [part.T for part in parts]
        # Copies even of what is float32 already, because the file may go away.
        return [part.to(torch.float32, copy=True, memory_format=torch.contiguous_format) for part in parts]


def _check_tied(key: str, path: Path, table: Tensor) -> None:
    with safe_open(path, "pt") as file:
        if not torch.equal(file.get_tensor(key).float(), table):
            raise ValueError(f"{path}: tensor {key} is not wte.weight, to which config.json ties it")


def _find_tensors(folder: Path) -> dict[str, tuple[str, Path]]:
    """Return for each published name, without the prefix that some files have, its key and its file."""
    paths = [folder / "model.safetensors"]
    if not paths[0].is_file():
        paths = sorted(folder.glob("model-*-of-*.safetensors"))
    if not paths:
        raise FileNotFoundError(f"{folder} has no model.safetensors")
    published = {}
    for path in paths:
        try:
            with safe_open(path, "pt") as file:
                keys = list(file.keys())
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        for key in keys:
            name = key.removeprefix("transformer.")
            if name in published:
                raise ValueError(f"{folder}: tensor {name} is there twice")
            published[name] = key, path
    return published
