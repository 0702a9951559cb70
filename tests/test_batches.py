"""utils.batches against its contract: a naive loop beside it, memory, random state, and bad input."""

import copy
import itertools
import math
import os
import pickle
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from uuid import uuid4

import numpy as np
import psutil
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from states import random_states
from torch.utils.data import ConcatDataset, DataLoader, DistributedSampler, Subset, random_split

from utils.batches import TokenWindows, make_loader

MEBIBYTE = 2**20


def naive(ids, context_length, stride):
    """Return the windows as a plain loop over lists cuts them."""
    starts = range(0, len(ids) - context_length, stride)
    return [(list(ids[i : i + context_length]), list(ids[i + 1 : i + context_length + 1])) for i in starts]


def as_lists(pairs):
    return [(input_ids.tolist(), target_ids.tolist()) for input_ids, target_ids in pairs]


def some_ids(num_tokens):
    return [7919 * n % 50_257 for n in range(num_tokens)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("token_files")


def mapped(mode, cut=lambda ids: ids, spread=lambda ids: ids, offset=0, dtype=np.uint16):
    """Return a way to map IDs from a file: `spread` says how they lie there, `cut` takes them out again."""

    def make(ids, folder):
        path = folder / f"{uuid4()}.bin"
        path.write_bytes(bytes(offset) + np.array(spread(ids), dtype=dtype).tobytes())
        return cut(np.memmap(path, dtype=dtype, mode=mode, offset=offset))

    return make


def unnamed(ids, folder):
    path = folder / f"{uuid4()}.bin"
    path.write_bytes(np.array(ids, dtype=np.uint16).tobytes())
    with open(os.open(path, os.O_RDWR), "r+b") as file:
        return np.memmap(file, dtype=np.uint16, mode="r+")


def every_second(ids):
    return [n for token in ids for n in (token, 1)]


TABLE = np.dtype([("kind", "u1"), ("token", "<u2")])  # three bytes per row
# Memory-mapped, and open again in another process without a copy.
BY_NAME = {
    "file": mapped("r"),
    "file, r+": mapped("r+"),
    "file, int64": mapped("r", dtype=np.int64),
    "file past a header": mapped("r", offset=6),
    "file past a page": mapped("r", offset=9000),
    "slice": mapped("r", lambda ids: ids[3:][:-2], lambda ids: [1, 2, 3, *ids, 4, 5]),
    "slice of an offset": mapped("r", lambda ids: ids[3:], lambda ids: [1, 2, 3, *ids], offset=9000),
    "every second": mapped("r", lambda ids: ids[::2], every_second),
    "plain array": mapped("r", lambda ids: np.asarray(ids)[1:][::2], lambda ids: [1, *every_second(ids)]),
    "column": mapped("r", lambda ids: ids.reshape(-1, 2)[:, 0], every_second),
}
COPIED = {
    "int64 tensor": lambda ids, folder: torch.tensor(ids),
    "int32 tensor": lambda ids, folder: torch.tensor(ids, dtype=torch.int32),
    "uint16 tensor": lambda ids, folder: torch.tensor(ids).to(torch.uint16),
    "tensor of every second": lambda ids, folder: torch.tensor(ids).repeat_interleave(2)[::2],
    "list": lambda ids, folder: list(ids),
    "int64 array": lambda ids, folder: np.array(ids),
    "uint16 array": lambda ids, folder: np.array(ids, dtype=np.uint16),
    "reversed array": lambda ids, folder: np.array(ids)[::-1].copy()[::-1],
    "file, c": mapped("c"),
    "file without a name": unnamed,
    "reversed file": mapped("r", lambda ids: ids[::-1], lambda ids: ids[::-1]),
    "big-endian file": mapped("r", dtype=">u2"),
    "rows of three bytes": mapped("r", lambda ids: ids["token"], lambda ids: [(0, n) for n in ids], dtype=TABLE),
}
KINDS = BY_NAME | COPIED
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(
    ("stride", "starts"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4]), (5, [0, 5]), (6, [0]), (2**70, [0])]
)
def test_ten_tokens_in_windows_of_four(stride, starts):
    windows = TokenWindows(range(10), context_length=4, stride=stride)
    assert as_lists(windows) == [([*range(start, start + 4)], [*range(start + 1, start + 5)]) for start in starts]


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 15) | st.just(10**6), st.sampled_from(sorted(KINDS)))
def test_windows_are_those_of_a_naive_loop(folder, num_tokens, context_length, stride, kind):
    ids = some_ids(num_tokens)
    row = KINDS[kind](ids, folder)
    count = max(0, math.ceil((num_tokens - context_length) / stride))
    if count == 0:
        with pytest.raises(ValueError, match=rf"\b{num_tokens}\b.*context_length.*\b{context_length + 1}\b"):
            TokenWindows(row, context_length, stride)
        return
    windows = TokenWindows(row, context_length, stride)
    assert len(windows) == count
    assert as_lists(windows) == as_lists(windows.__getitems__(range(count))) == naive(ids, context_length, stride)
    assert windows[0][0].dtype == windows[0][1].dtype == torch.int64


def test_how_many_windows_every_small_text_has():
    """The lesson's formula against the dataset, where it has any windows at all."""
    for num_tokens, length, stride in itertools.product(range(2, 20), range(1, 8), range(1, 10)):
        if num_tokens > length:
            assert len(TokenWindows(range(num_tokens), length, stride)) == math.ceil((num_tokens - length) / stride)


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_what_a_large_stride_leaves_out(length):
    """As lesson 2 says: from L + 1 on, some tokens are never an input; from L + 2 on, some are in no window."""

    def left_out(stride, inputs_only=False):
        windows = [pair[: 1 if inputs_only else 2] for pair in as_lists(TokenWindows(range(40), length, stride))]
        used = {position for parts in windows for part in parts for position in part}
        return sorted(set(range(max(used))) - used)

    assert left_out(length) == left_out(length, inputs_only=True) == left_out(length + 1) == []
    assert left_out(length + 1, inputs_only=True)[0] == left_out(length + 2)[0] - 1 == length


def test_batches_are_copies_of_a_tensor_as_well():
    ids = torch.arange(50)
    for loader in (
        DataLoader(TokenWindows(ids, 4, 2), batch_size=4),
        make_loader(ids, context_length=4, stride=2, batch_size=4),
    ):
        for input_ids, target_ids in loader:
            input_ids.fill_(9)
            target_ids.fill_(9)
    assert ids.tolist() == list(range(50))


def test_indices():
    windows = TokenWindows(range(20), context_length=4, stride=3)
    assert len(windows) == len(list(windows)) == 6, "a plain loop ends"
    assert windows[np.int64(-1)][0].tolist() == windows[5][0].tolist() == [15, 16, 17, 18]
    assert as_lists(windows.__getitems__([4, -1, -6])) == as_lists([windows[4], windows[5], windows[0]])
    assert windows.__getitems__([]) == []


@pytest.mark.parametrize("index", [6, -7, 10**9, 1.0, None, slice(0, 2), True], ids=repr)
def test_an_index_that_is_wrong_is_named(index):
    windows = TokenWindows(range(20), context_length=4, stride=3)
    error, said = (IndexError, f"window {index}.*6") if type(index) is int else (TypeError, "index")
    for fetch in (windows.__getitem__, lambda index: windows.__getitems__([0, index])):
        with pytest.raises(error, match=said):
            fetch(index)


def test_windows_of_an_int64_tensor_are_views():
    ids = torch.arange(1_000_000)
    tracemalloc.start()
    windows = TokenWindows(ids, context_length=8, stride=1)
    assert tracemalloc.get_traced_memory()[1] < 100_000, "no Python object per window"
    tracemalloc.stop()
    for index in (0, 1, 17, -1):
        input_ids, target_ids = windows[index]
        assert input_ids.data_ptr() == ids.data_ptr() + 8 * int(input_ids[0])
        assert target_ids.data_ptr() == input_ids.data_ptr() + 8
    ids[4] = -5
    assert windows[3][0].tolist()[:3] == [3, -5, 5]


def test_a_file_is_read_window_by_window(folder):
    """128 MiB of tokens: neither building nor fetching reads or converts the file."""
    num_tokens, path = 2**26, folder / f"{uuid4()}.bin"
    with path.open("wb") as file:
        file.truncate(2 * num_tokens)
    before = psutil.Process().memory_info().rss
    ids = np.memmap(path, dtype=np.uint16, mode="r")
    windows = TokenWindows(ids, context_length=256, stride=1)
    batch = next(iter(make_loader(ids, context_length=256, stride=256, batch_size=8, shuffle=False)))
    assert psutil.Process().memory_info().rss - before < 40 * MEBIBYTE
    for tensor in (*windows[num_tokens // 2], *windows[-1], *batch):
        assert tensor.untyped_storage().nbytes() <= 8 * 8 * 257, "a copy of no more than was asked for"


@pytest.mark.parametrize("dtype", [np.uint16, np.int64])
@pytest.mark.parametrize("mode", ["r+", "c", "r"])
def test_to_write_into_a_window_never_reaches_the_file(folder, mode, dtype):
    ids = mapped(mode, dtype=dtype)(range(50), folder)
    windows = TokenWindows(ids, context_length=4, stride=2)
    loader = make_loader(ids, context_length=4, stride=2, batch_size=4)
    for input_ids, target_ids in (windows[0], windows[-1], *windows.__getitems__([0, 1]), next(iter(loader))):
        input_ids.fill_(9)
        target_ids.fill_(9)
    ids.flush()
    assert np.fromfile(ids.filename, dtype).tolist() == list(range(50))
    assert as_lists(windows) == naive(range(50), 4, 2)


@every_kind
def test_copies_are_windows_too_and_small(folder, monkeypatch, kind):
    ids = some_ids(600)
    monkeypatch.chdir(folder)
    windows = TokenWindows(KINDS[kind](ids, Path()), context_length=64, stride=1)  # the file has a relative name
    monkeypatch.chdir("/")
    twin = pickle.loads(pickle.dumps(copy.deepcopy(pickle.loads(pickle.dumps(windows)))))  # a worker may start workers
    assert as_lists(twin) == naive(ids, 64, 1)
    assert twin.windows.untyped_storage().nbytes() <= 2 * 8 * 600, "not 65 times the text"
    assert len(pickle.dumps(twin)) < (1000 if kind in BY_NAME else 2 * 8 * 600 + 1000)
    assert kind not in BY_NAME or not twin.ids.flags.writeable
    input_ids, _ = twin[0]
    input_ids.fill_(3)  # a write into a window of the copy: allowed, and of no effect on the first
    assert windows[0][0].tolist() == ids[:64]


def test_changes_that_are_in_no_file_are_not_lost(folder):
    ids = KINDS["file, c"](range(50), folder)
    ids[3] = 777
    assert pickle.loads(pickle.dumps(TokenWindows(ids, 4, 4)))[0][0].tolist() == [0, 1, 2, 777]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a file that is mapped")
@pytest.mark.parametrize(("left", "error"), [(None, FileNotFoundError), (98, ValueError), (0, ValueError)])
def test_a_file_that_has_gone_or_shrunk_is_named(folder, left, error):
    ids = KINDS["file"](range(50), folder)
    path, windows = Path(ids.filename), TokenWindows(ids, 4, 2)
    pickled, content = pickle.dumps(windows), path.read_bytes()
    path.unlink()  # and not cut short: who reads a mapped file past its end is killed
    if left is not None:
        path.write_bytes(content[:left])
    for function in (lambda: pickle.loads(pickled), lambda: pickle.dumps(windows)):
        with pytest.raises(error, match=path.name):
            function()
    assert as_lists(windows) == naive(range(50), 4, 2)


WORKERS = """
import sys
import numpy as np
import psutil
import torch
import torch.multiprocessing
from states import random_states
from utils.batches import make_loader

def loader(num_workers):
    ids = np.memmap(sys.argv[1], dtype=np.uint16, mode="r")[1:]
    # Eight windows far apart: of the file, at most 2 MiB each are mapped where only one process reads them.
    return make_loader(ids, context_length=256, stride=2**22, batch_size=1, num_workers=num_workers)

def private_mebibytes(process):
    if sys.platform == "darwin":
        return 0  # there, only root may ask about another process
    return process.memory_full_info().uss / 2**20

if __name__ == "__main__":
    torch.multiprocessing.set_start_method("spawn")
    before, own, process = random_states(), list(loader(0)), psutil.Process()
    alone = private_mebibytes(process)
    workers = iter(loader(2))
    assert all(torch.equal(*pair) for mine in own for pair in zip(mine, next(workers), strict=True))
    # All processes have imported the same modules: what a worker has more than this one had is the IDs.
    print(max(map(private_mebibytes, process.children())) - alone)
    assert list(workers) == []
    assert random_states() == before
"""


def test_two_workers_under_spawn(tmp_path):
    """Two processes that import the class fetch what one does, without a copy of the file, and stderr is empty."""
    path, script = tmp_path / "large.bin", tmp_path / "workers.py"
    np.arange(32 * MEBIBYTE, dtype=np.uint16).tofile(path)
    script.write_text(WORKERS, encoding="utf-8")
    tests = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, script, path], env=environment, capture_output=True, encoding="utf-8", timeout=300
    )
    path.write_bytes(b"")
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) < 20, "MiB"


def starts(loader):
    """The first token of each window, of a text in which each token is followed by the next number."""
    batches = list(loader)
    assert all(torch.equal(target_ids, input_ids + 1) for input_ids, target_ids in batches)
    return [int(row[0]) for input_ids, _ in batches for row in input_ids]


@every_kind
def test_batches_hold_the_windows_of_any_kind_of_ids(folder, kind):
    ids, row = some_ids(20), KINDS[kind](some_ids(20), folder)
    own = make_loader(row, context_length=4, stride=3, batch_size=4, shuffle=False, drop_last=False)
    for loader in (own, DataLoader(TokenWindows(row, context_length=4, stride=3), batch_size=4)):
        batches = list(loader)
        assert as_lists(itertools.chain(*(zip(*batch, strict=True) for batch in batches))) == naive(ids, 4, 3)
        for part in itertools.chain(*batches):
            assert part.dtype == torch.int64
            assert part.is_contiguous()


@pytest.mark.parametrize("of_loader", [False, True])
def test_torchs_tools_take_windows(of_loader):
    windows = TokenWindows(range(20), context_length=4, stride=3)
    if of_loader:
        windows = make_loader(range(20), context_length=4, stride=3, batch_size=2).dataset
    samples = [*DataLoader(windows, batch_size=4, collate_fn=lambda samples: samples)]  # a collate_fn of one's own
    assert [len(batch) for batch in samples] == [4, 2]
    assert as_lists(itertools.chain(*samples)) == naive(range(20), 4, 3)
    assert starts(DataLoader(Subset(windows, [4, 1, -1]), batch_size=2)) == [12, 3, 15]
    assert starts(DataLoader(ConcatDataset([windows, windows]), batch_size=5)) == 2 * [0, 3, 6, 9, 12, 15]
    parts = random_split(windows, [4, 2], generator=torch.Generator().manual_seed(0))
    assert sorted(start for part in parts for start in starts(DataLoader(part, batch_size=3))) == [0, 3, 6, 9, 12, 15]
    samplers = [DistributedSampler(windows, num_replicas=2, rank=rank, shuffle=False) for rank in (0, 1)]
    assert [starts(DataLoader(windows, batch_size=2, sampler=s)) for s in samplers] == [[0, 6, 12], [3, 9, 15]]


def loader_of(num_tokens=200, **changed):
    arguments = {"context_length": 4, "stride": 3, "batch_size": 5}
    return make_loader(torch.arange(num_tokens), **arguments | changed)


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_window_once_an_epoch(shuffle):
    every, before = list(range(0, 196, 3)), random_states()
    whole = loader_of(drop_last=False, shuffle=shuffle)
    for _ in range(2):
        assert (starts(whole) == every) != shuffle
        assert sorted(starts(whole)) == every
    assert [len(input_ids) for input_ids, _ in whole] == 13 * [5] + [1]
    assert (len(whole), whole.batch_size, whole.drop_last, whole.num_workers) == (14, 5, False, 0)
    assert random_states() == before, "the caller's"


def test_full_batches_are_gathered_at_once(monkeypatch):
    monkeypatch.setattr(TokenWindows, "__getitem__", None)  # a window on its own
    seen = starts(loader_of())
    assert len(set(seen)) == len(seen) == 5 * len(loader_of()) == 65, "the last is not full, and left out"
    assert [len(loader_of(batch_size=size)) for size in (1, 66)] == [66, 1]


def test_shuffling_is_set_by_the_seed_alone():
    epochs = []
    for own_seed in (1, 2):
        torch.manual_seed(own_seed)
        np.random.seed(own_seed)
        random.seed(own_seed)
        loader = loader_of(seed=7)
        epochs.append([starts(loader), starts(loader), starts(loader)])
    assert epochs[0] == epochs[1]
    assert len({tuple(epoch) for epoch in epochs[0]}) == 3, "each epoch is shuffled again"
    others = [starts(loader_of(seed=seed)) for seed in (-(2**63), 8, 2**64 - 1)]
    assert len({*map(tuple, [epochs[0][0], *others])}) == 4, "from torch's least seed to its greatest"
    assert starts(loader_of()) == starts(loader_of(seed=0)) != sorted(starts(loader_of())), "by default"
    in_turns = zip(loader_of(seed=7), loader_of(seed=2), strict=True)
    assert [int(first[0, 0]) for (first, _), _ in in_turns] == epochs[0][0][::5], "whatever another loader does"


# Bad input


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        *((name, 0, ValueError) for name in ("context_length", "stride", "batch_size")),
        *(("num_workers", -1, ValueError), ("batch_size", 2**64, ValueError)),
        *(("seed", seed, ValueError) for seed in (-(2**63) - 1, 2**64)),
        *((name, 1.0, TypeError) for name in ("context_length", "stride", "batch_size", "num_workers", "seed")),
        *((name, value, TypeError) for name in ("shuffle", "drop_last") for value in ("no", 0, None)),
    ],
)
def test_an_argument_that_is_wrong_is_named(name, value, error):
    with pytest.raises(error, match=f"^{name} must be .*, not {value!r}"):
        loader_of(**{"drop_last": False, name: value})


@pytest.mark.parametrize("name", ["context_length", "stride", "batch_size", "seed"])
def test_numbers_are_integers_of_any_library(name):
    for value in (np.uint8(255), torch.tensor(255)):  # 255 + 1 is 0 in eight bits
        ours, theirs = (list(loader_of(600, drop_last=False, **{name: number})) for number in (value, 255))
        assert all(map(torch.equal, itertools.chain(*ours), itertools.chain(*theirs)))


@pytest.mark.parametrize(("num_tokens", "context_length"), [(4, 4), (0, 4), (9, 2**70)])
def test_a_text_too_short_for_one_window(num_tokens, context_length):
    with pytest.raises(ValueError, match=rf"\b{num_tokens}\b.*\b{context_length + 1}\b"):
        make_loader([3] * num_tokens, context_length=context_length, stride=1, batch_size=1)


ROWS = [torch.zeros(3, 9, dtype=torch.int64), np.zeros((3, 9), dtype=">u2"), [[1, 2, 3], [4, 5, 6]], 5]
NUMBERS = [[1.0, 2.0], [1, 2.5], torch.ones(9), np.ones(9), np.ones(9)[::-1], torch.ones(9, dtype=torch.complex64)]
BOOLS = [[True, False], [1, True, 3], torch.tensor([True, False]), np.array([True, False])]
OTHERS = ["Every effort", ["Every", "effort"], np.array(["Every", "effort"]), [None, None], None, {1, 2, 3}]


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        *((ids, ValueError, r"ids.*\(") for ids in ROWS),
        *((ids, TypeError, "ids.*integers") for ids in [*NUMBERS, *BOOLS, *OTHERS, [[1], [2, 3]], [2**70, 1, 2]]),
    ],
    ids=repr,
)
def test_ids_are_one_row_of_integers(ids, error, said):
    with pytest.raises(error, match=said):
        TokenWindows(ids, 1, 1)


def test_an_empty_loader_is_refused():
    with pytest.raises(ValueError, match=r"\b6 windows.*\b8\b.*drop_last"):
        loader_of(10, stride=1, batch_size=8)
    assert starts(loader_of(10, stride=1, batch_size=8, drop_last=False, shuffle=False)) == [0, 1, 2, 3, 4, 5]
