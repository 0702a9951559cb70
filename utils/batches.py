"""Token IDs to batches: windows of context_length tokens, a stride apart."""

import sys
import warnings
from collections.abc import Sequence
from mmap import mmap
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset

from utils.arguments import as_bool, as_integer


class TokenWindows(Dataset):
    """Inputs and next-token targets, cut from one row of token IDs when they are fetched.

    Window i starts at token i · stride; its targets are its inputs one position on. N tokens have
    ceil((N − context_length) / stride) windows, all of them whole. Single windows of an int64 tensor are views
    of it: to write into one is to write into the text. All others are converted when they are fetched. A
    memory-mapped array reaches worker processes as the name of its file, which they open again, read-only;
    any other array, and one with mode "c", is copied to them.

    Args:
        ids: (N,) integers; tensor, NumPy array (memory-mapped uint16, say) or list, which is copied once.
        context_length: tokens per window, at least 1.
        stride: tokens from the start of one window to the start of the next, at least 1.

    Raises:
        ValueError: `ids` is not flat or has fewer than context_length + 1 (both numbers are named), or a number is < 1.
        TypeError: an argument is not an integer, or not a row of integers.

    >>> windows = TokenWindows([10, 11, 12, 13, 14, 15, 16], context_length=4, stride=2)
    >>> len(windows), windows[1]
    (2, (tensor([12, 13, 14, 15]), tensor([13, 14, 15, 16])))
    """

    def __init__(self, ids: Tensor | np.ndarray | Sequence[int], context_length: int, stride: int):
        self.context_length = as_integer("context_length", context_length, at_least=1)
        self.stride = as_integer("stride", stride, at_least=1)
        self.ids, row = _parsed(ids)
        width = self.context_length + 1  # inputs are all columns but the last, targets all but the first
        if len(row) < width:
            raise ValueError(f"ids has {len(row)} tokens: context_length {self.context_length} + 1 target need {width}")
        step = min(self.stride, len(row))  # torch has no larger one, and there is only one window then
        self.windows = row.unfold(0, width, step)  # (num_windows, context_length + 1)

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Return (input_ids, target_ids) of one window, each (context_length,) int64."""
        # A copy from an array: its memory may be read-only, and a write would end the process.
        window = self.windows[self._from_start(index)].to(torch.int64, copy=isinstance(self.ids, np.ndarray))
        return window[:-1], window[1:]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """Return the (input_ids, target_ids) of several windows, which a data loader gathers at once."""
        return list(zip(*_gathered(Subset(self, [self._from_start(index) for index in indices]))))

    def __getstate__(self) -> tuple:
        return _file_region(self.ids) or self.ids, self.context_length, self.stride

    def __setstate__(self, state: tuple) -> None:
        ids, context_length, stride = state
        self.__init__(_reopened(*ids) if isinstance(ids, tuple) else ids, context_length, stride)

    def _from_start(self, index: int) -> int:
        index = as_integer("index", index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no window {index}: there are {len(self)}")
        return index % len(self)


class _LoaderWindows(TokenWindows):
    """Windows that a loader does not fetch one by one: `_gathered` copies all of a batch at once."""

    def __getitems__(self, indices: Sequence[int]) -> Subset:
        return Subset(self, indices)


def _gathered(samples: Subset) -> tuple[Tensor, Tensor]:
    """Return the (input_ids, target_ids) of some of the windows, each (num_samples, context_length) int64."""
    windows, rows = samples.dataset.windows, torch.as_tensor(samples.indices, dtype=torch.int64)
    input_ids, target_ids = windows[:, :-1].index_select(0, rows), windows[:, 1:].index_select(0, rows)
    return input_ids.to(torch.int64), target_ids.to(torch.int64)


def make_loader(
    ids: Tensor | np.ndarray | Sequence[int],
    *,
    context_length: int,
    stride: int,
    batch_size: int,
    shuffle: bool = True,
    drop_last: bool = True,
    seed: int = 0,
    num_workers: int = 0,
) -> DataLoader:
    """Return a loader of (input_ids, target_ids), each (batch_size, context_length) int64.

    The loader uses a generator of its own, seeded once: the caller's random state is left alone,
    each epoch is shuffled again, and two loaders with the same seed that are looped over in the same
    way give the same epochs.

    Args:
        ids, context_length, stride: as for `TokenWindows`.
        batch_size: windows per batch, at least 1.
        shuffle: random order of windows; False keeps text order.
        drop_last: leave out a last batch that is not full.
        seed: of the loader's generator, from −2⁶³ to 2⁶⁴ − 1 as in torch.
        num_workers: processes that fetch; 0 fetches in this one.

    Raises:
        TypeError, ValueError: as for `TokenWindows`; or drop_last would leave no batch at all.

    >>> loader = make_loader(range(11), context_length=4, stride=2, batch_size=2, shuffle=False)
    >>> [input_ids.tolist() for input_ids, target_ids in loader]
    [[[0, 1, 2, 3], [2, 3, 4, 5]], [[4, 5, 6, 7], [6, 7, 8, 9]]]
    """
    windows = _LoaderWindows(ids, context_length, stride)
    batch_size = as_integer("batch_size", batch_size, at_least=1, at_most=sys.maxsize)
    if (drop_last := as_bool("drop_last", drop_last)) and len(windows) < batch_size:
        raise ValueError(
            f"{len(windows)} windows fill no batch of batch_size {batch_size}: with drop_last=True "
            "the loader would be empty. Take a smaller batch_size, a longer text or drop_last=False"
        )
    return DataLoader(
        windows,
        batch_size=batch_size,
        shuffle=as_bool("shuffle", shuffle),
        drop_last=drop_last,
        num_workers=as_integer("num_workers", num_workers, at_least=0),
        collate_fn=_gathered,
        generator=torch.Generator().manual_seed(as_integer("seed", seed, at_least=-(2**63), at_most=2**64 - 1)),
    )


def _parsed(ids: Tensor | np.ndarray | Sequence[int]) -> tuple[Tensor | np.ndarray, Tensor]:
    """Return `ids` as the array or tensor that worker processes get, and as a flat tensor on the same memory."""
    if isinstance(ids, list | tuple) and bool in set(map(type, ids)):
        raise TypeError("ids must be integers, not bool")
    try:
        if isinstance(ids, np.ndarray):
            ids, row = _with_tensor(ids)
        else:
            row = torch.as_tensor(ids)
            unsigned = row.dtype in (torch.uint16, torch.uint32, torch.uint64)  # torch cannot pickle them
            ids = row.numpy() if unsigned else row
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"ids must be a row of integers: {error}") from None
    if row.dim() != 1:
        raise ValueError(f"ids must have shape (N,), not {tuple(row.shape)}: one row of token IDs")
    if len(row) and (row.dtype == torch.bool or row.is_floating_point() or row.is_complex()):
        raise TypeError(f"ids must be integers, not {row.dtype}")
    return ids, row


def _with_tensor(array: np.ndarray) -> tuple[np.ndarray, Tensor]:
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of read-only memory, see `__getitem__`
        try:
            return array, torch.from_numpy(array)
        except ValueError:  # reversed, or another machine's byte order: no tensor is, so this one is copied
            return _with_tensor(array.astype(array.dtype.newbyteorder("=")))


def _file_region(ids: Tensor | np.ndarray) -> tuple[str, int, np.dtype, int, int] | None:
    """Return path, offset in bytes, dtype, length and step in bytes, if a file has just these IDs, or else None."""
    whole = ids
    while isinstance(whole, np.ndarray) and not isinstance(whole.base, mmap):
        whole = whole.base
    if not isinstance(whole, np.memmap) or whole.filename is None or whole.mode == "c":
        return None
    # A slice has the offset attribute of the array that it was cut from: only addresses tell how far in it begins.
    offset = whole.offset + ids.ctypes.data - whole.ctypes.data
    region = str(whole.filename), offset, ids.dtype, len(ids), ids.strides[0]
    _reopened(*region)  # a file that has gone is better missed here than in a worker process
    return region


def _reopened(path: str, offset: int, dtype: np.dtype, length: int, step: int) -> np.ndarray:
    if (size := Path(path).stat().st_size) < offset + (length - 1) * step + dtype.itemsize:
        raise ValueError(f"{path} has {size} bytes, fewer than when token IDs were mapped from it")
    return np.ndarray(length, dtype, np.memmap(path, mode="r"), offset, step)
