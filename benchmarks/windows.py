"""Windows against lists of tensors: build time, memory, batches per second. Exit code 1 if a bar is missed."""

from collections import defaultdict
from itertools import chain, islice, product, repeat
from multiprocessing import get_context
from operator import truediv
from statistics import median
from time import perf_counter

import psutil
import torch
from report import machine, publish, words
from torch.utils.data import DataLoader, Dataset

from utils.batches import TokenWindows, make_loader

CONTEXT_LENGTH = 256
TOKENS, STRIDES, BATCH_SIZES = (10**5, 10**6), (1, 128, 256), (8, 64)
ROUNDS, TURNS, BATCHES = 5, 9, 200  # in each round each way has TURNS turns of BATCHES batches
TOO_LARGE = (10**6, 1)  # for lists: a million pairs of tensors take about a minute and 5 GB; 10^5 tokens replace it


class ListsOfTensors(Dataset):
    """The usual way: every window is cut and copied at building time, and its targets once more."""

    def __init__(self, ids: list[int], context_length: int, stride: int):
        self.inputs, self.targets = [], []
        for start in range(0, len(ids) - context_length, stride):
            self.inputs.append(torch.tensor(ids[start : start + context_length]))
            self.targets.append(torch.tensor(ids[start + 1 : start + context_length + 1]))

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.targets[index]


class ItemByItem(TokenWindows):
    """Our windows without the batched fetch: the loader fetches one at a time and stacks them."""

    __getitems__ = None


def random_ids(tokens: int) -> torch.Tensor:
    return torch.randint(50257, (tokens,), generator=torch.Generator().manual_seed(0))


def mib_added(way: type[Dataset], tokens: int, stride: int) -> float:
    """Return the memory that building adds to that of the tokens; to be called in a fresh process."""
    # Growth of the process is what a machine pays: tensors, the objects around them, what the allocator rounds up.
    # The process is fresh and frees nothing: what is put where something was freed would seem to cost nothing.
    row = random_ids(tokens)
    ids = row.tolist() if way is ListsOfTensors else row
    way(ids[: CONTEXT_LENGTH + 1], CONTEXT_LENGTH, stride)  # what torch sets up at first use is not the dataset's
    before = psutil.Process().memory_info().rss
    _held = way(ids, CONTEXT_LENGTH, stride)  # so that it is not freed before it is measured
    return (psutil.Process().memory_info().rss - before) / 2**20


def build(way: type[Dataset], ids: torch.Tensor | list[int], stride: int) -> tuple[Dataset, float]:
    start = perf_counter()
    dataset = way(ids, CONTEXT_LENGTH, stride)
    return dataset, 1000 * (perf_counter() - start)


def batches_per_second(loader: DataLoader) -> float:
    batches = chain.from_iterable(repeat(loader))  # a short epoch is followed by the next
    next(batches)  # the first epoch's shuffle is not timed
    start = perf_counter()
    for _ in islice(batches, BATCHES):
        pass
    return BATCHES / (perf_counter() - start)


def measure_memory(tokens: int, stride: int, samples: dict[tuple, list[float]]) -> None:
    ways = {"windows": TokenWindows} | ({} if (tokens, stride) == TOO_LARGE else {"lists": ListsOfTensors})
    for name, way in ways.items():
        with get_context("spawn").Pool(1) as fresh_process:
            added = fresh_process.apply(mib_added, (way, tokens, stride))
        samples[tokens, stride, "MiB added by building", name].append(added)


def measure_times(tokens: int, stride: int, samples: dict[tuple, list[float]]) -> None:
    row = random_ids(tokens)
    ids, plain = row.tolist(), {"items": ItemByItem(row, CONTEXT_LENGTH, stride)}
    if (tokens, stride) != TOO_LARGE:
        plain["lists"], milliseconds = build(ListsOfTensors, ids, stride)
        samples[tokens, stride, "ms to build from list", "lists"].append(milliseconds)
    samples[tokens, stride, "ms to build from list", "windows"].append(build(TokenWindows, ids, stride)[1])
    for _ in range(100):
        samples[tokens, stride, "ms to build from tensor", "windows"].append(build(TokenWindows, row, stride)[1])
    for size in BATCH_SIZES:
        loaders = {name: DataLoader(dataset, size, shuffle=True, drop_last=True) for name, dataset in plain.items()}
        loaders["windows"] = make_loader(row, context_length=CONTEXT_LENGTH, stride=stride, batch_size=size)
        for _, (name, loader) in product(range(TURNS), loaders.items()):  # in turns: a busy moment affects all
            samples[tokens, stride, f"batches/s, {size} a batch", name].append(batches_per_second(loader))


def table(figures: dict[tuple, dict[str, float]]) -> str:
    """Return the figures in Markdown."""
    lines = ["|  tokens | stride | figure                  |   lists |   items | windows | w/lists | w/items |"]
    lines += ["| ------: | -----: | :---------------------- | ------: | ------: | ------: | ------: | ------: |"]
    for (tokens, stride, figure), found in figures.items():
        values = [found.get(name) for name in ("lists", "items", "windows", "windows/lists", "windows/items")]
        cells = ["–" if x is None else f"{x:,.0f}" if x >= 1000 else f"{x:.3g}" for x in values]
        lines.append(f"| {tokens:7} | {stride:6} | {figure:23} | " + " | ".join(f"{cell:>7}" for cell in cells) + " |")
    return "\n".join(lines)


def bars(figures: dict[tuple, dict[str, float]]) -> dict[str, tuple[float, bool]]:
    """Return the figure measured for each bar, and whether it passes."""
    few, many = (figures[10**6, stride, "ms to build from tensor"]["windows"] for stride in (256, 1))
    added = max(found["windows"] for (*_, figure), found in figures.items() if "MiB" in figure)
    found = {"build time, 999,744 windows / 3,906 windows: at most 1.5": (many / few, many / few <= 1.5)}
    found["MiB added by building windows, most of all cases: at most 1"] = (added, added <= 1)
    for size in BATCH_SIZES:
        cases = [(10**6, 256), (10**6, 128), (10**5, 1)]  # the last replaces the case too large for lists
        least = min(figures[*case, f"batches/s, {size} a batch"]["windows/lists"] for case in cases)
        found[f"batches/s, {size} a batch, windows/lists, least of all strides: at least 1"] = (least, least >= 1)
    return found


def main() -> None:
    torch.set_num_threads(1)
    facts = machine() | {"context_length": CONTEXT_LENGTH}
    print(words(facts), "(about two minutes)\n", flush=True)
    samples = defaultdict(list)
    for case in product(TOKENS, STRIDES):
        measure_memory(*case, samples)
    for _, case in product(range(ROUNDS), product(TOKENS, STRIDES)):
        measure_times(*case, samples)

    figures = defaultdict(dict)
    for (*key, name), values in sorted(samples.items(), key=lambda item: item[0][:2]):
        figures[tuple(key)][name] = float(f"{median(values):.4g}")
        if name != "windows":
            ratios = map(truediv, samples[*key, "windows"], values)  # in turns too: both saw the same moment
            figures[tuple(key)][f"windows/{name}"] = float(f"{median(ratios):.4g}")
    rows = [dict(zip(("tokens", "stride", "figure"), key)) | found for key, found in figures.items()]
    publish("windows", facts, table(figures), rows, bars(figures))


if __name__ == "__main__":
    main()
