"""Multi-head attention in several forms: time and peak memory. Exit code 1 if a bar is missed."""

import argparse
import os
from collections import defaultdict
from functools import partial
from multiprocessing import get_context
from operator import truediv
from pathlib import Path
from statistics import median
from time import perf_counter

# Set before torch reads it: threads that wait for each other soon go to sleep. On a quiet machine this changes no
# times. On a busy one, a thread that spins for milliseconds holds up the one it waits for, and times become random.
os.environ["GOMP_SPINCOUNT"] = "1000"

import torch
import torch.nn.functional as F
from report import machine, publish, words
from torch import Tensor, nn

from utils.attention import MultiHeadAttention, StackedHeads

EMB_DIM, NUM_HEADS = 768, 12  # GPT-2 Small
FORWARD, BOTH, DROPOUT = "forward", "forward+backward", "forward+backward, dropout 0.1"
SIZES = {(256, 1): 15, (512, 1): 11, (1024, 1): 15, (2048, 1): 5, (4096, 1): 3, (256, 4): 9, (1024, 4): 7}  # turns
CASES = [(*size, direction) for direction in (FORWARD, BOTH) for size in SIZES] + [(1024, 1, DROPOUT)]
BARS = {
    (1024, 1): ("ms", 1.05),
    (1024, 4): ("ms", 1.10),
    (4096, 1): ("mib", 1.05),
}  # the most that ours may be relative to the floor, in both directions
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5e-2}  # relative to the largest entry


class Floor(nn.Module):
    """The least that does the work: one layer for queries, keys and values, torch's fused attention, one layer."""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv, self.out_proj = nn.Linear(d_in, 3 * d_out, bias=False), nn.Linear(d_out, d_out)

    def forward(self, x: Tensor) -> Tensor:
        split = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))  # (batch_size, num_tokens, 3, num_heads, head_dim)
        queries, keys, values = split.transpose(1, 3).unbind(2)  # (batch_size, num_heads, num_tokens, head_dim)
        dropout = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        return self.out_proj(heads.transpose(1, 2).flatten(2))


class Plain(MultiHeadAttention):
    """The same split into heads, but all weights are built: (batch_size, num_heads, num_tokens, num_tokens)."""

    def forward(self, x: Tensor) -> Tensor:
        heads = self.dropout(self.attention_weights(x)) @ self.split_heads(self.W_value(x))
        return self.out_proj(heads.transpose(1, 2).flatten(2))


class TorchHeads(nn.MultiheadAttention):
    """Torch's module, with all that its fast path requires: batch first, a bias (0 here), a Boolean mask."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, need_weights=False, fast_path=True):
        super().__init__(d_out, num_heads, dropout, batch_first=True)
        self.need_weights, self.fast_path = need_weights, fast_path
        hidden = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        torch.backends.mha.set_fastpath_enabled(self.fast_path)
        hidden = self.hidden[: x.shape[1], : x.shape[1]]
        return super().forward(x, x, x, attn_mask=hidden, need_weights=self.need_weights, is_causal=True)[0]


FORMS = {
    "StackedHeads": StackedHeads,
    "plain": Plain,
    "nn.MultiheadAttention": partial(TorchHeads, fast_path=False),
    "nn, fast path": TorchHeads,  # never taken where gradients are needed
    "nn, need_weights": partial(TorchHeads, need_weights=True),
    "MultiHeadAttention": MultiHeadAttention,
    "floor": Floor,
}


def build(form: str, case: tuple, place: dict) -> tuple[nn.Module, Tensor, Tensor]:
    """Return the module, x and the upstream gradient; the last two are (batch_size, num_tokens, emb_dim)."""
    T, batch_size, direction = case
    torch.manual_seed(0)
    module = FORMS[form](EMB_DIM, EMB_DIM, T, 0.1 if direction == DROPOUT else 0.0, NUM_HEADS).to(**place)
    x, from_above = torch.randn(2, batch_size, T, EMB_DIM, **place)
    return module.train(direction == DROPOUT), x.requires_grad_(), from_above


def share_weights(modules: dict[str, nn.Module]) -> None:
    state = modules["MultiHeadAttention"].state_dict()
    layers = {name: state[name] for name in ("W_query.weight", "W_key.weight", "W_value.weight")}
    state["qkv.weight"] = state["in_proj_weight"] = torch.cat(list(layers.values()))
    for name, weight in layers.items():
        state |= {f"heads.{head}.{name}": rows for head, rows in enumerate(weight.chunk(NUM_HEADS))}
    for module in modules.values():  # each takes the names that it knows; `times` asserts equal results
        module.load_state_dict(state, strict=False)


def step(module: nn.Module, x: Tensor, from_above: Tensor, direction: str) -> tuple[Tensor, ...]:
    """Return the context vectors and, if there is a backward pass, the gradients of x and of all weights."""
    if direction == FORWARD:
        with torch.inference_mode():
            return (module(x),)
    context_vectors = module(x)
    return context_vectors, *torch.autograd.grad(context_vectors, [x, *module.parameters()], from_above)


def times(forms: list[str], case: tuple, place: dict) -> dict[str, list[float]]:
    """Return milliseconds per step, turn by turn."""
    *size, direction = case
    modules = {form: build(form, case, place)[0] for form in forms}
    inputs = *build("floor", case, place)[1:], direction
    share_weights(modules)
    first, *others = (step(module.eval(), *inputs)[:2] for module in modules.values())  # this also warms up
    for found, wanted in ((f, w) for other in others for f, w in zip(other, first)):  # context vectors, gradient of x
        assert (found - wanted).abs().max() <= TOLERANCE[wanted.dtype] * wanted.abs().max()
    calls, wait = (20, torch.cuda.synchronize) if place["device"] == "cuda" else (1, lambda: None)
    milliseconds = defaultdict(list)
    for turn in range(SIZES[*size]):  # back and forth: a busy moment hits all, and none always follows the same one
        for form in forms[:: (-1) ** turn]:
            modules[form].train(direction == DROPOUT)
            wait()
            start = perf_counter()
            for _ in range(calls):
                step(modules[form], *inputs)
            wait()
            milliseconds[form].append(1000 * (perf_counter() - start) / calls)
    return milliseconds


def peak_so_far(on_gpu: bool) -> float:
    if on_gpu:
        return torch.cuda.max_memory_allocated() / 2**20
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**10


def peak_mib(form: str, case: tuple, place: dict) -> float:
    """Return by how much one step raises the memory in use; on a CPU, call it in a fresh process."""
    torch.set_num_threads(os.cpu_count())
    module, x, from_above = build(form, case, place)
    for T in (16, 16, case[0]):  # two tiny steps first: what torch sets up on first use does not belong to the form
        torch.cuda.reset_peak_memory_stats() if x.is_cuda else Path("/proc/self/clear_refs").write_text("5")
        before = peak_so_far(x.is_cuda)  # the earlier peak has been reset, so this is the memory in use now
        step(module, x[:, :T], from_above[:, :T], case[-1])
    return peak_so_far(x.is_cuda) - before


def records(case: tuple, place: dict) -> list[dict]:
    """Return a record for each form: milliseconds, MiB (for a batch of 1), and their ratios to the floor's."""
    forms = [form for form in FORMS if form != "nn, fast path" or case[-1] == FORWARD]
    ms, mib, found = times(forms, case, place), dict.fromkeys(forms), []
    # Freed memory goes back at once. Otherwise the peak would include what the allocator keeps for later, which varies.
    os.environ["MALLOC_MMAP_THRESHOLD_"] = str(2**16)  # for new processes: it is too late for this one
    with get_context("spawn").Pool(1, maxtasksperchild=1 if place["device"] == "cpu" else None) as fresh_process:
        if case[1] == 1:
            mib = {form: fresh_process.apply(peak_mib, (form, case, place)) for form in forms}
    for form in forms:
        figures = {"ms": median(ms[form]), "mib": mib[form]}
        figures["ms_ratio"] = median(map(truediv, ms[form], ms["floor"]))  # turn by turn: both at the same moment
        figures["mib_ratio"] = mib[form] and mib[form] / mib["floor"]
        rounded = {name: value and float(f"{value:.4g}") for name, value in figures.items()}
        found.append({"form": form} | dict(zip(("T", "batch", "direction"), case)) | rounded)
    return found


def table(rows: list[dict], figure: str) -> str:
    """Return one figure as a Markdown table: one column per form, with the ratio to the floor in brackets."""
    found = defaultdict(lambda: dict.fromkeys(FORMS, "–"))
    for row in (row for row in rows if row[figure]):
        case = "T {T}, batch {batch}, {direction}".format(**row)
        found[case][row["form"]] = f"{row[figure]:,.4g} ({row[f'{figure}_ratio']:.2f})"
    lines = [
        [figure, *FORMS],
        [":---", *["---:"] * len(FORMS)],
        *([case, *cells.values()] for case, cells in found.items()),
    ]
    return "\n".join(f"| {first:46} | " + " | ".join(f"{cell:>21}" for cell in cells) + " |" for first, *cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = vars(parser.parse_args())
    place = options | {"dtype": getattr(torch, options["dtype"])}
    torch.set_num_threads(os.cpu_count())
    gpu = {"gpu": torch.cuda.get_device_name()} if options["device"] == "cuda" else {}
    facts = machine() | gpu | options | {"emb_dim": EMB_DIM, "num_heads": NUM_HEADS}
    print(words(facts), "(about five minutes)\n", flush=True)

    rows, bars = [row for case in CASES for row in records(case, place)], {}
    for row in rows:
        T, batch, direction = row["T"], row["batch"], row["direction"]
        if row["form"] == "MultiHeadAttention" and (T, batch) in BARS and direction != DROPOUT:
            figure, most = BARS[T, batch]
            ratio = row[f"{figure}_ratio"]
            bars[f"{figure} to the floor's, T {T}, batch {batch}, {direction}: at most {most}"] = (ratio, ratio <= most)
    name = "-".join(["attention"] + [value for value in options.values() if value not in ("cpu", "float32")])
    publish(name, facts, table(rows, "ms") + "\n\n" + table(rows, "mib"), rows, bars)


if __name__ == "__main__":
    main()
