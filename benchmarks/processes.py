"""Two processes beside one: time per training step with the same global batch. Exit code 1 if a bar is missed."""

import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

# As in attention.py: threads that wait for each other soon sleep. Set before torch reads it.
os.environ["GOMP_SPINCOUNT"] = "1000"

import torch
from report import machine, publish, words
from torch.optim.optimizer import register_optimizer_step_post_hook

from utils.gpt import GPTConfig, GPTModel
from utils.training import make_distributed_loader, torchrun, train
from utils.training.processes import distributed, process_group, rank_and_world_size

CONTEXT_LENGTH, EMB_DIM, N_HEADS, N_LAYERS, BATCH_SIZE = 128, 192, 6, 4, 16
STEPS, ROUNDS = 14, 3
VOCAB_SIZES = 84, 50257  # with few gradients to average, and with many
WAYS = (1, 1), (1, 2), (2, 1)  # processes, threads of each


def time_steps(vocab_size: int, path: Path) -> None:
    """Write the milliseconds of each step but the first four, which warm up; run by torchrun."""
    times = []
    register_optimizer_step_post_hook(lambda *_: times.append(perf_counter()))
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    with process_group(timeout=60):
        torch.manual_seed(0)
        config = GPTConfig(vocab_size, CONTEXT_LENGTH, EMB_DIM, N_HEADS, N_LAYERS, drop_rate=0.0, qkv_bias=False)
        ids = torch.randint(vocab_size, (8 * BATCH_SIZE * CONTEXT_LENGTH + 1,))
        sizes = {"context_length": CONTEXT_LENGTH, "stride": CONTEXT_LENGTH, "batch_size": BATCH_SIZE}
        train(distributed(GPTModel(config)), make_distributed_loader(ids, **sizes), steps=STEPS, lr=1e-3)
        if rank_and_world_size()[0] == 0:
            found = [1000 * (after - before) for before, after in pairwise(times[3:])]
            path.write_text(" ".join(map(str, found)), encoding="utf-8")


def measure(vocab_size: int, processes: int, threads: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "times"
        command = torchrun(processes, f"--log-dir={folder}", __file__, str(vocab_size), str(path))
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)})
        return [float(number) for number in path.read_text(encoding="utf-8").split()]


def table(rows: list[dict]) -> str:
    head = "| vocabulary | parameters | processes | threads of each | ms per step | to one thread | to two threads |"
    line = (
        "| {vocab_size:,} | {num_parameters:,} | {processes} | {threads_each} | {ms_per_step:.0f} | {ratio:.2f} "
        "| {ratio_to_two_threads:.2f} |"
    )
    return "\n".join([head, "| ---: " * 7 + "|", *(line.format(**row) for row in rows)])


def main() -> None:
    facts = machine() | {"emb_dim": EMB_DIM, "n_layers": N_LAYERS, "context_length": CONTEXT_LENGTH}
    facts["batch_size"] = BATCH_SIZE
    del facts["torch_threads"]  # they vary
    print(words(facts), "(five minutes)\n", flush=True)
    rows, bars = [], {}
    for vocab_size in VOCAB_SIZES:
        config = GPTConfig(vocab_size, CONTEXT_LENGTH, EMB_DIM, N_HEADS, N_LAYERS, drop_rate=0.0, qkv_bias=False)
        size = {"vocab_size": vocab_size, "num_parameters": sum(p.numel() for p in GPTModel(config).parameters())}
        times = {way: [] for way in WAYS}
        for _ in range(ROUNDS):  # by turns, so that all see the same moments of a machine
            for way in WAYS:
                times[way] += measure(vocab_size, *way)
        found = {way: median(milliseconds) for way, milliseconds in times.items()}
        for way, milliseconds in found.items():
            row = {"processes": way[0], "threads_each": way[1], "ms_per_step": round(milliseconds, 1)}
            row["ratio"] = round(milliseconds / found[1, 1], 3)
            rows.append(size | row | {"ratio_to_two_threads": round(milliseconds / found[1, 2], 3)})
        ratio = rows[-1]["ratio_to_two_threads"]
        bars[f"two processes to one with two threads, vocabulary of {vocab_size}: at most 1.5"] = ratio, ratio <= 1.5
    publish("processes", facts, table(rows), rows, bars)


if __name__ == "__main__":
    time_steps(int(sys.argv[1]), Path(sys.argv[2])) if sys.argv[1:] else main()
