"""GPT-2's published weights, from the hub or from a folder."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from utils.files import replacing
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


def load_gpt2(name_or_folder: str | Path = "gpt2") -> GPTModel:
    """Return a GPT-2 with published weights, in float32 and in eval mode.

    Args:
        name_or_folder: a folder with config.json and model.safetensors (or its numbered parts), as `save_pretrained`
            writes them; or "gpt2", "gpt2-medium", "gpt2-large" or "gpt2-xl", fetched from the hub and then cached.

    Raises:
        FileNotFoundError: the folder lacks a file.
        ValueError: no such folder or name; config.json asks for what GPTModel does not compute; a file is damaged; or
            a tensor is missing, misshapen, unknown, there twice or not of floating-point numbers (the first is named).
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


def save_gpt2(model: GPTModel, folder: str | Path) -> None:
    """Write a model in the published form: config.json and model.safetensors, as `load_gpt2` reads them.

    Args:
        model: where it has no biases for queries, keys and values, as GPT-2 has them, zeros are written.
        folder: made where it does not exist.

    Raises:
        OSError: a file cannot be written; the weights that were there are as they were.
    """
    folder = Path(folder)
    config, state, tensors = model.config, model.state_dict(), {}
    for name, shape, parameters in _layout(config):
        missing = torch.zeros(shape[-1] // len(parameters))  # biases that the model does without
        parts = _transposed(name, shape, [state.get(parameter, missing) for parameter in parameters])
        tensors[name] = torch.cat(parts, dim=-1).contiguous()
    settings = {"model_type": "gpt2", "vocab_size": config.vocab_size, "n_positions": config.context_length}
    settings |= {"n_embd": config.emb_dim, "n_head": config.n_heads, "n_layer": config.n_layers}
    settings |= dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), config.drop_rate)
    settings["tie_word_embeddings"] = config.tie_weights
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
        "config.json": (json.dumps(settings, indent=2) + "\n").encode(),
    }.items():
        with replacing(folder / name) as file:
            file.write(content)


def _fetch(name: str) -> Path:
    """Return the folder in the hub's cache that holds a published model, after fetching what is not there yet."""
    try:
        return Path(snapshot_download(f"openai-community/{name}", allow_patterns=["config.json", "model*.safetensors"]))
    except Exception as error:
        # A portal's page, a proxy or a token that cannot be used, an endpoint without https://: the hub's client
        # passes on whatever they raise in it, from KeyError to ImportError. Nothing is hidden: it is the cause.
        raise OSError(
            f"{name} was not fetched ({type(error).__name__}: {error}). Check the network, HF_ENDPOINT, HF_TOKEN and "
            "proxy variables such as HTTPS_PROXY; or give a local folder with config.json and model.safetensors"
        ) from error


def _read_config(path: Path) -> GPTConfig:
    try:
        settings = {**json.loads(path.read_bytes())}  # what is not a JSON object is a TypeError
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
    block = {
        "ln_1": ((emb_dim,), ["norm1"]),
        "attn.c_attn": ((emb_dim, 3 * emb_dim), ["attention.W_query", "attention.W_key", "attention.W_value"]),
        "attn.c_proj": ((emb_dim, emb_dim), ["attention.out_proj"]),
        "ln_2": ((emb_dim,), ["norm2"]),
        "mlp.c_fc": ((emb_dim, 4 * emb_dim), ["feed_forward.widen"]),
        "mlp.c_proj": ((4 * emb_dim, emb_dim), ["feed_forward.narrow"]),
    }
    for n in range(config.n_layers):
        for theirs, (shape, ours) in block.items():
            yield f"h.{n}.{theirs}.weight", shape, [f"blocks.{n}.{part}.weight" for part in ours]
            yield f"h.{n}.{theirs}.bias", shape[-1:], [f"blocks.{n}.{part}.bias" for part in ours]
    yield "ln_f.weight", (emb_dim,), ["final_norm.weight"]
    yield "ln_f.bias", (emb_dim,), ["final_norm.bias"]
    if not config.tie_weights:
        yield "lm_head.weight", (config.vocab_size, emb_dim), ["out_head.weight"]


def _read_weights(folder: Path, config: GPTConfig) -> dict[str, Tensor]:
    published = _find_tensors(folder)
    weights = {}
    for name, shape, parameters in _layout(config):
        if name not in published:
            raise ValueError(f"{folder}: tensor {name} is missing")
        weights |= zip(parameters, _read_parts(name, *published.pop(name), shape, len(parameters)))
    table = weights["embedding.token_embedding.weight"]
    head = published.pop("lm_head.weight", None)  # where it is tied, some files hold a second copy of the table
    if head and not torch.equal(table, *_read_parts("lm_head.weight", *head, tuple(table.shape), 1)):
        raise ValueError(f"{folder}: tensor lm_head.weight is not wte.weight, to which config.json ties it")
    for name in published:
        if not re.fullmatch(r"h\.\d+\.attn\.(masked_)?bias", name):  # buffers of the causal mask, in older files
            raise ValueError(f"{folder}: tensor {name} is unknown")
    return weights


def _read_parts(name: str, key: str, path: Path, shape: tuple[int, ...], num_parts: int) -> list[Tensor]:
    """Return a published tensor cut along its last axis, each part in float32, in memory of its own."""
    # What is read of a mapped file stays in memory until the file is closed: opened again for each tensor, it never
    # takes up more than one. All parts are copies, because the file may go away.
    with safe_open(path, "pt") as file:
        tensor = file.get_tensor(key)
        if tensor.shape != shape:
            raise ValueError(f"{path}: tensor {name} has shape {tuple(tensor.shape)}, not {shape}")
        if not tensor.is_floating_point():
            raise ValueError(f"{path}: tensor {name} holds {tensor.dtype}, not floating-point numbers")
        parts = _transposed(name, shape, tensor.chunk(num_parts, dim=-1))
        return [part.to(torch.float32, copy=True, memory_format=torch.contiguous_format) for part in parts]


def _transposed(name: str, shape: tuple[int, ...], parts: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return a layer's weights transposed, others as they are: published are (in, out), nn.Linear has (out, in)."""
    return [part.T for part in parts] if ".c_" in name and len(shape) == 2 else parts


def _find_tensors(folder: Path) -> dict[str, tuple[str, Path]]:
    """Return for each published name, without the prefix that some files have, its key and its file."""
    paths = sorted(folder.glob("model.safetensors")) or sorted(folder.glob("model-*-of-*.safetensors"))
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
