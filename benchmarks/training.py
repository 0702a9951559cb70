"""Training: time per step beside a loop in the style of nanoGPT. Exit code 1 if a bar is missed."""

import math
import os
from collections.abc import Iterator
from itertools import islice
from operator import truediv
from statistics import median
from time import perf_counter

# As in attention.py: threads that wait for each other soon sleep. Set before torch reads it.
os.environ["GOMP_SPINCOUNT"] = "1000"

import torch
import torch.nn.functional as F
from report import machine, publish, words
from torch import Tensor, nn

from utils.batches import make_loader
from utils.gpt import GPTConfig, GPTModel
from utils.training import train

VOCAB_SIZE, CONTEXT_LENGTH, EMB_DIM, BATCH_SIZE = 84, 24, 192, 32  # lesson 11's
STEPS, WARMUP, LR = 120, 20, 2e-3
CASES = [(1, 2, 1), (2, 4, 1), (1, 2, 2), (2, 4, 2)]  # n_layers, n_heads, threads
OURS, PEER = "train", "nanoGPT's way"


class PeerBlock(nn.Module):
    """Attention with one layer for queries, keys and values, then the feed-forward."""

    def __init__(self, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(EMB_DIM), nn.LayerNorm(EMB_DIM)
        self.qkv, self.out = nn.Linear(EMB_DIM, 3 * EMB_DIM, bias=False), nn.Linear(EMB_DIM, EMB_DIM)
        self.widen, self.narrow = nn.Linear(EMB_DIM, 4 * EMB_DIM), nn.Linear(4 * EMB_DIM, EMB_DIM)

    def forward(self, x: Tensor) -> Tensor:
        heads = [
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1)
        ]
        x = x + self.out(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Peer(nn.Module):
    """The same GPT from torch's own modules, with tied weights and without dropout; returns the loss, as there."""

    def __init__(self, n_layers: int, n_heads: int):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB_SIZE, EMB_DIM), nn.Embedding(CONTEXT_LENGTH, EMB_DIM)
        self.blocks = nn.ModuleList(PeerBlock(n_heads) for _ in range(n_layers))
        self.norm, self.head = nn.LayerNorm(EMB_DIM), nn.Linear(EMB_DIM, VOCAB_SIZE, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, input_ids: Tensor, target_ids: Tensor) -> Tensor:
        x = self.tokens(input_ids) + self.positions(torch.arange(input_ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, VOCAB_SIZE), target_ids.reshape(-1))


@torch.no_grad()
def copy_weights(ours: GPTModel, peer: Peer) -> None:
    peer.tokens.load_state_dict(ours.embedding.token_embedding.state_dict())
    peer.positions.load_state_dict(ours.embedding.position_embedding.state_dict())
    peer.norm.load_state_dict(ours.final_norm.state_dict())
    for block, other in zip(ours.blocks, peer.blocks):
        attention, feed_forward = block.attention, block.feed_forward
        layers = attention.W_query, attention.W_key, attention.W_value
        other.qkv.weight.copy_(torch.cat([layer.weight for layer in layers]))
        pairs = (attention.out_proj, other.out), (feed_forward.widen, other.widen), (feed_forward.narrow, other.narrow)
        for layer, copy in (*pairs, (block.norm1, other.norm1), (block.norm2, other.norm2)):
            copy.load_state_dict(layer.state_dict())


class PeerLoop:
    """One step per call, as nanoGPT's loop does it; the rates are those of `train`."""

    def __init__(self, model: Peer):
        self.model, self.step = model, 0
        groups = [[p for p in model.parameters() if (p.dim() >= 2) is decayed] for decayed in (True, False)]
        groups = [{"params": group, "weight_decay": decay} for group, decay in zip(groups, (0.1, 0.0))]
        self.optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99))

    def __call__(self, input_ids: Tensor, target_ids: Tensor) -> float:
        self.step += 1
        after = (self.step - WARMUP) / (STEPS + 1 - WARMUP)
        rate = LR * self.step / WARMUP if self.step < WARMUP else LR * 0.5 * (1 + math.cos(math.pi * after))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self.model(input_ids, target_ids)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


class TakingTurns:
    """A loader for `train`: on each batch the peer does its step, too, before ours or after it. Both are timed."""

    def __init__(self, batches: list[tuple[Tensor, Tensor]], peer: PeerLoop):
        self.batches, self.peer, self.losses, self.seconds = batches, peer, [], {OURS: [], PEER: []}

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for number, batch in enumerate(self.batches):
            for name in (OURS, PEER)[:: (-1) ** number]:  # to and fro, so that none always follows the same one
                start = perf_counter()
                if name == OURS:
                    yield batch  # `train` asks for the next one when it has done its step
                else:
                    self.losses.append(self.peer(*batch))
                self.seconds[name].append(perf_counter() - start)


def measure(n_layers: int, n_heads: int, threads: int) -> dict:
    """Return the record of a run: milliseconds per step, and the largest difference of two losses."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = GPTModel(GPTConfig(VOCAB_SIZE, CONTEXT_LENGTH, EMB_DIM, n_heads, n_layers, drop_rate=0.0, qkv_bias=False))
    peer = Peer(n_layers, n_heads)
    copy_weights(model, peer)
    # After each number most often the next one comes: something can be learned, as in a text.
    ids = (torch.arange((STEPS + 1) * BATCH_SIZE * CONTEXT_LENGTH + 1) + torch.randint(3, (1,))) % VOCAB_SIZE
    ids = torch.where(torch.rand(ids.shape) < 0.2, torch.randint(VOCAB_SIZE, ids.shape), ids)
    loader = make_loader(ids, context_length=CONTEXT_LENGTH, stride=CONTEXT_LENGTH, batch_size=BATCH_SIZE)
    turns = TakingTurns(list(loader), PeerLoop(peer))
    history = train(model, turns, steps=STEPS, lr=LR, warmup=WARMUP, progress=False)
    differences = [abs(ours - theirs) for ours, theirs in zip(history.losses, turns.losses, strict=True)]
    times = {name: list(islice(found, 10, None)) for name, found in turns.seconds.items()}  # the first ones warm up
    ours, theirs = times[OURS], times[PEER]
    return {"n_layers": n_layers, "n_heads": n_heads, "threads": threads, "steps": len(ours)} | {
        "ms": round(1000 * median(ours), 2),
        "peer_ms": round(1000 * median(theirs), 2),
        "ratio": round(median(map(truediv, ours, theirs)), 3),  # by turns: both saw the same moment
        "ratio_of_minima": round(min(ours) / min(theirs), 3),
        "first_loss": round(history.losses[0], 3),
        "last_loss": round(history.losses[-1], 3),
        "largest_difference": max(differences),
    }


def table(rows: list[dict]) -> str:
    head = "| blocks | heads | threads | train, ms | nanoGPT's way, ms | ratio | of minima | losses differ by |"
    line = (
        "| {n_layers} | {n_heads} | {threads} | {ms:.1f} | {peer_ms:.1f} | {ratio:.3f} | {ratio_of_minima:.3f} "
        "| {largest_difference:.1e} |"
    )
    return "\n".join([head, "| ---: " * 8 + "|", *(line.format(**row) for row in rows)])


def main() -> None:
    facts = machine() | {"emb_dim": EMB_DIM, "context_length": CONTEXT_LENGTH, "batch_size": BATCH_SIZE}
    del facts["torch_threads"]  # they vary
    print(words(facts), "(a minute)\n", flush=True)
    rows = [measure(*case) for case in CASES]
    bars = {}
    for row in rows:
        case = "blocks: {n_layers} with {n_heads} heads each, threads: {threads}".format(**row)
        ratio = row["ratio"]
        bars[f"time per step to nanoGPT's way, {case}: at most 1.02"] = ratio, ratio <= 1.02
    difference = max(row["largest_difference"] for row in rows)
    bars["millionths by which two losses differ: at most 10"] = 1e6 * difference, difference <= 1e-5
    publish("training", facts, table(rows), rows, bars)


if __name__ == "__main__":
    main()
