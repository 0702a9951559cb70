"""Several processes that train one model together: torch's own gloo or NCCL, started by torchrun."""

import math
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from utils.arguments import as_bool, as_integer, as_number
from utils.batches import TokenWindows

IGNORED = -100  # a target that does not count, as in F.cross_entropy


def torchrun(processes: int, *words: str) -> list[str]:
    """Return the command that starts a program in several processes on this machine.

    Args:
        words: further options of torchrun, and then the program: a script, or "-m" and a module, with its arguments.
    """
    options = ["--standalone"]
    if sys.platform == "win32":
        # torch's build for Windows cannot do that (pytorch issue 178600): there the processes meet through a file, of
        # which only the name is made here, and then have a store of their own.
        os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        file = os.path.join(tempfile.gettempdir(), f"torchrun-{uuid.uuid4()}")
        options = ["--nnodes=1", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file", f"--rdzv-endpoint={file}"]
    return [sys.executable, "-m", "torch.distributed.run", *options, f"--nproc-per-node={processes}", *words]


@contextmanager
def process_group(timeout: float) -> Iterator[torch.device]:
    """Join the processes that torchrun has started, if it has, and yield this one's device: its GPU, or the CPU.

    Args:
        timeout: seconds to wait for the others, whenever all must meet. Then a lost one is a RuntimeError with gloo;
            NCCL ends the process.
    """
    timeout = timedelta(seconds=as_number("timeout", timeout, at_least=1, at_most=10**6))
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if not dist.is_torchelastic_launched():
        yield device
        return
    store, rank, world_size = next(dist.rendezvous("env://", timeout=timeout))
    if os.environ.get("GROUP_WORLD_SIZE") == "1":
        # After a restart the store still has the addresses of the processes that are gone (pytorch issue 167288). On
        # several machines TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 gives each attempt a store of its own.
        store = dist.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    backend = "gloo" if device.type == "cpu" else "nccl"
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout)
    try:
        yield device
    finally:
        # A thread of gloo may still need Python's lock, to free the tensor it was given last. If this thread freed the
        # group first, with the lock, as an exception does with the models in its traceback, both would wait for ever.
        time.sleep(0.2)
        dist.destroy_process_group()


def rank_and_world_size() -> tuple[int, int]:
    """Return the number of this process, counted from 0, and how many there are; 0 and 1 where it is alone."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def distributed(model: nn.Module) -> nn.Module:
    """Return the model so that backward() averages its gradients over the processes, if there are several."""
    return DistributedDataParallel(model) if dist.is_initialized() else model


def original(model: nn.Module) -> nn.Module:
    """Return the model without the wrapper of `distributed`."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def averaging(model: nn.Module, averages: bool) -> AbstractContextManager:
    """Return a context in which backward() averages gradients, or only adds them up in this process."""
    return nullcontext() if averages or not isinstance(model, DistributedDataParallel) else model.no_sync()


def summed(number: float, device: torch.device) -> float:
    """Return the sum of a number over all processes, each of which must call this."""
    if not dist.is_initialized():
        return number
    total = torch.tensor(number, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return total.item()


def random_states() -> list[list[Tensor]]:
    """Return torch's random states in each process, each of which must call this."""
    own = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if torch.cuda.is_available() else [])]
    states = [own] * rank_and_world_size()[1]
    if dist.is_initialized():
        dist.all_gather_object(states, own)
    return states


def set_random_state(states: list[list[Tensor]]) -> None:
    """Put this process's random state back."""
    for state, put_back in zip(states[rank_and_world_size()[0]], (torch.set_rng_state, torch.cuda.set_rng_state)):
        put_back(state)


class DistributedLoader:
    """This process's part of each global batch: made by `make_distributed_loader`, iterated over like a DataLoader."""

    def __init__(self, windows: TokenWindows, batch_size: int, sampler: DistributedSampler):
        self.windows, self.batch_size, self.sampler = windows, batch_size, sampler

    def __len__(self) -> int:
        return math.ceil(len(self.sampler) / self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.after(0)

    def after(self, num_batches: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of an epoch but the first ones, which are not fetched."""
        indices = list(self.sampler)[num_batches * self.batch_size :]
        # A generator of its own, because a DataLoader would otherwise draw from the caller's random state.
        loader = DataLoader(self.windows, self.batch_size, sampler=indices, generator=torch.Generator())
        # So that all processes get equally many windows, the sampler gives some of the last ones a window that has
        # been there already. Without targets, it counts in no mean.
        num_repeated = self.sampler.total_size - len(self.windows)
        repeats = self.sampler.rank >= self.sampler.num_replicas - num_repeated
        for number, (input_ids, target_ids) in enumerate(loader, start=1):
            if repeats and number == len(loader):
                target_ids[-1] = IGNORED
            yield input_ids, target_ids


def make_distributed_loader(
    ids: Tensor | np.ndarray | Sequence[int],
    *,
    context_length: int,
    stride: int,
    batch_size: int,
    shuffle: bool = True,
    seed: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
) -> DistributedLoader:
    """Return a loader of one process's part of each global batch: (input_ids, target_ids).

    In an epoch each window counts exactly once, whatever the number of processes, and the global batches are the same.
    The order is that of `loader.sampler`, torch's DistributedSampler: it depends on seed and epoch alone. Whoever
    iterates calls `loader.sampler.set_epoch(epoch)` before each epoch, as `train` does, or all have the same order.
    The last batch of an epoch may be smaller; targets of −100 in it do not count. The order is a list of integers: some
    36 bytes per window in each process.

    Args:
        ids, context_length, stride: as for `TokenWindows`.
        batch_size: windows of all processes together.
        shuffle: random order of windows; False keeps text order.
        rank, world_size: number of this process and of all; by default those of torch.distributed, or 0 and 1.

    Raises:
        TypeError, ValueError: as for `TokenWindows`; or the processes cannot have equal parts of batch_size.

    >>> for rank in (0, 1):
    ...     loader = make_distributed_loader(
    ...         range(13), context_length=4, stride=4, batch_size=2, shuffle=False, rank=rank, world_size=2
    ...     )
    ...     print([(input_ids.tolist(), target_ids.tolist()) for input_ids, target_ids in loader])
    [([[0, 1, 2, 3]], [[1, 2, 3, 4]]), ([[8, 9, 10, 11]], [[9, 10, 11, 12]])]
    [([[4, 5, 6, 7]], [[5, 6, 7, 8]]), ([[0, 1, 2, 3]], [[-100, -100, -100, -100]])]
    """
    own_rank, number = rank_and_world_size()
    world_size = as_integer("world_size", number if world_size is None else world_size, at_least=1)
    rank = as_integer("rank", own_rank if rank is None else rank, at_least=0, at_most=world_size - 1)
    batch_size = as_integer("batch_size", batch_size, at_least=1, at_most=sys.maxsize)
    if batch_size % world_size:
        raise ValueError(f"batch_size {batch_size} cannot be divided among {world_size} processes: take a multiple")
    windows = TokenWindows(ids, context_length, stride)
    shuffle, seed = as_bool("shuffle", shuffle), as_integer("seed", seed, at_least=0, at_most=2**62)
    sampler = DistributedSampler(windows, world_size, rank, shuffle=shuffle, seed=seed)
    return DistributedLoader(windows, batch_size // world_size, sampler)
