"""Greedy generation with GPT-2 Small's sizes: tokens per second beside Hugging Face. Exit code 1 if a bar is missed."""

import os
import tempfile
from collections.abc import Callable
from operator import truediv
from statistics import median
from time import perf_counter

# As in attention.py: threads that wait for each other soon sleep. Set before torch reads it.
os.environ["GOMP_SPINCOUNT"] = "1000"

import torch
import transformers
from report import machine, publish, words
from torch import Tensor

from utils.gpt import GPTModel, generate
from utils.pretrained import load_gpt2

NEW, TURNS = 64, 5
CASES = [(1, 16), (4, 16), (1, 512)]  # batch_size, num_tokens of the prompt
OURS, PLAIN, PEER = "ours", "ours, no cache", "Hugging Face"


def without_cache(model: GPTModel, ids: Tensor) -> Tensor:
    for _ in range(NEW):
        ids = torch.cat([ids, model(ids)[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return ids


def ways_to_generate() -> dict[str, Callable[[Tensor], Tensor]]:
    """Return the ways to generate, all with the same random weights."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)
        ours, peer = load_gpt2(folder), transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    settings = {"do_sample": False, "max_new_tokens": NEW, "min_new_tokens": NEW, "pad_token_id": 0}
    return {
        OURS: lambda ids: generate(ours, ids, NEW),
        PLAIN: lambda ids: without_cache(ours, ids),
        PEER: lambda ids: peer.generate(ids, attention_mask=torch.ones_like(ids), **settings),
    }


@torch.no_grad()
def measure(ways: dict[str, Callable[[Tensor], Tensor]], batch_size: int, num_tokens: int) -> list[dict]:
    """Return a record for each way: tokens per second, and their ratio to the peer's."""
    ids = torch.randint(0, 50_257, (batch_size, num_tokens))
    names = [name for name in ways if name != PLAIN or batch_size * num_tokens == 16]  # else it takes minutes
    wanted = ways[PEER](ids)  # which warms up too
    assert all(torch.equal(ways[name](ids), wanted) for name in names)
    speeds = {name: [] for name in names}
    for turn in range(TURNS):  # to and fro: a busy moment strikes all, and none always follows the same one
        for name in names[:: (-1) ** turn]:
            start = perf_counter()
            ways[name](ids)
            speeds[name].append(batch_size * NEW / (perf_counter() - start))
    case = {"batch_size": batch_size, "num_tokens": num_tokens}
    return [
        case
        | {"way": name, "tokens_per_second": round(median(found), 2)}
        | {"ratio": round(median(map(truediv, found, speeds[PEER])), 3)}  # by turns: both saw the same moment
        for name, found in speeds.items()
    ]


def table(rows: list[dict]) -> str:
    lines = ["| batch | prompt | way | tokens/s | to Hugging Face |", "| ---: | ---: | :--- | ---: | ---: |"]
    return "\n".join(
        lines
        + [
            "| {batch_size} | {num_tokens} | {way} | {tokens_per_second:.1f} | {ratio:.2f} |".format(**row)
            for row in rows
        ]
    )


def main() -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(os.cpu_count())
    facts = machine() | {"transformers": transformers.__version__, "new_tokens": NEW}
    print(words(facts), "(about five minutes)\n", flush=True)
    ways = ways_to_generate()
    rows = [row for case in CASES for row in measure(ways, *case)]
    bars = {
        "tokens/s to Hugging Face's, batch {batch_size}, prompt {num_tokens}: at least 1".format(**row): (
            row["ratio"],
            row["ratio"] >= 1,
        )
        for row in rows
        if row["way"] == OURS
    }
    publish("generation", facts, table(rows), rows, bars)


if __name__ == "__main__":
    main()
