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

import numpy as np
import psutil
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from states import random_states
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, DistributedSampler, Subset, random_split

from utils import batches
from utils.batches import TokenWindows, make_loader

moderate = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
MEBIBYTE = 2**20


def naive(ids, context_length, stride):
    """Return the windows as a plain loop over lists cuts them."""
    starts = range(0, len(ids) - context_length, stride)
    return [(list(ids[i : i + context_length]), list(ids[i + 1 : i + context_length + 1])) for i in starts]


def as_lists(pairs):
    return [(input_ids.tolist(), target_ids.tolist()) for input_ids, target_ids in pairs]


def some_ids(num_tokens):
    return [7919 * n % 50_257 for n in range(num_tokens)]


def held_bytes(windows):
    """Return the bytes of all tensors and arrays that an object keeps, each piece of memory once."""
    storages = {}
    for value in vars(windows).values():
        if isinstance(value, np.ndarray):
            storages[value.ctypes.data] = value.nbytes
        elif isinstance(value, Tensor):
            storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
    return sum(storages.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("token_files")


numbers = itertools.count()


def mapped(mode, cut=lambda ids: ids, spread=lambda ids: ids, offset=0, dtype=np.uint16):
    """Return a way to map IDs from a file: `spread` says how they lie there, `cut` takes them out again."""

    def make(ids, folder):
        path = folder / f"tokens_{next(numbers)}.bin"
        path.write_bytes(bytes(offset) + np.array(spread(ids), dtype=dtype).tobytes())
        return cut(np.memmap(path, dtype=dtype, mode=mode, offset=offset))

    return make


def loaded(mode):
    def make(ids, folder):
        path = folder / f"tokens_{next(numbers)}.npy"
        np.save(path, np.array(ids, dtype=np.uint16))
        return np.load(path, mmap_mode=mode)

    return make


def every_second(ids):
    return [n for token in ids for n in (token, 1)]


def unnamed(ids, folder):
    path = folder / f"tokens_{next(numbers)}.bin"
    path.write_bytes(np.array(ids, dtype=np.uint16).tobytes())
    with open(os.open(path, os.O_RDWR), "r+b") as file:
        return np.memmap(file, dtype=np.uint16, mode="r+")


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
    "npy": loaded("r"),
    "npy, r+": loaded("r+"),
}
COPIED = {
    "int64 tensor": lambda ids, folder: torch.tensor(ids),
    "int32 tensor": lambda ids, folder: torch.tensor(ids, dtype=torch.int32),
    "uint16 tensor": lambda ids, folder: torch.tensor(ids).to(torch.uint16),
    "tensor of every second": lambda ids, folder: torch.tensor(ids).repeat_interleave(2)[::2],
    "list": lambda ids, folder: list(ids),
    "tuple": lambda ids, folder: tuple(ids),
    "int64 array": lambda ids, folder: np.array(ids),
    "uint16 array": lambda ids, folder: np.array(ids, dtype=np.uint16),
    "reversed array": lambda ids, folder: np.array(ids)[::-1].copy()[::-1],
    "file, c": mapped("c"),
    "npy, c": loaded("c"),
    "file without a name": unnamed,
    "reversed file": mapped("r", lambda ids: ids[::-1], lambda ids: ids[::-1]),
    "big-endian file": mapped("r", dtype=">u2"),
    "rows of three bytes": mapped("r", lambda ids: ids["token"], lambda ids: [(0, n) for n in ids], dtype=TABLE),
}
KINDS = BY_NAME | COPIED
every_kind = pytest.mark.parametrize("kind", KINDS)


# The formula and the contents, for every kind of IDs


@pytest.mark.parametrize(
    ("stride", "starts"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4]), (5, [0, 5]), (6, [0]), (2**70, [0])]
)
def test_counting_numbers(stride, starts):
    windows = TokenWindows(range(10), context_length=4, stride=stride)
    assert len(windows) == len(starts)
    for (input_ids, target_ids), start in zip(windows, starts, strict=True):
        assert input_ids.tolist() == list(range(start, start + 4))
        assert target_ids.tolist() == list(range(start + 1, start + 5))


@moderate
@given(
    st.integers(1, 60),
    st.integers(1, 12),
    st.one_of(st.integers(1, 15), st.just(10**6)),
    st.sampled_from(sorted(KINDS)),
)
def test_windows_are_those_of_a_naive_loop(folder, num_tokens, context_length, stride, kind):
    ids = some_ids(num_tokens)
    row = KINDS[kind](ids, folder)
    count = max(0, math.ceil((num_tokens - context_length) / stride))
    if count == 0:
        with pytest.raises(ValueError, match=rf"\b{num_tokens}\b.*\b{context_length + 1}\b"):
            TokenWindows(row, context_length, stride)
        return
    windows = TokenWindows(row, context_length, stride)
    assert len(windows) == count
    assert as_lists(windows) == as_lists(windows.__getitems__(range(count))) == naive(ids, context_length, stride)
    for input_ids, target_ids in (windows[0], windows[count - 1]):
        assert input_ids.dtype == target_ids.dtype == torch.int64
        assert input_ids.shape == target_ids.shape == (context_length,)


@moderate
@given(st.integers(2, 80), st.integers(1, 12), st.integers(-1, 3))
def test_what_stride_covers(num_tokens, context_length, beyond):
    """Stride context_length: each token once an input; one more: only a target; two more: some are never seen."""
    stride = max(1, context_length + beyond)
    if num_tokens <= context_length:
        return
    windows = as_lists(TokenWindows(range(num_tokens), context_length, stride))
    inputs = [token for input_ids, _ in windows for token in input_ids]
    seen = {*inputs, *(token for _, target_ids in windows for token in target_ids)}
    last = windows[-1][1][-1]
    assert num_tokens - 1 - last < stride, "no further whole window would fit"
    if stride >= context_length:
        assert len(set(inputs)) == len(inputs)
    assert (set(range(last)) <= set(inputs)) == (stride <= context_length or len(windows) == 1)
    assert (set(range(last + 1)) == seen) == (stride <= context_length + 1 or len(windows) == 1)


# Like a sequence


def test_indices():
    windows = TokenWindows(range(20), context_length=4, stride=3)
    assert len(windows) == len(list(windows)) == 6, "a plain loop ends"
    assert windows[5][0].tolist() == windows[-1][0].tolist() == [15, 16, 17, 18]
    assert windows[np.int64(2)][1].tolist() == [7, 8, 9, 10]
    assert as_lists(windows.__getitems__([4, -1, -6])) == as_lists([windows[4], windows[5], windows[0]])
    assert windows.__getitems__([]) == []
    for index in (6, -7, 10**9):
        for fetch in (windows.__getitem__, lambda index: windows.__getitems__([0, index])):
            with pytest.raises(IndexError, match=rf"window {index}.*6"):
                fetch(index)


@pytest.mark.parametrize("index", [1.0, "1", None, slice(0, 2), True], ids=repr)
def test_an_index_is_an_integer(index):
    windows = TokenWindows(range(20), context_length=4, stride=3)
    for fetch in (windows.__getitem__, lambda index: windows.__getitems__([0, index])):
        with pytest.raises(TypeError, match="index"):
            fetch(index)


# Memory: no window is stored


def test_windows_of_an_int64_tensor_are_views():
    ids = torch.arange(100)
    windows = TokenWindows(ids, context_length=8, stride=3)
    for index in (0, 1, 17, -1):
        input_ids, target_ids = windows[index]
        assert input_ids.data_ptr() == ids.data_ptr() + 8 * int(input_ids[0])
        assert target_ids.data_ptr() == input_ids.data_ptr() + 8
    ids[4] = -5
    assert windows[1][0].tolist()[:3] == [3, -5, 5]


def test_building_costs_the_same_at_any_stride():
    num_tokens = 1_000_000
    ids = torch.arange(num_tokens)
    process = psutil.Process()
    for stride in (256, 128, 1):
        before = process.memory_info().rss
        tracemalloc.start()
        windows = TokenWindows(ids, context_length=256, stride=stride)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert process.memory_info().rss - before < 64 * MEBIBYTE
        assert peak < 100_000, "Python objects"
        assert held_bytes(windows) == 8 * num_tokens
        assert windows[0][0].data_ptr() == ids.data_ptr(), "the caller's own tensor, not a copy"


def test_a_file_is_read_window_by_window(folder):
    """128 MiB of tokens: neither building nor fetching reads or converts the file."""
    num_tokens = 2**26
    path = folder / "large.bin"
    with path.open("wb") as file:
        file.truncate(2 * num_tokens)
    ids = np.memmap(path, dtype=np.uint16, mode="r")
    before = psutil.Process().memory_info().rss
    windows = TokenWindows(ids, context_length=256, stride=1)
    loader = make_loader(ids, context_length=256, stride=256, batch_size=8, shuffle=False)
    input_ids, _ = next(iter(loader))
    assert psutil.Process().memory_info().rss - before < 40 * MEBIBYTE
    assert len(windows) == num_tokens - 256
    assert input_ids.shape == (8, 256)
    for tensor in (*windows[num_tokens // 2], *windows[-1]):
        assert tensor.untyped_storage().nbytes() <= 8 * 257, "one window's own memory"
    del ids, windows, loader
    path.write_bytes(b"")


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


# In another process


@every_kind
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda windows: pickle.loads(pickle.dumps(windows))])
def test_copies_are_windows_too_and_small(folder, monkeypatch, kind, copied):
    ids = some_ids(600)
    monkeypatch.chdir(folder)
    windows = TokenWindows(KINDS[kind](ids, Path()), context_length=64, stride=1)  # the file has a relative name
    monkeypatch.chdir("/")
    twin = copied(copied(windows))  # a worker may start workers
    assert as_lists(twin) == naive(ids, 64, 1)
    assert held_bytes(twin) <= 2 * 8 * 600, "not 65 times the text"
    assert len(pickle.dumps(twin)) < (1000 if kind in BY_NAME else 2 * 8 * 600 + 1000)
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
import random
import sys
import numpy as np
import psutil
import torch
import torch.multiprocessing
from utils.batches import make_loader

def loader(num_workers):
    ids = np.memmap(sys.argv[1], dtype=np.uint16, mode="r")[1:]
    # Eight windows far apart: of the file, at most 2 MiB each are mapped where only one process reads them.
    options = {"context_length": 256, "stride": 2**22, "batch_size": 1, "seed": 7}
    return make_loader(ids, num_workers=num_workers, **options)

def states():
    return repr((torch.get_rng_state().tolist(), np.random.get_state(), random.getstate()))

def private_mebibytes(process):
    if sys.platform == "darwin":
        return 0  # there, only root may ask about another process
    return process.memory_full_info().uss / 2**20

if __name__ == "__main__":
    torch.multiprocessing.set_start_method("spawn")
    before, own, process = states(), list(loader(0)), psutil.Process()
    alone = private_mebibytes(process)
    workers = iter(loader(2))
    assert all(torch.equal(*pair) for mine in own for pair in zip(mine, next(workers), strict=True))
    # All processes have imported the same modules: what a worker has more than this one had is the IDs.
    print(max(map(private_mebibytes, process.children())) - alone)
    assert list(workers) == []
    assert states() == before
"""


def test_two_workers_under_spawn(tmp_path):
    """Two processes that import the class fetch what one does, without a copy of the file, and stderr is empty."""
    size = 64 * MEBIBYTE
    path, script = tmp_path / "large.bin", tmp_path / "workers.py"
    np.arange(size // 2, dtype=np.uint16).tofile(path)
    script.write_text(WORKERS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(path)],
        env=os.environ | {"PYTHONPATH": str(Path(batches.__file__).parent.parent), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    path.write_bytes(b"")
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) < 20, "MiB"


# torch's own tools


@every_kind
@pytest.mark.parametrize("batch_size", [1, 2, 3, 6])
def test_a_plain_loader_unpacks_into_inputs_and_targets(folder, kind, batch_size):
    windows = TokenWindows(KINDS[kind](range(20), folder), context_length=4, stride=3)
    pairs = []
    for input_ids, target_ids in DataLoader(windows, batch_size=batch_size):
        assert input_ids.shape == target_ids.shape == (min(batch_size, 6 - len(pairs)), 4)
        assert input_ids.dtype == target_ids.dtype == torch.int64
        pairs += zip(input_ids, target_ids)
    assert as_lists(pairs) == naive(range(20), 4, 3)


@pytest.mark.parametrize("dataset", ["windows", "loader.dataset"])
def test_a_collate_function_of_ones_own_gets_samples(dataset):
    windows = TokenWindows(range(20), context_length=4, stride=3)
    if dataset == "loader.dataset":
        windows = make_loader(range(20), context_length=4, stride=3, batch_size=2).dataset
        assert isinstance(windows, TokenWindows)
    batches = list(DataLoader(windows, batch_size=4, collate_fn=lambda samples: samples))
    assert [len(batch) for batch in batches] == [4, 2]
    assert as_lists(itertools.chain(*batches)) == naive(range(20), 4, 3)


def starts(loader):
    return [int(row[0]) for input_ids, _ in loader for row in input_ids]


def test_torchs_datasets_of_windows():
    windows = TokenWindows(range(20), context_length=4, stride=3)
    assert starts(DataLoader(Subset(windows, [4, 1, -1]), batch_size=2)) == [12, 3, 15]
    assert starts(DataLoader(ConcatDataset([windows, windows]), batch_size=5)) == 2 * [0, 3, 6, 9, 12, 15]
    parts = random_split(windows, [4, 2], generator=torch.Generator().manual_seed(0))
    assert [len(part) for part in parts] == [4, 2]
    assert sorted(start for part in parts for start in starts(DataLoader(part, batch_size=3))) == [0, 3, 6, 9, 12, 15]
    samplers = [DistributedSampler(windows, num_replicas=2, rank=rank, shuffle=False) for rank in (0, 1)]
    assert [starts(DataLoader(windows, batch_size=2, sampler=s)) for s in samplers] == [[0, 6, 12], [3, 9, 15]]


# make_loader


def loader_of(num_tokens=200, **changed):
    arguments = {"context_length": 4, "stride": 3, "batch_size": 5}
    return make_loader(torch.arange(num_tokens), **arguments | changed)


@pytest.mark.parametrize("shuffle", [False, True])
@every_kind
def test_batches(folder, kind, shuffle):
    ids = some_ids(60)
    loader = make_loader(KINDS[kind](ids, folder), context_length=4, stride=3, batch_size=5, shuffle=shuffle)
    pairs = []
    for input_ids, target_ids in loader:
        for batch in (input_ids, target_ids):
            assert batch.shape == (5, 4)
            assert batch.dtype == torch.int64
            assert batch.is_contiguous()
        pairs += as_lists(zip(input_ids, target_ids))
    assert len(loader) == len(pairs) / 5 == 3
    expected = naive(ids, 4, 3)
    assert all(pair in expected for pair in pairs)
    if not shuffle:
        assert pairs == expected[:15]


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_window_once_an_epoch(shuffle):
    every = list(range(0, 196, 3))
    whole = loader_of(drop_last=False, shuffle=shuffle)
    for _ in range(2):
        assert (starts(whole) == every) != shuffle
        assert sorted(starts(whole)) == every
    assert [len(input_ids) for input_ids, _ in whole] == 13 * [5] + [1]
    assert (len(whole), whole.batch_size, whole.drop_last) == (14, 5, False)


def test_a_batch_that_is_not_full_is_dropped():
    loader = loader_of()
    seen = starts(loader)
    assert len(loader) == 13
    assert len(set(seen)) == len(seen) == 65
    assert [len(input_ids) for input_ids, _ in loader_of(batch_size=66)] == [66]


def test_shuffling_is_set_by_the_seed_alone():
    epochs = []
    for own_seed in (1, 2):
        torch.manual_seed(own_seed)
        np.random.seed(own_seed)
        random.seed(own_seed)
        loader = loader_of(seed=7)
        torch.rand(own_seed)
        epochs.append([starts(loader), starts(loader), starts(loader)])
    assert epochs[0] == epochs[1]
    assert len({tuple(epoch) for epoch in epochs[0]}) == 3, "each epoch is shuffled again"
    assert starts(loader_of(seed=8)) != epochs[0][0]
    assert starts(loader_of()) == starts(loader_of(seed=0)), "the default seed"
    assert starts(loader_of()) != sorted(starts(loader_of())), "shuffled by default"


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_callers_random_state_is_left_alone(shuffle):
    before = random_states()
    loader = loader_of(shuffle=shuffle)
    assert random_states() == before, "by making the loader"
    assert len(starts(loader)) == len(starts(loader)) == 65
    assert random_states() == before, "by iterating it"


def test_two_loaders_do_not_disturb_each_other():
    alone = starts(loader_of(seed=1))
    together = zip(loader_of(seed=1), loader_of(seed=2), strict=True)  # batches taken in turns
    assert [int(first[0, 0]) for (first, _), _ in together] == alone[::5]


# Bad input


@pytest.mark.parametrize("name", ["context_length", "stride", "batch_size", "num_workers"])
def test_numbers_are_integers_of_any_library(name):
    least = 0 if name == "num_workers" else 1
    for value in (least - 1, -(10**9)):
        with pytest.raises(ValueError, match=rf"{name}.*{least}.*{value}"):
            loader_of(**{name: value})
    for value in (1.0, "2", None, True, [1], torch.tensor(1.5)):
        with pytest.raises(TypeError, match=name):
            loader_of(**{name: value})
    if name != "num_workers":
        for value in (np.uint8(255), torch.tensor(255)):  # 255 + 1 is 0 in eight bits
            ours, theirs = (list(loader_of(600, drop_last=False, **{name: number})) for number in (value, 255))
            assert all(map(torch.equal, itertools.chain(*ours), itertools.chain(*theirs)))


def test_a_seed_is_one_of_torchs():
    for seed in (1.5, "0", None, True):
        with pytest.raises(TypeError, match="seed"):
            loader_of(seed=seed)
    for seed in (-(2**63) - 1, 2**64):
        with pytest.raises(ValueError, match=f"seed.*{2**64 - 1}.*{seed}"):
            loader_of(seed=seed)
    assert all(starts(loader_of(seed=seed)) for seed in (-(2**63), np.int8(-1), 2**64 - 1))


@pytest.mark.parametrize("name", ["shuffle", "drop_last"])
@pytest.mark.parametrize("value", ["no", 0, None], ids=repr)
def test_flags_are_true_or_false(name, value):
    with pytest.raises(TypeError, match=rf"{name} must be True or False, not {value!r}"):
        loader_of(**{name: value})


@pytest.mark.parametrize(("num_tokens", "context_length"), [(4, 4), (1, 1), (0, 4), (255, 256), (9, 2**70)])
def test_a_text_too_short_for_one_window(num_tokens, context_length):
    for row in (list(range(num_tokens)), torch.arange(num_tokens), np.arange(num_tokens, dtype=np.uint16)):
        for make in (TokenWindows, lambda ids, **sizes: make_loader(ids, batch_size=1, **sizes)):
            with pytest.raises(ValueError, match=rf"\b{num_tokens}\b.*\b{context_length + 1}\b"):
                make(row, context_length=context_length, stride=1)


@pytest.mark.parametrize(
    "ids",
    [torch.zeros(3, 9, dtype=torch.int64), np.zeros((3, 9), dtype=">u2"), [[1, 2, 3], [4, 5, 6]], 5],
    ids=repr,
)
def test_ids_are_one_row(ids):
    with pytest.raises(ValueError, match=r"ids.*\("):
        TokenWindows(ids, 1, 1)


@pytest.mark.parametrize(
    "ids",
    [
        [1.0, 2.0, 3.0],
        [1, 2.5, 3],
        torch.ones(9),
        np.ones(9),
        np.ones(9)[::-1],
        torch.ones(9, dtype=torch.complex64),
        [True, False, True],
        [1, True, 3],
        torch.tensor([True, False, True]),
        np.array([True, False, True]),
        "Every effort moves you",
        ["Every", "effort", "moves"],
        np.array(["Every", "effort", "moves"]),
        [None, None, None],
        None,
        {1, 2, 3},
        [[1], [2, 3]],
        [2**70, 1, 2],
    ],
    ids=repr,
)
def test_ids_are_integers(ids):
    with pytest.raises(TypeError, match=r"ids.*integers"):
        TokenWindows(ids, 1, 1)


def test_an_empty_loader_is_refused():
    with pytest.raises(ValueError, match=r"\b6 windows.*\b8\b.*drop_last"):
        make_loader(range(10), context_length=4, stride=1, batch_size=8)
    loader = make_loader(range(10), context_length=4, stride=1, batch_size=8, drop_last=False)
    assert [len(input_ids) for input_ids, _ in loader] == [6]
    assert len(make_loader(range(10), context_length=4, stride=1, batch_size=6)) == 1
