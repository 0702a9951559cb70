"""The exercises of lesson 12, beyond one machine."""

import itertools
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DistributedSampler

from utils.exercises import Exercise, demand, first_wrong
from utils.exercises.shown import described
from utils.exercises.values import items, kind_of, same, shape_of


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Reported(Exercise, number="12.A", where="section 12.5", asks="the mean loss over all targets, one number"):
    cases = {
        "two ranks": ([numbers(2, seed=1).exp(), 4 + numbers(6, seed=2).exp()],),
        "three ranks": ([numbers(5, seed=3).exp(), 2 + numbers(1, seed=4).exp(), 5 + numbers(3, seed=5).exp()],),
        "four ranks": ([3 - rank + numbers(9 - 2 * rank, seed=6 + rank).exp() for rank in range(4)],),
    }
    edges = {"one rank": ([numbers(4, seed=9).exp()],)}

    def right(losses):
        return torch.cat(losses).mean()

    def mean_of_means(losses):
        """each rank counts equally, whether it has two targets or six: each target should"""
        return sum(part.mean() for part in losses) / len(losses)

    def last_rank_alone(losses):
        """that is the mean loss of the last rank alone: the other ranks have targets too"""
        return losses[-1].mean()

    def rank_0_alone(losses):
        """that is the mean loss of rank 0 alone: the other ranks have targets too"""
        return losses[0].mean()

    def sum_of_means(losses):
        """the means of the ranks are added up and never divided: each target should count equally in one mean"""
        return sum(part.mean() for part in losses)

    def summed(losses):
        """the losses of all targets are added up: divide by the number of all targets"""
        return torch.cat(losses).sum()

    def sum_per_rank(losses):
        """the sum over all targets is divided by the number of ranks: divide it by the number of all targets"""
        return torch.cat(losses).sum() / len(losses)

    def per_rank(losses):
        """those are the means of the single ranks: return one number for all of them"""
        return [part.mean() for part in losses]


def indices(value: Any, num_windows: int) -> list[int]:
    """Return what an answer says are windows as a list; complain if it is something else."""
    demand(kind_of(value) == "sequence", f"where the windows of a rank should be, there is {described(value)}")
    found = items(value)
    known = all(kind_of(item) == "number" and item in range(num_windows) for item in found)
    demand(known, "a window is not an integer from 0 to num_windows − 1")
    return [int(item) for item in found]


def epochs_of(answer: Any, epochs: int, num_windows: int) -> list[list[int]]:
    """Return the windows of one rank in each epoch; complain if there are not as many epochs."""
    demand(kind_of(answer) == "sequence", f"your function returns {described(answer)}, not one list per epoch")
    demand(len(answer) == epochs, "your function does not return one list of windows per epoch")
    return [indices(epoch, num_windows) for epoch in items(answer)]


def sampled(rank: int, world_size: int, num_windows: int, epoch: int = 0, **options: Any) -> list[int]:
    sampler = DistributedSampler(range(num_windows), world_size, rank, **options)
    sampler.set_epoch(epoch)
    return list(sampler)


class Epochs(Exercise, number="12.B", where="section 12.6", asks="a list with one list of windows per epoch"):
    cases = {"two ranks": (24, 2, 4), "three ranks": (31, 3, 5)}

    def call(windows_by_epoch, num_windows, world_size, epochs):
        answers = [windows_by_epoch(num_windows, rank, world_size, epochs) for rank in range(world_size)]
        of_ranks = [epochs_of(answer, epochs, num_windows) for answer in answers]
        for parts in zip(*of_ranks):  # those of all ranks in one epoch
            demand(len({*map(len, parts)}) == 1, "in one epoch, some ranks have more windows than others")
            together = [*itertools.chain(*parts)]
            demand(len(together) >= num_windows, "in one epoch, windows are left out at the end: none may be dropped")
            missing = len({*together}) < num_windows
            demand(not missing, "in one epoch, some windows come to no rank: do all ranks use the same order?")
            demand(len(together) < num_windows + world_size, "in one epoch, more windows come twice than necessary")
            demand(parts[0] != sorted(parts[0]), "the windows of a rank come in text order: shuffle them")
        first = of_ranks[0]
        constant = first.count(first[0]) == epochs
        demand(not constant, "every epoch has the same order: does the sampler know which epoch it is?")
        demand(
            first[0] != first[1], "the first two epochs have the same order: is each set before its windows are read?"
        )
        demand(all(first.count(epoch) == 1 for epoch in first), "two epochs have the same order")
        demand({*first[0]} != {*first[1]}, "a rank has the same windows in each epoch: all windows should be shuffled")

    def right(num_windows, rank, world_size, epochs):
        return [sampled(rank, world_size, num_windows, epoch) for epoch in range(epochs)]

    def epoch_forgotten(num_windows, rank, world_size, epochs):
        """every epoch has the same order: does the sampler know which epoch it is?"""
        return [sampled(rank, world_size, num_windows)] * epochs

    def told_too_late(num_windows, rank, world_size, epochs):
        """the first two epochs have the same order: is each set before its windows are read?"""
        return [sampled(rank, world_size, num_windows, max(epoch - 1, 0)) for epoch in range(epochs)]

    def shuffled_later(num_windows, rank, world_size, epochs):
        """a rank has the same windows in each epoch: all windows should be shuffled"""
        own = sampled(rank, world_size, num_windows)
        return [[own[index] for index in sampled(0, 1, len(own), epoch)] for epoch in range(epochs)]

    def own_order(num_windows, rank, world_size, epochs):
        """in one epoch, some windows come to no rank: do all ranks use the same order?"""
        return [sampled(rank, world_size, num_windows, epoch, seed=7 * rank) for epoch in range(epochs)]


def moments(save: Callable, rank: int, text: str, path: Path) -> list[tuple[bytes | None, set[str]]]:
    """Return what is in the file, and which other files are beside it, after each instruction of a save.

    A process that is killed there leaves just that: what is still in Python's buffers never reaches the file.
    """
    found: list[tuple[bytes | None, set[str]]] = []

    def look(frame: FrameType, event: str = "", argument: Any = None) -> Callable:
        frame.f_trace_opcodes = True
        moment = path.read_bytes() if path.is_file() else None, {*os.listdir(path.parent)} - {path.name}
        if moment not in found[-1:]:
            found.append(moment)
        return look

    before = sys.gettrace()
    look(sys._getframe())  # Python 3.12 asks here whether single instructions are looked at
    sys.settrace(look)
    try:
        save(rank, text, path)
    finally:
        sys.settrace(before)
    look(sys._getframe())
    return found


class Saved(Exercise, number="12.C", where="sections 12.1 and 12.8", asks="a function that saves a checkpoint"):
    cases = {"three ranks": (3, "step 40 " * 20), "two ranks": (2, "step 60")}

    def call(save, world_size, text):
        with tempfile.TemporaryDirectory() as folder:
            path, before = Path(folder) / "newest.txt", b"step 20 " * 10
            path.write_bytes(before)
            for rank in range(world_size - 1, 0, -1):
                unchanged = all(moment == (before, set()) for moment in moments(save, rank, text, path))
                demand(unchanged, "a rank other than 0 writes: only rank 0 should")
            contents, others = zip(*moments(save, 0, text, path))
            demand(any(content != before for content in contents), "rank 0 leaves the file as it was")
            demand(contents[-1] == text.encode(), "after `save`, the new text is not in the file")
            whole = {*contents} == {before, text.encode()}
            demand(whole, "killed in the middle of `save`, rank 0 leaves no whole checkpoint, neither old nor new")
            demand(any(others), "the temporary file is in another folder, perhaps on another disk: no atomic rename")
            demand(not others[-1], "after `save`, another file is left beside the checkpoint")

    def right(rank, text, path):
        if rank == 0:
            Saved.renamed(text, path, path.with_name("temporary"))

    def renamed(text, path, temporary):
        temporary.write_text(text)
        temporary.replace(path)

    def all_ranks(rank, text, path):
        """a rank other than 0 writes: only rank 0 should"""
        path.write_text(text)

    def straight_to_its_name(rank, text, path):
        """killed in the middle of `save`, rank 0 leaves no whole checkpoint, neither old nor new"""
        if rank == 0:
            path.write_text(text)

    def in_another_folder(rank, text, path):
        """the temporary file is in another folder, perhaps on another disk: no atomic rename"""
        if rank == 0:
            with tempfile.TemporaryDirectory(dir=path.parent.parent) as folder:
                Saved.renamed(text, path, Path(folder) / "temporary")


class Memory(Exercise, number="12.1", where="section 12.2", asks="the number of bytes"):
    cases = [(124_412_160, 0), (1_500_000, 70_000_000), (8_000_000, 3_000_000)]

    def right(num_trained, num_frozen):
        return 16 * num_trained + 4 * num_frozen

    def frozen_as_trained(num_trained, num_frozen):
        """frozen parameters are counted like trained ones: they have only their weights"""
        return 16 * (num_trained + num_frozen)

    def frozen_left_out(num_trained, num_frozen):
        """the frozen parameters are left out: their weights are in memory too"""
        return 16 * num_trained

    def frozen_with_gradients(num_trained, num_frozen):
        """8 bytes are counted per frozen parameter: it has only its weight, and no gradient"""
        return 16 * num_trained + 8 * num_frozen

    def three_numbers(num_trained, num_frozen):
        """12 bytes are counted per trained parameter: it has a weight, a gradient and two running means"""
        return 12 * num_trained + 4 * num_frozen

    def two_numbers(num_trained, num_frozen):
        """8 bytes are counted per trained parameter: it has a weight, a gradient and two running means"""
        return 8 * num_trained + 4 * num_frozen

    def weights_only(num_trained, num_frozen):
        """those are the weights alone: training also keeps gradients and AdamW's two running means"""
        return 4 * (num_trained + num_frozen)

    def not_times_4(num_trained, num_frozen):
        """that is how many numbers are kept: each of them takes 4 bytes"""
        return 4 * num_trained + num_frozen

    def swapped(num_trained, num_frozen):
        """trained and frozen parameters are swapped: a trained one takes 16 bytes, a frozen one 4"""
        return 4 * num_trained + 16 * num_frozen

    def in_bits(num_trained, num_frozen):
        """that is in bits: a byte has 8 of them"""
        return 8 * Memory.right(num_trained, num_frozen)

    def in_gigabytes(num_trained, num_frozen):
        """that is in GB: return bytes"""
        return Memory.right(num_trained, num_frozen) / 1e9

    def in_gibibytes(num_trained, num_frozen):
        """that is in GiB, of 1024³ bytes: return bytes"""
        return Memory.right(num_trained, num_frozen) / 2**30


class Days(Exercise, number="12.2", where="section 12.3", asks="the number of days"):
    cases = [
        (124_412_160, 10_000_000_000, 2, 4e13, 0.3),
        (1_000_000_000, 20_000_000_000, 8, 3e14, 0.4),
        (3_000_000, 40_000, 5, 1e6, 0.8),
    ]
    edges = [(3_000_000, 1_000_000_000, 1, 1e11, 1.0)]

    def right(num_parameters, num_tokens, devices, peak, utilisation):
        return 6 * num_parameters * num_tokens / (devices * peak * utilisation) / 86_400

    def forward_only(*run):
        """that is with 2 operations per parameter and token, the forward pass: the backward pass takes 4 more"""
        return Days.right(*run) / 3

    def backward_only(*run):
        """that is with 4 operations per parameter and token, the backward pass: the forward pass takes 2 more"""
        return Days.right(*run) * 2 / 3

    def without_6(*run):
        """there is one operation per parameter and token: training takes 6"""
        return Days.right(*run) / 6

    def times_devices(num_parameters, num_tokens, devices, *rates):
        """more devices make it longer: divide by the number of devices, do not multiply"""
        return Days.right(num_parameters, num_tokens, 1 / devices, *rates)

    def one_device(num_parameters, num_tokens, devices, *rates):
        """that is for one device: divide by the number of devices"""
        return Days.right(num_parameters, num_tokens, 1, *rates)

    def at_peak(num_parameters, num_tokens, devices, peak, utilisation):
        """that is at the peak: a device reaches only the fraction `utilisation` of it, so training takes longer"""
        return Days.right(num_parameters, num_tokens, devices, peak, 1)

    def times_utilisation(num_parameters, num_tokens, devices, peak, utilisation):
        """a low utilisation makes it shorter: divide by it, do not multiply"""
        return Days.right(num_parameters, num_tokens, devices, peak, 1 / utilisation)

    def in_percent(*run):
        """`utilisation` is divided by 100: it is a fraction from 0 to 1 already"""
        return 100 * Days.right(*run)

    def in_seconds(*run):
        """that is in seconds: return days"""
        return 86_400 * Days.right(*run)

    def in_hours(*run):
        """that is in hours: return days"""
        return 24 * Days.right(*run)


class Whole(Exercise, number="12.3", where="section 12.5", asks="the gradient of the whole batch, a tensor"):
    cases = {
        "two ranks": ([*numbers(2, 3, seed=1)], [2, 6]),
        "three ranks": ([*numbers(3, 2, 3, seed=11)], [5, 1, 9]),
        "four ranks": ([*numbers(4, 4, 2, seed=21)], [7, 3, 3, 11]),
    }
    edges = {
        "one rank": ([*numbers(1, 3, seed=31)], [4]),
        "equal parts": ([*numbers(2, 2, seed=41)], [3, 3]),
    }

    def right(gradients, num_targets):
        return Whole.weighted_sum(gradients, num_targets) / sum(num_targets)

    def plain_mean(gradients, num_targets):
        """each rank counts equally, whether it has two targets or six: each target should"""
        return sum(gradients) / len(gradients)

    def sum_by_targets(gradients, num_targets):
        """the gradients are not weighted: multiply each by its number of targets before you add them up"""
        return sum(gradients) / sum(num_targets)

    def summed(gradients, num_targets):
        """the gradients are added up as they are: weight each by its number of targets, and divide by all targets"""
        return sum(gradients)

    def weighted_sum(gradients, num_targets):
        """the weights do not sum to 1: divide by the number of all targets"""
        return sum(number * gradient for gradient, number in zip(gradients, num_targets))

    def weighted_sum_per_rank(gradients, num_targets):
        """the weighted sum is divided by the number of ranks: divide it by the number of all targets"""
        return Whole.weighted_sum(gradients, num_targets) / len(gradients)

    def divided_twice(gradients, num_targets):
        """the weighted mean is divided by the number of ranks as well: its weights already sum to 1"""
        return Whole.right(gradients, num_targets) / len(gradients)

    def divided_by_own_targets(gradients, num_targets):
        """each gradient is divided by its number of targets: it is already a mean, so multiply it"""
        return sum(gradient / number for gradient, number in zip(gradients, num_targets))

    def rank_0_alone(gradients, num_targets):
        """that is the gradient of rank 0 alone"""
        return gradients[0]


class OwnWindows(Exercise, number="12.4", where="section 12.6", asks="a list of indices of windows"):
    cases = {"two ranks": (24, 2), "three ranks": (31, 3), "four ranks": (30, 4)}

    def call(rank_windows, num_windows, world_size):
        def of_all(epoch: int, seed: int) -> list[list[int]]:
            answers = [rank_windows(num_windows, rank, world_size, epoch, seed) for rank in range(world_size)]
            return [indices(answer, num_windows) for answer in answers]

        runs = {(epoch, seed): of_all(epoch, seed) for epoch in range(3) for seed in (5, 83)}
        for parts in runs.values():
            together = [*itertools.chain(*parts)]
            missing, repeated = len({*together}) < num_windows, len({*together}) < len(together)
            both = missing and repeated
            demand(not both, "some windows come twice and others to no rank: do all ranks use the same order?")
            demand(not missing, "some windows come to no rank: what about those that remain after dividing?")
            demand(not repeated, "some windows come twice in one epoch: each should come once, to one rank")
            fair = max(map(len, parts)) <= -(-num_windows // world_size)
            demand(fair, "some rank has more windows than num_windows / world_size, rounded up")
            demand(parts[0] != sorted(parts[0]), "the windows of a rank come in text order: shuffle them")
        demand(of_all(1, 83) == runs[1, 83], "two calls with the same arguments return different windows")
        demand(all(runs[0, seed] != runs[1, seed] for seed in (5, 83)), "epochs 0 and 1 have the same order")
        demand(all(runs[0, seed] != runs[2, seed] for seed in (5, 83)), "epochs 0 and 2 have the same order")
        demand(all(runs[epoch, 5] != runs[epoch, 83] for epoch in range(3)), "a different seed leads to the same order")
        other = all({*runs[0, seed][0]} != {*runs[1, seed][0]} for seed in (5, 83))
        demand(other, "a rank has the same windows in each epoch: shuffle all windows before you divide them")

    def right(num_windows, rank, world_size, epoch, seed):
        generator = torch.Generator().manual_seed(seed + epoch)
        return torch.randperm(num_windows, generator=generator)[rank::world_size]

    def own_shuffle(num_windows, rank, world_size, epoch, seed):
        """some windows come twice and others to no rank: do all ranks use the same order?"""
        return OwnWindows.right(num_windows, rank, world_size, epoch, seed + 1000 * rank)

    def epoch_forgotten(num_windows, rank, world_size, epoch, seed):
        """epochs 0 and 1 have the same order"""
        return OwnWindows.right(num_windows, rank, world_size, 0, seed)

    def divided_first(num_windows, rank, world_size, epoch, seed):
        """a rank has the same windows in each epoch: shuffle all windows before you divide them"""
        own = range(rank, num_windows, world_size)
        return [own[index] for index in OwnWindows.right(len(own), 0, 1, epoch, seed)]

    def tail_dropped(num_windows, rank, world_size, epoch, seed):
        """some windows come to no rank: what about those that remain after dividing?"""
        return sampled(rank, world_size, num_windows, epoch, seed=seed, drop_last=True)

    def rest_to_the_last(num_windows, rank, world_size, epoch, seed):
        """some rank has more windows than num_windows / world_size, rounded up"""
        size = num_windows // world_size
        end = num_windows if rank == world_size - 1 else (rank + 1) * size
        return OwnWindows.right(num_windows, 0, 1, epoch, seed)[rank * size : end]

    def padded(num_windows, rank, world_size, epoch, seed):
        """some windows come twice in one epoch: each should come once, to one rank"""
        return sampled(rank, world_size, num_windows, epoch, seed=seed)


class DevicePart(Exercise, number="12.5", where="section 12.4", asks="a tensor of the shape of the output"):
    cases = {
        "6 hidden dimensions": tuple(numbers(*shape, seed=6) for shape in [(5, 4), (4, 6), (6,), (6, 4), (4,)]),
        "4 hidden dimensions": tuple(numbers(*shape, seed=4) for shape in [(3, 2), (2, 4), (4,), (4, 2), (2,)]),
    }

    def call(device_part, x, w1, b1, w2, b2):
        def parts_with(w1: Tensor) -> list[Tensor]:
            found = [device_part(x.clone(), w1.clone(), b1.clone(), w2.clone(), b2.clone(), rank) for rank in (0, 1)]
            other = [described(part) for part in found if not shape_of(part)]
            demand(not other, f"a part should be a tensor, and is {', '.join(other)}")
            fits = all(shape_of(part) == x.shape for part in found)
            demand(fits, "a part does not have the shape of the output, which is that of x")
            return found

        parts, uses = parts_with(w1), [0, 0]
        for column in range(len(b1)):
            changed = w1.clone()
            changed[:, column] += 1
            using = [rank for rank, part in enumerate(parts_with(changed)) if not same(part, parts[rank])]
            demand(len(using) < 2, "a column of w1 is used by both devices: each should use half of the columns")
            demand(using, "a column of w1 is used by neither device: each should use half of the columns")
            uses[using[0]] += 1
        demand(uses[0] == uses[1], "one device uses more columns of w1 than the other")
        return parts[0] + parts[1]

    def right(x, w1, b1, w2, b2, rank):
        return DevicePart.no_second_bias(x, w1, b1, w2, b2, rank) + (b2 if rank == 0 else 0)

    def hidden(x, w1, b1, rank):
        return F.gelu((x @ w1 + b1).chunk(2, dim=-1)[rank])

    def bias_on_both(x, w1, b1, w2, b2, rank):
        """the sum of both parts contains b2 twice: one device alone should add it"""
        return DevicePart.no_second_bias(x, w1, b1, w2, b2, rank) + b2

    def no_second_bias(x, w1, b1, w2, b2, rank):
        """the sum of both parts lacks b2: one device should add it"""
        return DevicePart.hidden(x, w1, b1, rank) @ w2.chunk(2)[rank]

    def no_first_bias(x, w1, b1, w2, b2, rank):
        """b1 is left out: add it before F.gelu"""
        return DevicePart.right(x, w1, torch.zeros_like(b1), w2, b2, rank)

    def other_rows(x, w1, b1, w2, b2, rank):
        """the columns of w1 and the rows of w2 do not fit together: both must be of the same hidden dimensions"""
        return DevicePart.hidden(x, w1, b1, rank) @ w2.chunk(2)[1 - rank] + (b2 if rank == 0 else 0)

    def no_activation(x, w1, b1, w2, b2, rank):
        """there is no activation function: apply F.gelu between the two matrices"""
        return (x @ w1 + b1).chunk(2, dim=-1)[rank] @ w2.chunk(2)[rank] + (b2 if rank == 0 else 0)

    def activation_last(x, w1, b1, w2, b2, rank):
        """F.gelu comes last: apply it between the two matrices"""
        return F.gelu(DevicePart.no_activation(x, w1, b1, w2, b2, rank))

    def wrong_axis(x, w1, b1, w2, b2, rank):
        """a column of w1 is used by both devices: each should use half of the columns"""
        return F.gelu(x.chunk(2, dim=-1)[rank] @ w1.chunk(2)[rank] + b1) @ w2 + (b2 if rank == 0 else 0)


TRUE = [False, True, False, False, True, True]


class Statements(Exercise, number="12.6", where="sections 12.2 to 12.8", asks="a list of six values, True or False"):
    def right():
        return TRUE

    def weights_divided():
        """think of (a) again: can a device compute gradients for its part of the batch without all the weights?"""
        yield from first_wrong(TRUE, 0)

    def activations_constant():
        """think of (b) again: what is kept once per parameter, and what once per token of the batch?"""
        yield from first_wrong(TRUE, 1)

    def speed_up_taken_for_granted():
        """think of (c) again: were the other cores idle before, and what does the all-reduce cost?"""
        yield from first_wrong(TRUE, 2)

    def weights_are_not_all():
        """think of (d) again: what would AdamW's running means be after the restart, and which windows would come?"""
        yield from first_wrong(TRUE, 3)

    def equal_weights_drift():
        """think of (e) again: all processes begin with equal weights, so can equal steps lead to different ones?"""
        yield from first_wrong(TRUE, 4)

    def operations_divided():
        """think of (f) again: do the operations become fewer, or are more of them done at the same time?"""
        yield from first_wrong(TRUE, 5)
