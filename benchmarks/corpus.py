"""From texts to a file of token IDs: time beside a process pool, and memory. Exit code 1 if a bar is missed."""

import os
import random
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import truediv
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from report import machine, publish, words

from utils.corpus import write_ids
from utils.tokenizer import END_OF_TEXT_ID, get_tokenizer, read_text

CORES, TURNS = os.cpu_count(), 7
BYTES, PARAGRAPHS = 40 * 10**6, (2, 100)  # per document: about 330 bytes, and 17,000
OURS, PEER = "write_ids", "process pool"


def documents(num_bytes: int, num_paragraphs: int) -> list[str]:
    """Return texts made of the story: paragraphs in random order, each with a number of its own."""
    choice, found, total = random.Random(0), [], 0
    story = [paragraph for paragraph in read_text("the_night_ferry.txt").split("\n\n") if paragraph]
    while total < num_bytes:
        some = choice.choices(story, k=num_paragraphs)
        found.append("\n\n".join(f"{choice.randrange(10**6)} {paragraph}" for paragraph in some))
        total += len(found[-1].encode())
    return found


def encoded(text: str) -> list[int]:
    return [*get_tokenizer().encode_ordinary(text), END_OF_TEXT_ID]


def with_a_pool(texts: list[str], path: Path) -> int:
    """Write the same file in the usual way: processes encode, and all of it is put together in memory."""
    with get_context("fork").Pool(CORES) as pool:
        rows = pool.map(encoded, texts)
    ids = np.concatenate([np.array(row, dtype=np.uint16) for row in rows])
    np.save(path, ids)
    return len(ids)


def seconds(work: Callable[..., int], *arguments: object) -> float:
    start = perf_counter()
    work(*arguments)
    return perf_counter() - start


def measure(num_paragraphs: int, folder: Path) -> dict:
    texts, ways = documents(BYTES, num_paragraphs), {OURS: write_ids, PEER: with_a_pool}
    paths, times = {name: folder / f"{name}.npy" for name in ways}, {name: [] for name in ways}
    for turn in range(TURNS + 1):
        for name in list(ways)[:: (-1) ** turn]:  # to and fro, so that none always follows the same one
            times[name].append(seconds(ways[name], texts, paths[name]))
    assert paths[OURS].read_bytes() == paths[PEER].read_bytes()
    ours, peer = (times[name][1:] for name in (OURS, PEER))  # the first turn warms up
    return {"documents": len(texts), "bytes_each": BYTES // len(texts), "tokens": len(np.load(paths[OURS]))} | {
        "seconds": round(median(ours), 3),
        "peer_seconds": round(median(peer), 3),
        "megabytes_per_second": round(BYTES / 10**6 / median(ours), 1),
        "ratio": round(median(map(truediv, ours, peer)), 3),  # by turns: both saw the same moment
    }


def peak_mib() -> float:
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**10


def read_and_split(source: Path, path: Path) -> int:
    """The usual way again, for a file: its text is read, and cut into documents where a line is empty."""
    return with_a_pool(source.read_text(encoding="utf-8").split("\n\n"), path)


def added(way: Callable[[Path, Path], int], source: Path, tiny: Path, path: Path) -> dict:
    """Return by how much a file raises the peak memory of this process, which must be a fresh one, and the time."""
    way(tiny, path)  # what is set up on first use does not count
    before = peak_mib()
    taken = seconds(way, source, path)
    return {
        "mib": round(peak_mib() - before),
        "seconds": round(taken, 1),
        "ids_mib": round(path.stat().st_size / 2**20),
    }


def memory(folder: Path) -> list[dict]:
    """Return the records of both ways, each in a fresh process; a file is deleted before the next one is made."""
    rows, source, tiny = [], folder / "large.txt", folder / "tiny.txt"
    tiny.write_text("One line.\n\nAnother one.", encoding="utf-8")
    block = "".join(f"{text}\n\n" for text in documents(10**7, PARAGRAPHS[1])).encode()
    for way, name, num_blocks in ((write_ids, OURS, 100), (read_and_split, PEER, 10)):
        with source.open("wb") as file:
            for _ in range(num_blocks):
                file.write(block)
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            found = fresh.submit(added, way, source, tiny, folder / "large.npy").result()
        rows.append({"way": name, "megabytes": round(source.stat().st_size / 10**6)} | found)
        source.unlink()
    return rows


def table(rows: list[dict]) -> str:
    head = "| documents | bytes each | write_ids, s | process pool, s | ratio | write_ids, MB/s |"
    line = (
        "| {documents:,} | {bytes_each:,} | {seconds:.2f} | {peer_seconds:.2f} | {ratio:.3f} "
        "| {megabytes_per_second:.1f} |"
    )
    return "\n".join([head, "| ---: " * 6 + "|", *(line.format(**row) for row in rows)])


def memory_table(rows: list[dict]) -> str:
    head = "| one file | MB of text | MiB of IDs | MiB added | s |"
    line = "| {way} | {megabytes:,} | {ids_mib} | {mib:,} | {seconds:.1f} |"
    return "\n".join([head, "| --- " + "| ---: " * 4 + "|", *(line.format(**row) for row in rows)])


def main() -> None:
    facts = machine()
    del facts["torch_threads"]  # torch does nothing here
    print(words(facts), "(two minutes)\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(num_paragraphs, Path(folder)) for num_paragraphs in PARAGRAPHS]
        large = memory(Path(folder))
    bars = {}
    for row in rows:
        size = f"{row['documents']:,} documents of {row['bytes_each']:,} bytes"
        bars[f"time to a process pool's, {size}: at most 1.0"] = row["ratio"], row["ratio"] <= 1
    mib = large[0]["mib"]
    bars[f"MiB added by a file of {large[0]['megabytes']:,} MB: at most 300"] = mib, mib <= 300
    publish("corpus", facts, f"{table(rows)}\n\n{memory_table(large)}", [*rows, *large], bars)


if __name__ == "__main__":
    main()
