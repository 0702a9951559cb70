"""Token IDs to batches: windows of context_length tokens, a stride apart."""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from utils.arguments import as_integer


class TokenWindows(Dataset):
    """Inputs and next-token targets, cut from one row of token IDs when they are asked for.

    Window i starts at token i · stride; its targets are its inputs one position on. There are
    ceil((N − context_length) / stride) windows of N tokens, and only whole ones.

    Nothing is copied at building time but a list, once: `windows` is a view, so memory does not
    depend on how many windows there are. An int64 tensor is handed out as views of itself (to
    write into a window is to write into the text); an array, a memory-mapped file too, is read
    and converted window by window.

    Args:
        ids: (N,) integers; tensor, list or NumPy array (memory-mapped uint16, say).
        context_length: tokens a window, at least 1.
        stride: tokens from one window's start to the next one's, at least 1.

    Raises:
        ValueError: `ids` is not flat or shorter than context_length + 1 (both numbers are said),
            or context_length or stride is below 1.
        TypeError: an argument is no integer, or no row of integers.

    >>> windows = TokenWindows([10, 11, 12, 13, 14, 15, 16], context_length=4, stride=2)
    >>> len(windows)
    2
    >>> windows[1]
    (tensor([12, 13, 14, 15]), tensor([13, 14, 15, 16]))
    """

    def __init__(self, ids: Tensor | np.ndarray | Sequence[int], context_length: int, stride: int):
        self.context_length = as_integer("context_length", context_length, at_least=1)
        self.stride = as_integer("stride", stride, at_least=1)
        self.ids, self.is_array = _as_tensor(ids)
        if len(self.ids) < context_length + 1:
            raise ValueError(
                f"ids has {len(self.ids)} tokens; context_length {context_length} needs at least "
                f"{context_length + 1}: the last input's target is one more token"
            )
        # One more column than context_length: inputs are all but the last, targets all but the first.
        self.windows = self.ids.unfold(0, self.context_length + 1, self.stride)  # (num_windows, context_length + 1)

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Return (input_ids, target_ids) of one window, each (context_length,) int64."""
        index = as_integer("index", index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no window {index}: there are {len(self)}")
        # A copy from an array: its memory may be read-only, and a write would end the process.
        window = self.windows[index].to(torch.int64, copy=self.is_array)
        return window[:-1], window[1:]

    def __reduce__(self):
        # A worker process cuts its own view: torch cannot pickle one of uint16.
        return type(self), (self.ids.numpy() if self.is_array else self.ids, self.context_length, self.stride)

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return (input_ids, target_ids) of several windows, each (batch_size, context_length) int64.

        The data loader prefers this to item by item: one gather serves a whole batch, indices 0 and up.
        """
        try:
            rows = self.windows.index_select(0, torch.as_tensor(indices))  # (batch_size, context_length + 1)
        except IndexError:
            raise IndexError(f"there are {len(self)} windows: indices must be in 0..{len(self) - 1}") from None
        rows = rows.to(torch.int64)
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


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

    The loader draws from a generator of its own, seeded once: the caller's random state is left
    alone, each epoch is shuffled anew, and two loaders with one seed give the same epochs.

    Args:
        ids, context_length, stride: as for `TokenWindows`.
        batch_size: windows a batch, at least 1.
        shuffle: random order of windows; False keeps text order.
        drop_last: leave out a last batch that is not full.
        seed: of the loader's generator.
        num_workers: processes that fetch; 0 fetches in this one.

    Raises:
        ValueError: as for `TokenWindows`, or drop_last would leave no batch at all.

    >>> loader = make_loader(range(11), context_length=4, stride=2, batch_size=2, shuffle=False)
    >>> [input_ids.tolist() for input_ids, target_ids in loader]
    [[[0, 1, 2, 3], [2, 3, 4, 5]], [[4, 5, 6, 7], [6, 7, 8, 9]]]
    """
    windows = TokenWindows(ids, context_length, stride)
    batch_size = as_integer("batch_size", batch_size, at_least=1)
    seed = as_integer("seed", seed)
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
        num_workers=num_workers,
        collate_fn=_as_it_is,
        generator=torch.Generator().manual_seed(seed),
    )


def _as_it_is(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    # __getitems__ has stacked the batch already. A named function, so that workers can import it.
    return batch


def _as_tensor(ids: Tensor | np.ndarray | Sequence[int]) -> tuple[Tensor, bool]:
    """Return `ids` as a flat tensor of integers on the same memory, and whether that is an array's."""
    is_array = isinstance(ids, np.ndarray)
    try:
        with warnings.catch_warnings():
            # torch warns of read-only memory; windows of arrays are copies, so none is written to.
            warnings.simplefilter("ignore", UserWarning)
            ids = torch.from_numpy(ids) if is_array else torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"ids must be a row of integers: {error}") from None
    if ids.dim() != 1:
        raise ValueError(f"ids must have shape (N,), not {tuple(ids.shape)}: one row of token IDs")
    if len(ids) and (ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex()):
        raise TypeError(f"ids must be integers, not {ids.dtype}")
    return ids, is_array
