"""Train a small GPT on a file: a text, or token IDs."""

import argparse
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from utils.batches import make_loader
from utils.gpt import GPTConfig, GPTModel
from utils.tokenizer import END_OF_TEXT_ID, read_text, text_to_ids
from utils.training import train


def main(arguments: list[str] | None = None) -> int:
    """Train on a file as the command line says; return 0, or 2 for what cannot be done, or 130 after Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m utils.training", description=__doc__)
    parser.add_argument("file", type=Path, help="a text in UTF-8, or token IDs: a flat .npy array of integers")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model, which load_gpt2 reads")
    defaults = {"emb_dim": 96, "n_layers": 2, "n_heads": 4, "context_length": 64, "batch_size": 8, "steps": 300}
    for name, default in (defaults | {"lr": 2e-3, "seed": 0}).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default, help=f"({default})")
    parser.add_argument("--vocab-size", type=int, help="of token IDs (default: the largest one + 1)")
    options = parser.parse_args(arguments)
    try:
        _train_on_file(options)
        return 0
    except KeyboardInterrupt:
        print("interrupted: no model was written", file=sys.stderr)
        return 130
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"{parser.prog}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _train_on_file(options: argparse.Namespace) -> None:
    """Train on all but the end of a file, and write the model in the format of GPT-2's published weights."""
    if importlib.util.find_spec("safetensors") is None or importlib.util.find_spec("huggingface_hub") is None:
        raise ImportError("a model is written with safetensors. Install it with:  pip install -e '.[pretrained]'")
    from utils.pretrained import save_gpt2

    existing = next(path for path in (options.out, *options.out.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):  # better missed now than after training
        raise OSError(f"--out {options.out}: {existing} is not a folder that can be written")
    ids, vocab_size = _read_ids(options.file, options.vocab_size)
    width = options.context_length + 1
    num_held_out = max(width, min(len(ids) // 10, 100 * options.context_length))
    if len(ids) < width + num_held_out:
        raise ValueError(
            f"{options.file} has {len(ids)} tokens: to train and to evaluate, context_length "
            f"{options.context_length} needs at least {2 * width}"
        )
    torch.manual_seed(options.seed)
    sizes = {name: getattr(options, name) for name in ("context_length", "emb_dim", "n_heads", "n_layers")}
    model = GPTModel(GPTConfig(vocab_size, **sizes, drop_rate=0.1, qkv_bias=True))  # with biases, as published
    windows = {"context_length": options.context_length, "batch_size": options.batch_size, "drop_last": False}
    stride = max(1, options.context_length // 8)
    train(
        model,
        make_loader(ids[:-num_held_out], stride=stride, seed=options.seed, **windows),
        steps=options.steps,
        lr=options.lr,
        held_out=make_loader(ids[-num_held_out:], stride=options.context_length, shuffle=False, **windows),
        evaluate_every=max(1, options.steps // 10),
        report=lambda step, loss: tqdm.write(f"step {step}: held-out loss {loss:.3f}"),
    )
    save_gpt2(model, options.out)
    print(f"written: load_gpt2({str(options.out)!r}) reads it")


def _read_ids(path: Path, vocab_size: int | None) -> tuple[np.ndarray | Tensor, int]:
    """Return the token IDs of a file, and how many tokens its vocabulary has."""
    if path.suffix != ".npy":
        if vocab_size is not None:
            raise ValueError("--vocab-size is for token IDs: a text has GPT-2's vocabulary")
        return text_to_ids(read_text(path)), END_OF_TEXT_ID + 1
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a NumPy array of integers: {error}") from None
    if ids.dtype.kind not in "iu" or ids.ndim != 1 or len(ids) == 0:
        raise ValueError(f"{path} must be one row of integers, not {ids.dtype} of shape {ids.shape}")
    low, high = int(ids.min()), int(ids.max())
    vocab_size = high + 1 if vocab_size is None else vocab_size
    if low < 0 or high >= vocab_size:
        raise ValueError(f"{path} has IDs from {low} to {high}: they must be in 0..{vocab_size - 1}")
    return ids, vocab_size


if __name__ == "__main__":
    sys.exit(main())
