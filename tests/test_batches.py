"""utils.batches against its contract: a naive loop beside it, memory, random state, and bad input."""

import copy
import inspect
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
from torch.utils.data import DataLoader, Subset, random_split

from utils import batches
from utils.batches import TokenWindows, make_loader

moderate = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
MEBIBYTE = 2**20


def naive(ids, context_length, stride):
    """Return the windows as a plain loop over lists cuts them."""
    pairs = []
    start = 0
    while start + context_length < len(ids):
        end = start + context_length
        pairs.append((list(ids[start:end]), list(ids[start + 1 : end + 1])))
        start += stride
    return pairs


def as_lists(pairs):
    return [(input_ids.tolist(), target_ids.tolist()) for input_ids, target_ids in pairs]


def some_ids(num_tokens):
    return [7919 * place % 50_257 for place in range(num_tokens)]


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


def token_file(folder, ids, dtype=np.uint16):
    path = folder / f"tokens_{next(numbers)}.bin"
    np.array(ids, dtype=dtype).tofile(path)
    return path


KINDS = {
    "int64 tensor": lambda ids, folder: torch.tensor(ids, dtype=torch.int64),
    "int32 tensor": lambda ids, folder: torch.tensor(ids, dtype=torch.int32),
    "tensor of every second": lambda ids, folder: torch.tensor(ids, dtype=torch.int64).repeat_interleave(2)[::2],
    "list": lambda ids, folder: list(ids),
    "tuple": lambda ids, folder: tuple(ids),
    "int64 array": lambda ids, folder: np.array(ids, dtype=np.int64),
    "uint16 array": lambda ids, folder: np.array(ids, dtype=np.uint16),
    "uint16 file, r": lambda ids, folder: np.memmap(token_file(folder, ids), dtype=np.uint16, mode="r"),
    "uint16 file, c": lambda ids, folder: np.memmap(token_file(folder, ids), dtype=np.uint16, mode="c"),
}


# Known values


@pytest.mark.parametrize(
    ("stride", "starts"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4]), (4, [0, 4]), (5, [0, 5]), (6, [0]), (100, [0])]
)
def test_counting_numbers(stride, starts):
    windows = TokenWindows(range(10), context_length=4, stride=stride)
    assert len(windows) == len(starts)
    for (input_ids, target_ids), start in zip(windows, starts, strict=True):
        assert input_ids.tolist() == list(range(start, start + 4))
        assert target_ids.tolist() == list(range(start + 1, start + 5))


def test_stride_past_the_window_leaves_an_input_out():
    windows = list(TokenWindows(range(10), context_length=4, stride=5))
    inputs = [token for input_ids, _ in windows for token in input_ids.tolist()]
    targets = [token for _, target_ids in windows for token in target_ids.tolist()]
    assert inputs == [0, 1, 2, 3, 5, 6, 7, 8]
    assert 4 not in inputs
    assert 4 in targets


def test_words():
    words = ["I", "had", "always", "thought", "Jack", "Gisburn", "is", "my", "friend"]
    pairs = [
        (" ".join(words[place] for place in input_ids), " ".join(words[place] for place in target_ids))
        for input_ids, target_ids in TokenWindows(range(len(words)), context_length=5, stride=2)
    ]
    assert pairs == [
        ("I had always thought Jack", "had always thought Jack Gisburn"),
        ("always thought Jack Gisburn is", "thought Jack Gisburn is my"),
    ]


def test_the_shortest_text():
    assert as_lists(TokenWindows([5, 6, 7, 8, 9], context_length=4, stride=1)) == [([5, 6, 7, 8], [6, 7, 8, 9])]
    assert len(TokenWindows(range(8), context_length=4, stride=1)) == 4
    assert as_lists(TokenWindows([5, 6], context_length=1, stride=1)) == [([5], [6])]


# The formula and the contents, for every kind of IDs


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
    assert as_lists(windows) == naive(ids, context_length, stride)
    for input_ids, target_ids in (windows[0], windows[count - 1]):
        assert input_ids.dtype == target_ids.dtype == torch.int64
        assert input_ids.shape == target_ids.shape == (context_length,)


@moderate
@given(st.integers(6, 60), st.integers(1, 5), st.integers(1, 9), st.sampled_from(sorted(KINDS)), st.data())
def test_a_batched_fetch_is_item_by_item(folder, num_tokens, context_length, stride, kind, data):
    windows = TokenWindows(KINDS[kind](some_ids(num_tokens), folder), context_length, stride)
    places = data.draw(st.lists(st.integers(0, len(windows) - 1), min_size=1, max_size=8))
    input_ids, target_ids = windows.__getitems__(places)
    assert torch.equal(input_ids, torch.stack([windows[place][0] for place in places]))
    assert torch.equal(target_ids, torch.stack([windows[place][1] for place in places]))
    for batch in (input_ids, target_ids):
        assert batch.dtype == torch.int64
        assert batch.shape == (len(places), context_length)
        assert batch.is_contiguous()


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
    assert len(windows) == 6
    assert windows[5][0].tolist() == windows[-1][0].tolist() == [15, 16, 17, 18]
    assert windows[0][0].tolist() == windows[-6][0].tolist() == [0, 1, 2, 3]
    assert windows[np.int64(2)][1].tolist() == [7, 8, 9, 10]
    for place in (6, -7, 10**9):
        with pytest.raises(IndexError, match=rf"window {place}.*6"):
            windows[place]
    with pytest.raises(IndexError, match="6"):
        windows.__getitems__([0, 6])


@pytest.mark.parametrize("place", [1.0, "1", None, slice(0, 2)], ids=repr)
def test_an_index_is_an_integer(place):
    windows = TokenWindows(range(20), context_length=4, stride=3)
    with pytest.raises(TypeError, match="index"):
        windows[place]


def test_a_plain_loop_ends():
    windows = TokenWindows(range(20), context_length=4, stride=3)
    assert len(list(itertools.islice(iter(windows), 100))) == len(windows) == 6


# Memory: no window is stored


def test_windows_of_an_int64_tensor_are_views():
    ids = torch.arange(100)
    windows = TokenWindows(ids, context_length=8, stride=3)
    for place in (0, 1, 17, -1):
        input_ids, target_ids = windows[place]
        assert input_ids.data_ptr() == ids.data_ptr() + 8 * int(input_ids[0])
        assert target_ids.data_ptr() == input_ids.data_ptr() + 8
    ids[4] = -5
    assert windows[1][0].tolist()[:3] == [3, -5, 5]


def test_a_list_is_converted_once():
    ids = list(range(100))
    windows = TokenWindows(ids, context_length=8, stride=3)
    assert windows[0][0].untyped_storage().data_ptr() == windows[20][1].untyped_storage().data_ptr()
    assert held_bytes(windows) == 8 * 100
    ids[0] = -1
    assert windows[0][0][0] == 0


def test_building_costs_the_same_at_any_stride():
    num_tokens = 1_000_000
    ids = torch.arange(num_tokens)
    process = psutil.Process()
    pickled = {}
    for stride in (256, 128, 1):
        before = process.memory_info().rss
        tracemalloc.start()
        windows = TokenWindows(ids, context_length=256, stride=stride)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        grown = process.memory_info().rss - before
        assert len(windows) == math.ceil((num_tokens - 256) / stride)
        assert peak < 100_000, "Python objects"
        assert held_bytes(windows) == 8 * num_tokens
        assert windows[0][0].data_ptr() == ids.data_ptr(), "the caller's own tensor, not a copy"
        assert grown < 64 * MEBIBYTE
        pickled[stride] = len(pickle.dumps(windows))
    assert max(pickled.values()) < 8 * num_tokens + 10_000
    assert max(pickled.values()) - min(pickled.values()) < 100


@pytest.mark.parametrize("mode", ["r", "c"])
def test_a_file_is_read_window_by_window(folder, mode):
    """128 MiB of tokens: neither building nor fetching reads or converts the file."""
    num_tokens = 2**26
    path = folder / f"large_{mode}.bin"
    with path.open("wb") as file:
        file.truncate(2 * num_tokens)
    ids = np.memmap(path, dtype=np.uint16, mode=mode)
    before = psutil.Process().memory_info().rss
    windows = TokenWindows(ids, context_length=256, stride=1)
    loader = make_loader(ids, context_length=256, stride=256, batch_size=8, shuffle=False)
    input_ids, _ = next(iter(loader))
    assert psutil.Process().memory_info().rss - before < 40 * MEBIBYTE
    assert len(windows) == num_tokens - 256
    assert input_ids.dtype == torch.int64
    assert input_ids.shape == (8, 256)
    for tensor in (*windows[num_tokens // 2], *windows[-1]):
        assert tensor.dtype == torch.int64
        assert tensor.untyped_storage().nbytes() <= 8 * 257, "one window's own memory"
    del ids, windows, loader
    path.write_bytes(b"")


@pytest.mark.parametrize("dtype", [np.uint16, np.int64])
@pytest.mark.parametrize("mode", ["r+", "c", "r"])
def test_to_write_into_a_window_never_reaches_the_file(folder, mode, dtype):
    path = token_file(folder, range(50), dtype)
    content = path.read_bytes()
    ids = np.memmap(path, dtype=dtype, mode=mode)
    windows = TokenWindows(ids, context_length=4, stride=2)
    loader = make_loader(ids, context_length=4, stride=2, batch_size=4)
    for input_ids, target_ids in (windows[0], windows[-1], windows.__getitems__([0, 1]), next(iter(loader))):
        input_ids.fill_(9)
        target_ids.fill_(9)
    ids.flush()
    assert path.read_bytes() == content
    assert as_lists(windows) == naive(range(50), 4, 2)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda windows: pickle.loads(pickle.dumps(windows))])
def test_copies_are_windows_too_and_small(folder, kind, copied):
    ids = some_ids(5000)
    windows = TokenWindows(KINDS[kind](ids, folder), context_length=64, stride=1)
    twin = copied(windows)
    assert len(twin) == len(windows)
    assert torch.equal(twin[-1][1], windows[-1][1])
    assert held_bytes(twin) <= 2 * 8 * 5000, "not 65 times the text"
    assert len(pickle.dumps(windows)) < 2 * 8 * 5000 + 10_000
    input_ids, _ = twin[0]
    input_ids.fill_(3)  # a write into a window of the copy: allowed, and of no effect on the first
    assert windows[0][0].tolist() == ids[:64]


# torch's own tools


@pytest.mark.parametrize("batch_size", [1, 2, 3, 6])
def test_a_plain_loader_unpacks_into_inputs_and_targets(batch_size):
    windows = TokenWindows(range(20), context_length=4, stride=3)
    pairs = []
    for input_ids, target_ids in DataLoader(windows, batch_size=batch_size):
        assert input_ids.shape == target_ids.shape
        assert input_ids.dim() == 2
        assert input_ids.dtype == target_ids.dtype == torch.int64
        pairs += zip(input_ids, target_ids)
    assert as_lists(pairs) == naive(range(20), 4, 3)


def test_subset_and_split():
    windows = TokenWindows(range(20), context_length=4, stride=3)
    chosen = Subset(windows, [4, 1])
    assert chosen[0][0].tolist() == [12, 13, 14, 15]
    input_ids, target_ids = next(iter(DataLoader(chosen, batch_size=2)))
    assert input_ids.tolist() == [[12, 13, 14, 15], [3, 4, 5, 6]]
    assert target_ids.tolist() == [[13, 14, 15, 16], [4, 5, 6, 7]]
    parts = random_split(windows, [4, 2], generator=torch.Generator().manual_seed(0))
    starts = [int(input_ids[0]) for part in parts for input_ids, _ in part]
    assert [len(part) for part in parts] == [4, 2]
    assert sorted(starts) == [0, 3, 6, 9, 12, 15]


# make_loader


def loader_of(num_tokens=200, **changed):
    arguments = {"context_length": 4, "stride": 3, "batch_size": 5}
    return make_loader(torch.arange(num_tokens), **arguments | changed)


def starts(loader):
    return [int(row[0]) for input_ids, _ in loader for row in input_ids]


def test_signature_is_the_contracts():
    parameters = inspect.signature(make_loader).parameters
    assert list(inspect.signature(TokenWindows).parameters) == ["ids", "context_length", "stride"]
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        **dict.fromkeys(["ids", "context_length", "stride", "batch_size"], inspect.Parameter.empty),
        **{"shuffle": True, "drop_last": True, "seed": 0, "num_workers": 0},
    }
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(parameters)[1:])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_batches(folder, kind, shuffle):
    ids = some_ids(60)
    loader = make_loader(KINDS[kind](ids, folder), context_length=4, stride=3, batch_size=5, shuffle=shuffle)
    pairs = []
    for input_ids, target_ids in loader:
        for batch in (input_ids, target_ids):
            assert batch.shape == (5, 4)
            assert batch.dtype == torch.int64
            assert batch.is_contiguous()
            assert batch.view(-1).shape == (20,)
        pairs += as_lists(zip(input_ids, target_ids))
    assert len(loader) == len(pairs) / 5 == 3
    expected = naive(ids, 4, 3)
    assert all(pair in expected for pair in pairs)
    if not shuffle:
        assert pairs == expected[:15]


def test_text_order_without_shuffle():
    loader = make_loader(range(11), context_length=4, stride=2, batch_size=2, shuffle=False)
    assert [batch.tolist() for batch in next(iter(loader))] == [
        [[0, 1, 2, 3], [2, 3, 4, 5]],
        [[1, 2, 3, 4], [3, 4, 5, 6]],
    ]
    assert starts(loader) == starts(loader) == [0, 2, 4, 6]


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_window_once_an_epoch(shuffle):
    every = list(range(0, 196, 3))
    whole = loader_of(drop_last=False, shuffle=shuffle)
    assert len(every) == 66
    assert sorted(starts(whole)) == every
    assert sorted(starts(whole)) == every, "in the second epoch too"
    assert [len(input_ids) for input_ids, _ in whole] == 13 * [5] + [1]
    assert len(whole) == 14


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
    assert len({tuple(epoch) for epoch in epochs[0]}) == 3, "each epoch is shuffled anew"
    assert starts(loader_of(seed=8)) != epochs[0][0]
    assert starts(loader_of()) == starts(loader_of(seed=0)), "the default seed"
    assert starts(loader_of()) != sorted(starts(loader_of())), "shuffled by default"


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_callers_random_state_is_left_alone(shuffle):
    before = random_states()
    loader = loader_of(shuffle=shuffle)
    assert random_states() == before, "by making the loader"
    assert len(starts(loader)) == 65
    assert len(starts(loader)) == 65
    assert random_states() == before, "by iterating it"


def test_two_loaders_do_not_disturb_each_other():
    alone = starts(loader_of(seed=1))
    first, second = loader_of(seed=1), loader_of(seed=2)
    together = [
        (int(a[0, 0]), int(b[0, 0])) for (a, _), (b, _) in zip(first, second, strict=True)
    ]  # batches taken in turns
    assert [a for a, _ in together] == alone[::5]


WORKERS = """
import random
import sys
import numpy as np
import torch
import torch.multiprocessing
from utils.batches import TokenWindows, make_loader

def epochs(num_workers, shuffle):
    ids = np.memmap(sys.argv[1], dtype=np.uint16, mode="r")
    loader = make_loader(
        ids, context_length=4, stride=3, batch_size=5, seed=7, shuffle=shuffle, num_workers=num_workers
    )
    return [(inputs.tolist(), targets.tolist()) for inputs, targets in loader]

if __name__ == "__main__":
    torch.multiprocessing.set_start_method("spawn")
    before = repr((torch.get_rng_state().tolist(), np.random.get_state(), random.getstate()))
    assert epochs(2, shuffle=True) == epochs(0, shuffle=True)
    assert repr((torch.get_rng_state().tolist(), np.random.get_state(), random.getstate())) == before
    windows = TokenWindows(np.memmap(sys.argv[1], dtype=np.uint16, mode="r"), 4, 3)
    windows[0][0].fill_(1)
    windows.__getitems__([0, 1])
    print("the same batches")
"""


def test_two_workers_under_spawn(tmp_path):
    """Two processes that import the class fetch what one does, from a read-only file, without a word on stderr."""
    path = token_file(tmp_path, some_ids(200))
    script = tmp_path / "workers.py"
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
    assert (done.returncode, done.stdout, done.stderr) == (0, "the same batches\n", "")


# Bad input


@pytest.mark.parametrize("name", ["context_length", "stride", "batch_size"])
def test_sizes_are_at_least_one(name):
    for value in (0, -1, -(10**9)):
        with pytest.raises(ValueError, match=rf"{name}.*1.*{value}"):
            loader_of(**{name: value})
    for value in (1.0, 2.5, "2", None, True, False, [1], torch.tensor(1.5)):
        with pytest.raises(TypeError, match=name):
            loader_of(**{name: value})


def test_numpys_integers_are_sizes():
    assert len(TokenWindows(range(10), np.int64(4), np.int32(2))) == 3


@pytest.mark.parametrize(("num_tokens", "context_length"), [(4, 4), (3, 4), (1, 1), (0, 4), (255, 256), (256, 256)])
def test_a_text_too_short_for_one_window(num_tokens, context_length):
    rows = (list(range(num_tokens)), torch.arange(num_tokens), np.arange(num_tokens, dtype=np.uint16))
    for row in rows:
        with pytest.raises(ValueError, match=rf"\b{num_tokens}\b.*\b{context_length + 1}\b"):
            TokenWindows(row, context_length, stride=1)
        with pytest.raises(ValueError, match=rf"\b{num_tokens}\b.*\b{context_length + 1}\b"):
            make_loader(row, context_length=context_length, stride=1, batch_size=1)


@pytest.mark.parametrize(
    "ids",
    [
        torch.zeros(3, 9, dtype=torch.int64),
        np.zeros((3, 9), dtype=np.uint16),
        [[1, 2, 3], [4, 5, 6]],
        5,
        torch.tensor(5),
    ],
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
        torch.ones(9, dtype=torch.complex64),
        torch.ones(9, requires_grad=True),
        [True, False, True],
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


def test_an_empty_loader_is_no_loader():
    with pytest.raises(ValueError, match=r"\b6 windows.*\b8\b.*drop_last"):
        make_loader(range(10), context_length=4, stride=1, batch_size=8)
    loader = make_loader(range(10), context_length=4, stride=1, batch_size=8, drop_last=False)
    assert [len(input_ids) for input_ids, _ in loader] == [6]
    assert len(make_loader(range(10), context_length=4, stride=1, batch_size=6)) == 1


@pytest.mark.parametrize("seed", [1.5, "0", None], ids=repr)
def test_a_seed_is_an_integer(seed):
    with pytest.raises(TypeError, match="seed"):
        loader_of(seed=seed)


def test_num_workers_is_no_less_than_zero():
    with pytest.raises(ValueError, match="num_workers"):
        loader_of(num_workers=-1)
