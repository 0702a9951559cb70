"""Token IDs to batches: windows of context_length tokens, a stride apart."""

import sys
import warnings
from collections.abc import Sequence
from mmap import mmap
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from utils.arguments import as_bool, as_integer


class TokenWindows(Dataset):
    """Inputs and next-token targets, cut from one row of token IDs when they are fetched.

    Window i starts at token i · stride; its targets are its inputs one position on. There are
    ceil((N − context_length) / stride) windows of N tokens, and only whole ones.

    Building copies nothing except a list, once: `windows` is a view, so memory does not depend on
    how many windows there are. Single windows of an int64 tensor are views of it: to write into one
    is to write into the text. An array is read and converted window by window. One that is
    memory-mapped reaches worker processes as the name of its file, which they open again, read-only.
    Any other array is copied to them, and so is one with mode "c", whose changes are in no file.

    Args:
        ids: (N,) integers; tensor, list or NumPy array (memory-mapped uint16, say).
        context_length: tokens per window, at least 1.
        stride: tokens from the start of one window to the start of the next, at least 1.

    Raises:
        ValueError: `ids` is not flat or shorter than context_length + 1 (both numbers are named),
            or context_length or stride is below 1.
        TypeError: an argument is not an integer, or not a row of integers.

    >>> windows = TokenWindows([10, 11, 12, 13, 14, 15, 16], context_length=4, stride=2)
    >>> len(windows)
    2
    >>> windows[1]
    (tensor([12, 13, 14, 15]), tensor([13, 14, 15, 16]))
    """

    def __init__(self, ids: Tensor | np.ndarray | Sequence[int], context_length: int, stride: int):
        self.context_length = as_integer("context_length", context_length, at_least=1)
        self.stride = as_integer("stride", stride, at_least=1)
        self.ids, self.array = _as_tensor(ids)
        if len(self.ids) < self.context_length + 1:
            raise ValueError(
                f"ids has {len(self.ids)} tokens; context_length {self.context_length} needs at least "
                f"{self.context_length + 1}: the last input's target is one more token"
            )
        # One more column than context_length: inputs are all but the last, targets all but the first.
        step = min(self.stride, len(self.ids))  # torch has no larger one, and there is only one window then
        self.windows = self.ids.unfold(0, self.context_length + 1, step)  # (num_windows, context_length + 1)

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Return (input_ids, target_ids) of one window, each (context_length,) int64."""
        # A copy from an array: its memory may be read-only, and a write would end the process.
        window = self.windows[self._from_start(index)].to(torch.int64, copy=self.array is not None)
        return window[:-1], window[1:]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """Return the (input_ids, target_ids) of several windows, which a data loader gathers at once."""
        return list(self._batch([self._from_start(index) for index in indices]))

    def __reduce__(self):
        ids = self.ids if self.array is None else self.array
        region = _file_region(ids)
        if region is None:
            return type(self), (ids, self.context_length, self.stride)
        _reopened(*region)  # a file that has gone is better missed here than in a worker process
        return _unpickled, (type(self), region, self.context_length, self.stride)

    def _from_start(self, index: int) -> int:
        index = as_integer("index", index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no window {index}: there are {len(self)}")
        return index % len(self)

    def _batch(self, indices: Sequence[int]) -> "_Batch":
        rows = torch.as_tensor(indices, dtype=torch.int64)
        inputs, targets = self.windows[:, :-1], self.windows[:, 1:]  # each (num_windows, context_length)
        return _Batch(inputs.index_select(0, rows).to(torch.int64), targets.index_select(0, rows).to(torch.int64))


class _Batch(Sequence):
    """Samples that were gathered together: (input_ids, target_ids), each (batch_size, context_length) int64."""

    def __init__(self, input_ids: Tensor, target_ids: Tensor):
        self.input_ids, self.target_ids = input_ids, target_ids

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.input_ids[index], self.target_ids[index]


class _BatchedWindows(TokenWindows):
    """Windows whose samples come in a `_Batch` and not in a list: a loader need not stack what is in one piece."""

    def __getitems__(self, indices: Sequence[int]) -> _Batch:
        return self._batch(indices)


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
    each epoch is shuffled again, and two loaders with the same seed give the same epochs.

    Args:
        ids, context_length, stride: as for `TokenWindows`.
        batch_size: windows per batch, at least 1.
        shuffle: random order of windows; False keeps text order.
        drop_last: leave out a last batch that is not full.
        seed: of the loader's generator, from −2⁶³ to 2⁶⁴ − 1 as in torch.
        num_workers: processes that fetch; 0 fetches in this one.

    Raises:
        TypeError: as for `TokenWindows`, or an argument of the wrong kind.
        ValueError: as for `TokenWindows`, a number out of range, or drop_last would leave no batch at all.

    >>> loader = make_loader(range(11), context_length=4, stride=2, batch_size=2, shuffle=False)
    >>> [input_ids.tolist() for input_ids, target_ids in loader]
    [[[0, 1, 2, 3], [2, 3, 4, 5]], [[4, 5, 6, 7], [6, 7, 8, 9]]]
    """
    windows = _BatchedWindows(ids, context_length, stride)
    batch_size = as_integer("batch_size", batch_size, at_least=1, at_most=sys.maxsize)
    shuffle, drop_last = as_bool("shuffle", shuffle), as_bool("drop_last", drop_last)
    if drop_last and len(windows) < batch_size:
        raise ValueError(
            f"{len(windows)} windows fill no batch of batch_size {batch_size}: with drop_last=True "
            "the loader would be empty. Take a smaller batch_size, a longer text or drop_last=False"
        )
    return DataLoader(
        windows,
        batch_size=batch_size,
        shuffle=shuffle,
        drop_last=drop_last,
        num_workers=as_integer("num_workers", num_workers, at_least=0),
        collate_fn=_in_one_piece,
        generator=torch.Generator().manual_seed(as_integer("seed", seed, at_least=-(2**63), at_most=2**64 - 1)),
    )


def _in_one_piece(batch: _Batch) -> tuple[Tensor, Tensor]:
    # A named function, so that workers can import it.
    return batch.input_ids, batch.target_ids


def _as_tensor(ids: Tensor | np.ndarray | Sequence[int]) -> tuple[Tensor, np.ndarray | None]:
    """Return `ids` as a flat tensor of integers, and the array on the same memory if it must be treated as one."""
    if isinstance(ids, list | tuple) and bool in set(map(type, ids)):
        raise TypeError("ids must be integers, not bool")
    try:
        tensor, array = _from_array(ids) if isinstance(ids, np.ndarray) else (torch.as_tensor(ids), None)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"ids must be a row of integers: {error}") from None
    if tensor.dim() != 1:
        raise ValueError(f"ids must have shape (N,), not {tuple(tensor.shape)}: one row of token IDs")
    if len(tensor) and (tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex()):
        raise TypeError(f"ids must be integers, not {tensor.dtype}")
    if array is None and tensor.dtype in (torch.uint16, torch.uint32, torch.uint64):
        array = tensor.numpy()  # torch cannot pickle these
    return tensor, array


def _from_array(array: np.ndarray) -> tuple[Tensor, np.ndarray]:
    with warnings.catch_warnings():
        # torch warns of read-only memory; windows of arrays are copies, so none is written to.
        warnings.simplefilter("ignore", UserWarning)
        try:
            return torch.from_numpy(array), array
        except ValueError:  # reversed, or another machine's byte order: no tensor is, so this one is copied
            array = array.astype(array.dtype.newbyteorder("="), order="C")
            return torch.from_numpy(array), array


# A memory-mapped array, on its way to another process: path, offset in bytes, dtype, length, step in bytes.
_Region = tuple[str, int, np.dtype, int, int]


def _file_region(ids: Tensor | np.ndarray) -> _Region | None:
    """Return where in a file `ids` is mapped from; None if it is not, or if the file lacks its changes (mode "c")."""
    whole = ids
    while isinstance(whole, np.ndarray) and not isinstance(whole.base, mmap):
        whole = whole.base
    if not isinstance(whole, np.memmap) or whole.filename is None or whole.mode == "c":
        return None
    # A slice has the offset attribute of the array that it was cut from: only addresses tell how far in it begins.
    offset = whole.offset + ids.ctypes.data - whole.ctypes.data
    return str(whole.filename), offset, ids.dtype, len(ids), ids.strides[0]


def _reopened(path: str, offset: int, dtype: np.dtype, length: int, step: int) -> np.ndarray:
    content = np.memmap(path, np.uint8, mode="r") if Path(path).stat().st_size else b""  # nothing is read yet
    if len(content) < offset + (length - 1) * step + dtype.itemsize:
        raise ValueError(f"{path} has {len(content)} bytes, fewer than when token IDs were mapped from it")
    return np.ndarray(length, dtype, content, offset, step)


def _unpickled(kind: type[TokenWindows], region: _Region, context_length: int, stride: int) -> TokenWindows:
    return kind(_reopened(*region), context_length, stride)
