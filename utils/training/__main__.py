"""Train a GPT on token IDs or on a text, in this process or in those that torchrun has started."""

import argparse
import importlib.util
import os
import shutil
import sys
import tomllib
import zlib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from utils.arguments import as_integer, as_number
from utils.corpus import open_ids
from utils.gpt import GPTConfig, GPTModel
from utils.tokenizer import read_text, text_to_ids
from utils.training.checkpoints import Checkpoints
from utils.training.loop import train
from utils.training.processes import distributed, make_distributed_loader, process_group, rank_and_world_size


@dataclass(frozen=True)
class Settings:
    """What --config may set, and each flag; batch_size counts the windows of all processes, timeout is in seconds."""

    vocab_size: int = 50257
    context_length: int = 64
    emb_dim: int = 96
    n_heads: int = 4
    n_layers: int = 2
    drop_rate: float = 0.1
    steps: int = 300
    batch_size: int = 8
    accumulation: int = 1
    stride: int | None = None  # context_length
    lr: float = 2e-3
    weight_decay: float = 0.1
    seed: int = 0
    evaluate_every: int = 30
    checkpoint_every: int = 100
    timeout: float = 60.0


def main(arguments: list[str] | None = None) -> int:
    """Train as the command line says; return 0, or 2 for what cannot be done, or 130 after Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m utils.training", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--ids", type=Path, help="token IDs: a .npy file as write_ids writes it")
    source.add_argument("--text", type=Path, help="a text in UTF-8")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model, which load_gpt2 reads")
    parser.add_argument("--config", type=Path, help="settings in TOML, with the names of the flags below")
    for setting in fields(Settings):
        kind = float if setting.type is float else int
        name = f"--{setting.name.replace('_', '-')}"
        parser.add_argument(name, type=kind, default=argparse.SUPPRESS, help=f"({setting.default})")
    options = vars(parser.parse_args(arguments))
    try:
        paths = {name: options.pop(name) for name in ("ids", "text", "out")}
        _train_on_file(**paths, settings=_settings(options.pop("config"), options))
        return 0
    except KeyboardInterrupt:
        print("interrupted. The same line goes on from the last checkpoint, if there is one", file=sys.stderr)
        return 130
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        process = f"process {os.environ['RANK']}: " if "RANK" in os.environ else ""
        print(f"{parser.prog}: {process}error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _settings(path: Path | None, flags: dict) -> Settings:
    """Return the settings of a file, if there is one, over which flags win."""
    try:
        found = {} if path is None else tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:  # not UTF-8, or not TOML
        raise ValueError(f"{path} is not a file in TOML: {error}") from None
    names = [setting.name for setting in fields(Settings)]
    if unknown := [name for name in found if name not in names]:
        raise ValueError(f"{path}: {unknown[0]} is not a setting; there are {', '.join(names)}")
    for setting in fields(Settings):
        if setting.name in found:
            (as_number if setting.type is float else as_integer)(f"{path}: {setting.name}", found[setting.name])
    settings = Settings(**found | flags)
    return replace(settings, stride=settings.context_length if settings.stride is None else settings.stride)


def _train_on_file(ids: Path | None, text: Path | None, out: Path, settings: Settings) -> None:
    """Train on all but the end of a file, and write the model in the format of GPT-2's published weights."""
    if importlib.util.find_spec("safetensors") is None or importlib.util.find_spec("huggingface_hub") is None:
        raise ImportError("a model is written with safetensors. Install it with:  pip install -e '.[pretrained]'")
    from utils.pretrained import save_gpt2

    existing = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):  # better missed now than after training
        raise OSError(f"--out {out}: {existing} is not a folder that can be written")
    context_length, row = settings.context_length, open_ids(ids) if text is None else text_to_ids(read_text(text))
    width = context_length + 1
    num_held_out = max(width, min(len(row) // 10, 100 * context_length))
    if len(row) < width + num_held_out:
        raise ValueError(
            f"{ids or text} has {len(row)} tokens: to train and to evaluate, context_length {context_length} "
            f"needs at least {2 * width}"
        )
    with process_group(settings.timeout) as device:
        rank, world_size = rank_and_world_size()
        largest, checksum = _scan(row) if rank == 0 else (0, 0)  # which process 0 alone needs
        if largest >= settings.vocab_size:
            raise ValueError(f"{ids or text} has IDs up to {largest}: vocab_size {settings.vocab_size} is too small")
        torch.manual_seed(settings.seed)  # the same first weights everywhere, and then dropout of its own
        sizes = {name: getattr(settings, name) for name in ("emb_dim", "n_heads", "n_layers", "drop_rate")}
        model = GPTModel(GPTConfig(settings.vocab_size, context_length, **sizes, qkv_bias=False))
        torch.manual_seed(settings.seed + rank)
        say = tqdm.write if rank == 0 else lambda _: None
        say(f"processes: {world_size} ({device.type}), windows per step: {settings.batch_size}")
        windows = {"context_length": context_length, "batch_size": settings.batch_size}
        same = {name: value for name, value in asdict(settings).items() if name not in ("checkpoint_every", "timeout")}
        same |= {"tokens": len(row), "checksum": checksum}
        checkpoints = out / "checkpoints"
        train(
            distributed(model.to(device)),
            make_distributed_loader(row[:-num_held_out], stride=settings.stride, seed=settings.seed, **windows),
            steps=settings.steps,
            lr=settings.lr,
            weight_decay=settings.weight_decay,
            accumulation=settings.accumulation,
            held_out=make_distributed_loader(row[-num_held_out:], stride=context_length, shuffle=False, **windows),
            evaluate_every=settings.evaluate_every,
            report=lambda step, loss: say(f"step {step}: held-out loss {loss:.3f}"),
            checkpoints=Checkpoints(checkpoints, settings.checkpoint_every, same),
        )
        if rank == 0:
            save_gpt2(model, out)
            shutil.rmtree(checkpoints, ignore_errors=True)  # the run is over
            say(f"written: load_gpt2({str(out)!r}) reads it")


def _scan(ids: np.ndarray | Tensor) -> tuple[int, int]:
    """Return the largest ID, and a checksum by which another file is noticed."""
    largest = checksum = 0
    for start in range(0, len(ids), 2**24):  # in pieces, because they may be more than memory holds
        piece = np.ascontiguousarray(ids[start : start + 2**24])
        largest, checksum = max(largest, int(piece.max())), zlib.crc32(piece, checksum)
    return largest, checksum


if __name__ == "__main__":
    sys.exit(main())
