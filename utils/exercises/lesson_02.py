"""The exercises of lesson 2, batches with context length and stride."""

import random

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from utils.batches import TokenWindows
from utils.exercises import Exercise, demand
from utils.exercises.shown import described


def _windows(ids: list | range, context_length: int, stride: int) -> list[tuple]:
    """Return the (input, target) of each window, as the lesson's make_windows does."""
    starts = range(0, len(ids) - context_length, stride)
    return [(ids[start : start + context_length], ids[start + 1 : start + context_length + 1]) for start in starts]


class Starts(Exercise, number="2.A", where="section 2.3", asks="the positions at which windows start"):
    cases = {
        f"{n} tokens, context length {length} and stride {stride}": (n, length, stride)
        for n, length, stride in [(5, 4, 1), (12, 5, 3), (14, 4, 2), (16, 3, 5)]
    }
    edges = {
        "a text of exactly context_length tokens": (4, 4, 1),
        "a text of fewer than context_length tokens": (3, 5, 2),
        "a stride of context_length": (9, 4, 4),
    }

    def call(answer, num_tokens, context_length, stride):
        try:
            return answer(num_tokens, context_length, stride)
        except ValueError:
            if num_tokens > context_length:
                raise
            return []  # to refuse a text that is too short is right, too

    def right(num_tokens, context_length, stride):
        return list(range(0, num_tokens - context_length, stride))

    def last_window_lost(num_tokens, context_length, stride):
        """5 tokens make one window of context length 4, but your function finds none"""
        return range(0, num_tokens - context_length - 1, stride)

    def no_room_for_the_target(num_tokens, context_length, stride):
        """where N − L is a multiple of the stride, there is one start too many: its last target is past the end"""
        return range(0, num_tokens - context_length + 1, stride)

    def up_to_the_end(num_tokens, context_length, stride):
        """there are starts all the way to the end of the text, where windows no longer fit"""
        return range(0, num_tokens, stride)

    def rounded_down(num_tokens, context_length, stride):
        """the last window is missing where N − L is not a multiple of the stride: round the count up"""
        return [index * stride for index in range((num_tokens - context_length) // stride)]

    def stride_ignored(num_tokens, context_length, stride):
        """the starts are 1 apart, whatever the stride is"""
        return range(num_tokens - context_length)

    def overlap_for_stride(num_tokens, context_length, stride):
        """the step is context_length − stride, which is the overlap: the stride is how far a window moves"""
        return range(0, num_tokens - context_length, context_length - stride)

    def context_length_for_stride(num_tokens, context_length, stride):
        """the starts are context_length apart, whatever the stride is"""
        return range(0, num_tokens - context_length, context_length)

    def numbered(num_tokens, context_length, stride):
        """the windows are only numbered 0, 1, 2, …: where in the text do they start?"""
        return range(len(range(0, num_tokens - context_length, stride)))

    def how_many(num_tokens, context_length, stride):
        """that is how many windows there are: the exercise asks for the positions at which they start"""
        return len(range(0, num_tokens - context_length, stride))


def _text(rows: int, columns: int) -> Tensor:
    """Return IDs that are all different, and not in order."""
    return (17 * torch.arange(rows * columns) % 101 + 300).reshape(rows, columns)


class Split(Exercise, number="2.B", where="section 2.4", asks="two tensors, inputs and targets"):
    cases = {"4 windows of 6 tokens": (_text(4, 6),), "3 windows of 9 tokens": (_text(3, 9),)}
    edges = {"one window of 2 tokens": (_text(1, 2),)}

    def right(windows):
        return windows[:, :-1], windows[:, 1:]

    def inputs_rolled(windows):
        """the last target of each row is not the next token of the text, but the row's first input"""
        return windows[:, :-1], windows[:, :-1].roll(-1, dims=1)

    def rolled_through_all_rows(windows):
        """the last target of each row is the first input of another row, not the next token of the text"""
        return windows[:, :-1], windows[:, :-1].roll(-1)

    def whole_windows_rolled(windows):
        """inputs and targets have context_length + 1 columns, and the last target is the row's first token"""
        return windows, windows.roll(-1, dims=1)

    def rolled_the_other_way(windows):
        """apart from the first of each row, each target is the token before its input, not the one after it"""
        return windows[:, :-1], windows[:, :-1].roll(1, dims=1)

    def inputs_not_cut(windows):
        """the inputs still hold the last token of each window, which is only a target"""
        return windows, windows[:, 1:]

    def targets_are_the_inputs(windows):
        """the targets are the inputs: the model could simply copy them, and would not learn to predict"""
        return windows[:, :-1], windows[:, :-1]

    def last_target_missing(windows):
        """the targets have one column fewer than the inputs: the last target is missing"""
        return windows[:, :-1], windows[:, 1:-1]

    def last_target_masked(windows):
        """the last target of each row is −100: its token is known, because it is in the window"""
        return windows[:, :-1], torch.nn.functional.pad(windows[:, 1:-1], (0, 1), value=-100)

    def only_the_last_target(windows):
        """the targets are only the last token of each window: in training every position has a target"""
        return windows[:, :-1], windows[:, -1]

    def next_windows(windows):
        """the targets are the next windows, not the next tokens: rows are shifted instead of columns"""
        return windows[:-1], windows[1:]


def _random_states() -> dict:
    _, words, *position = np.random.get_state()
    return {
        "torch's": torch.get_rng_state().tolist(),
        "NumPy's": (words.tolist(), position),
        "Python's": random.getstate(),
    }


def _demand_unchanged(before: dict, what: str) -> None:
    for whose, state in _random_states().items():
        demand(state == before[whose], f"{what} changes {whose} global random state, which other code shares")


def _epochs(loader: DataLoader) -> list[list[int]]:
    """Return the order of the windows in two epochs."""
    return [[int(start) for batch in loader for start in _inputs_of(batch)] for _ in range(2)]


def _inputs_of(batch: object) -> Tensor:
    pair = isinstance(batch, (list, tuple)) and len(batch) == 2
    demand(pair, "a batch of the loader is not a pair of inputs and targets: does it load the dataset itself?")
    return batch[0]


_SHARED = torch.Generator()  # by all loaders of an answer that makes this mistake


class ShuffledLoader(Exercise, number="2.C", where="section 2.6", asks="a `DataLoader` with batches of 2"):
    def call(loader_for):
        dataset = TokenWindows(range(41), context_length=1, stride=1)
        torch.rand(()), np.random.rand(), random.random()  # from here on, to seed with 0 would be a change
        before = _random_states()
        loader = loader_for(dataset, 5)
        if loader is ...:  # the stub as it was
            return loader
        demand(isinstance(loader, DataLoader), f"your function returns {described(loader)}, not a DataLoader")
        source = getattr(loader, "generator", None)
        demand(
            source is None or isinstance(source, torch.Generator),
            f"a loop over the loader fails: its generator is {described(source)}, not a torch.Generator",
        )
        _demand_unchanged(before, "making the loader")
        orders = _epochs(loader)
        demand(orders[0] != sorted(orders[0]), "the windows come in text order: the loader does not shuffle them")
        sizes = set()
        for batch in loader:
            _demand_unchanged(before, "a loop over the loader")  # not even while it runs
            sizes.add(len(_inputs_of(batch)))
        demand(sizes == {2}, "the batches do not have 2 windows each")
        demand(sorted(orders[0]) == [*range(40)], "in one epoch, some windows are missing or come twice")
        demand(orders[0] != orders[1], "the first two epochs have the same order")
        torch.manual_seed(1), np.random.seed(1), random.seed(1)  # the orders do not hang on these
        demand(orders == _epochs(loader_for(dataset, 5)), "the same seed does not repeat the orders")
        for seed in (6, 7, 105):
            demand(orders != _epochs(loader_for(dataset, seed)), "another seed leads to the same orders")
        first, *others = [loader_for(dataset, seed) for seed in (5, 5, 6)]
        for other in others:
            _epochs(other)
        demand(orders == _epochs(first), "a second loader changes the orders of the first")

    def right(dataset, seed):
        return DataLoader(dataset, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(seed))

    def global_seed(dataset, seed):
        """making the loader changes torch's global random state, which other code shares"""
        torch.manual_seed(seed)
        return DataLoader(dataset, batch_size=2, shuffle=True)

    def no_generator(dataset, seed):
        """a loop over the loader changes torch's global random state, which other code shares"""
        return DataLoader(dataset, batch_size=2, shuffle=True)

    def not_shuffled(dataset, seed):
        """the windows come in text order: the loader does not shuffle them"""
        return DataLoader(dataset, batch_size=2, generator=torch.Generator().manual_seed(seed))

    def seed_ignored(dataset, seed):
        """another seed leads to the same orders"""
        return DataLoader(dataset, batch_size=2, shuffle=True, generator=torch.Generator())

    def seed_for_generator(dataset, seed):
        """a loop over the loader fails: its generator is the seed, which belongs in a torch.Generator"""
        return DataLoader(dataset, batch_size=2, shuffle=True, generator=seed)

    def seed_for_device(dataset, seed):
        """torch.Generator takes a device, not a seed: its method manual_seed takes the seed"""
        return DataLoader(dataset, batch_size=2, shuffle=True, generator=torch.Generator(seed))

    def shared_generator(dataset, seed):
        """a second loader changes the orders of the first"""
        return DataLoader(dataset, batch_size=2, shuffle=True, generator=_SHARED.manual_seed(seed))


_TEXT = [40 + position * position % 23 for position in range(30)]  # some tokens more than once


class Target(Exercise, number="2.1", where="section 2.1", asks="a list of tokens"):
    cases = {
        "start 2 and context length 5": (_TEXT, 2, 5),
        "start 9 and context length 3": (_TEXT, 9, 3),
        "start 12 and context length 7": (_TEXT, 12, 7),
    }
    edges = {
        "start 0 and context length 4": (_TEXT, 0, 4),
        "context length 1": (_TEXT, 6, 1),
        "the last window of the text": (_TEXT, 25, 4),
    }

    def right(ids, start, context_length):
        return ids[start + 1 : start + context_length + 1]

    def the_input_again(ids, start, context_length):
        """that is the input itself: the target starts one position later"""
        return ids[start : start + context_length]

    def one_too_early(ids, start, context_length):
        """that is one position too early: the model would predict what it has already read"""
        return ids[start - 1 : start + context_length - 1]

    def one_too_late(ids, start, context_length):
        """that is one position too far: the first target is missing"""
        return ids[start + 2 : start + context_length + 2]

    def one_too_short(ids, start, context_length):
        """the target is one token short: a slice excludes its end, so the end moves by one as well"""
        return ids[start + 1 : start + context_length]

    def length_for_the_end(ids, start, context_length):
        """the end of a slice counts from the start of the text, and context_length from the start of the input"""
        return ids[start + 1 : context_length + 1]

    def whole_window(ids, start, context_length):
        """that is the whole window, input and target together: the target leaves out its first token"""
        return ids[start : start + context_length + 1]

    def both(ids, start, context_length):
        """the input and the target are returned: the exercise asks only for the target"""
        return ids[start : start + context_length], ids[start + 1 : start + context_length + 1]

    def the_next_window(ids, start, context_length):
        """that is the run after the input: the target moves by one position, not by a whole window"""
        return ids[start + context_length : start + 2 * context_length]

    def positions(ids, start, context_length):
        """those are positions: the exercise asks for the tokens at these positions"""
        return range(start + 1, start + context_length + 1)


class InputCounts(Exercise, number="2.2", where="section 2.5", asks="a list of ten numbers"):
    def right():
        return [1, 1, 1, 2, 1, 1, 1, 0, 0, 0]

    def a_window_without_target():
        """you let a third window start at 6, but its last target would be past the end"""
        yield [1, 1, 1, 2, 1, 1, 2, 1, 1, 1]
        yield [1, 1, 1, 2, 1, 1, 2, 1, 1, 0]

    def targets_counted():
        """those are the counts of targets: how many times is each token an input?"""
        return [0, 1, 1, 1, 2, 1, 1, 1, 0, 0]

    def inputs_and_targets_together():
        """the counts include targets: how many times is each token an input?"""
        yield [1, 1, 1, 2, 2, 1, 1, 1, 0, 0]
        yield [1, 2, 2, 3, 3, 2, 2, 1, 0, 0]
        yield [1, 1, 1, 2, 1, 1, 1, 1, 0, 0]

    def another_stride():
        """such counts come from windows with another stride: here it is 3"""
        yield [1, 2, 3, 4, 4, 4, 3, 2, 1, 0]
        yield [1, 2, 3, 4, 4, 4, 4, 3, 2, 1]
        yield [1, 1, 2, 2, 2, 2, 1, 1, 0, 0]
        yield [1, 1, 2, 2, 2, 2, 2, 2, 1, 1]
        yield [1, 1, 1, 1, 0, 1, 1, 1, 1, 0]

    def tail_counted():
        """tokens after the last input are counted as well: where does the last input end?"""
        yield [1, 1, 1, 2, 1, 1, 1, 1, 1, 1]
        yield [1, 1, 1, 2, 1, 1, 1, 1, 1, 0]

    def overlap_forgotten():
        """no token is counted twice, but with stride 3 and context length 4 the inputs overlap"""
        yield [1, 1, 1, 1, 1, 1, 1, 0, 0, 0]
        yield [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
        yield [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]
        yield [1] * 10


def _inputs(num_tokens: int, context_length: int, stride: int, shift: int = 0) -> set[int]:
    """Return the positions that are an input of some window; shifted by 1, those that are a target."""
    windows = _windows(range(num_tokens), context_length, stride)
    return {position + shift for inputs, _ in windows for position in inputs}


class NeverAnInput(Exercise, number="2.3", where="section 2.5", asks="a sorted list of positions"):
    cases = [(12, 4, 3), (13, 5, 7), (14, 3, 3), (16, 2, 3), (16, 4, 6), (21, 3, 7), (7, 5, 1)]
    edges = [(4, 3, 1), (9, 2, 20)]

    def right(num_tokens, context_length, stride):
        return sorted(set(range(num_tokens)) - _inputs(num_tokens, context_length, stride))

    def in_no_window(num_tokens, context_length, stride):
        """you list what is in no window at all: a token that is only a target is not an input either"""
        targets = _inputs(num_tokens, context_length, stride, shift=1)
        return sorted(set(range(num_tokens)) - _inputs(num_tokens, context_length, stride) - targets)

    def never_a_target(num_tokens, context_length, stride):
        """you list what is never a target: the exercise asks for what is never an input"""
        return sorted(set(range(num_tokens)) - _inputs(num_tokens, context_length, stride, shift=1))

    def inputs_listed(num_tokens, context_length, stride):
        """you list the positions that are an input: the exercise asks for all the others"""
        return sorted(_inputs(num_tokens, context_length, stride))

    def every_position(num_tokens, context_length, stride):
        """every position is listed, as if no token were ever an input"""
        return range(num_tokens)

    def not_in_every_window(num_tokens, context_length, stride):
        """you list what is not an input of every window: the exercise asks for what is not an input of any"""
        everywhere = set.intersection(*[set(x) for x, _ in _windows(range(num_tokens), context_length, stride)])
        return sorted(set(range(num_tokens)) - everywhere)

    def tail_forgotten(num_tokens, context_length, stride):
        """the gaps are there, but the tokens after the last input are missing"""
        read = _inputs(num_tokens, context_length, stride)
        return sorted(set(range(max(read))) - read)

    def only_the_tail(num_tokens, context_length, stride):
        """the end of the text is there, but with a large stride there are gaps between the inputs as well"""
        return range(max(_inputs(num_tokens, context_length, stride)) + 1, num_tokens)

    def only_the_last_window(num_tokens, context_length, stride):
        """only the inputs of the last window are left out, not those of the windows before it"""
        inputs, _ = _windows(range(num_tokens), context_length, stride)[-1]
        return sorted(set(range(num_tokens)) - set(inputs))

    def a_window_without_target(num_tokens, context_length, stride):
        """there is one window too many where N − L is a multiple of the stride: its last target is past the end"""
        return sorted(set(range(num_tokens)) - _inputs(num_tokens + 1, context_length, stride))

    def last_window_lost(num_tokens, context_length, stride):
        """the window whose last target is the last token of the text is missing, though it fits"""
        return sorted(set(range(num_tokens)) - _inputs(num_tokens - 1, context_length, stride))


class HeldOut(Exercise, number="2.4", where="sections 2.2 and 2.7", asks="two lists of windows"):
    cases = {
        "30 tokens, 21 of them for training": (_TEXT, 21, 5, 3),
        "26 tokens, 15 of them for training": (_TEXT[:26], 15, 3, 4),
        "25 tokens, 10 of them for training": (_TEXT[:25], 10, 4, 1),
    }
    edges = {"the same window in both parts": (_TEXT[:5] * 2, 5, 4, 2)}

    def right(ids, num_train, context_length, stride):
        return _windows(ids[:num_train], context_length, stride), _windows(ids[num_train:], context_length, stride)

    def cut_before_split(ids, num_train, context_length, stride):
        """windows at the boundary contain training and held-out tokens: which comes first, splitting or cutting?"""
        windows, count = _windows(ids, context_length, stride), len(range(0, num_train, stride))
        return windows[:count], windows[count:]

    def held_out_from_the_whole_text(ids, num_train, context_length, stride):
        """nothing leaks, but the first held-out window may start later than at token num_train"""
        count = len(range(0, num_train, stride))
        return _windows(ids[:num_train], context_length, stride), _windows(ids, context_length, stride)[count:]

    def whole_text_for_training(ids, num_train, context_length, stride):
        """the training windows are those of the whole text, held-out tokens included"""
        return _windows(ids, context_length, stride), _windows(ids[num_train:], context_length, stride)

    def held_out_from_the_boundary(ids, num_train, context_length, stride):
        """held-out windows at the boundary start before token num_train, so they contain training tokens"""
        train = _windows(ids[:num_train], context_length, stride)
        return train, _windows(ids, context_length, stride)[len(train) :]

    def a_held_out_target(ids, num_train, context_length, stride):
        """the last training window may have a held-out token as its target, so the model trains on it"""
        return _windows(ids[: num_train + 1], context_length, stride), _windows(ids[num_train:], context_length, stride)

    def training_cut_short(ids, num_train, context_length, stride):
        """token num_train − 1 is lost: it is still for training, and may be the last target there"""
        return _windows(ids[: num_train - 1], context_length, stride), _windows(ids[num_train:], context_length, stride)

    def held_out_one_too_late(ids, num_train, context_length, stride):
        """the held-out part starts one token late: token num_train is in neither part"""
        return _windows(ids[:num_train], context_length, stride), _windows(ids[num_train + 1 :], context_length, stride)

    def held_out_one_too_early(ids, num_train, context_length, stride):
        """the held-out part starts one token early, with the last token of the training part"""
        return _windows(ids[:num_train], context_length, stride), _windows(ids[num_train - 1 :], context_length, stride)

    def num_train_windows(ids, num_train, context_length, stride):
        """num_train counts tokens, but you took that many windows"""
        windows = _windows(ids, context_length, stride)
        return windows[:num_train], windows[num_train:]

    def not_in_pairs(ids, num_train, context_length, stride):
        """each window is one run of context_length + 1 tokens: make_windows returns its input and its target"""
        parts = _windows(ids[:num_train], context_length, stride), _windows(ids[num_train:], context_length, stride)
        return [[[*inputs, targets[-1]] for inputs, targets in part] for part in parts]

    def in_one_list(ids, num_train, context_length, stride):
        """all windows are in one list: return the training windows in one and the held-out windows in another"""
        return _windows(ids[:num_train], context_length, stride) + _windows(ids[num_train:], context_length, stride)

    def not_cut(ids, num_train, context_length, stride):
        """the text is split into two parts, but they are not yet cut into windows"""
        return ids[:num_train], ids[num_train:]


def _padded(padding: int, *texts: list[int]) -> tuple[Tensor, Tensor]:
    """Return texts as a batch, padded on the right, and which of its entries are tokens."""
    width = max(map(len, texts))
    batch = torch.tensor([text + [padding] * (width - len(text)) for text in texts])
    return batch, torch.arange(width) < torch.tensor([[len(text)] for text in texts])


_BATCHES = {
    "three texts padded with 0": _padded(0, [6, 9, 0], [5, 8, 0, 7, 4], [2, 7, 3, 1]),
    "two texts padded with 50256": _padded(50256, [3, 9, 6, 2], [8, 5]),
    "four texts padded with 7": _padded(7, [9, 4], [4, 7, 8, 7], [7, 1, 9, 6, 0, 5], [1, 8, 2, 7, 3]),
}
_BATCHES["one text of a batch"] = tuple(part[:1] for part in _BATCHES["three texts padded with 0"])


class MaskedTargets(Exercise, number="2.5", where="section 2.8", asks="a tensor of targets"):
    cases = _BATCHES
    edges = {"one text without padding": _padded(0, [4, 2, 6]), "a text of one token": _padded(0, [8], [5, 0, 1])}

    def right(batch, is_token):
        return batch[:, 1:].masked_fill(~is_token[:, 1:], -100)

    def padding_counted(batch, is_token):
        """the targets are right, but padding is still among them: the model would learn to generate padding"""
        return batch[:, 1:]

    def mask_not_shifted(batch, is_token):
        """the first padding after a text is not masked: all padding moves by one position, with the targets"""
        return batch[:, 1:].masked_fill(~is_token[:, :-1], -100)

    def mask_inverted(batch, is_token):
        """the mask is inverted: is_token is True where the prediction counts"""
        return batch[:, 1:].masked_fill(is_token[:, 1:], -100)

    def inputs_masked(batch, is_token):
        """these are the inputs: the targets start one position later"""
        return batch[:, :-1].masked_fill(~is_token[:, :-1], -100)

    def nothing_shifted(batch, is_token):
        """nothing is shifted: the targets start at the second token, so there is one fewer per row than tokens"""
        return batch.masked_fill(~is_token, -100)

    def last_position_kept(batch, is_token):
        """the last position of each row is kept, as −100: leave it out, because no token comes after it"""
        return torch.cat([batch[:, 1:].masked_fill(~is_token[:, 1:], -100), torch.full((len(batch), 1), -100)], dim=1)

    def padding_by_its_id(batch, is_token):
        """real tokens with the ID of the padding are masked as well: only the mask knows which is which"""
        return batch[:, 1:].masked_fill(batch[:, 1:] == batch[~is_token][0], -100)

    def only_50256_masked(batch, is_token):
        """only 50256 is masked: other IDs are used for padding too, and only the mask knows where"""
        return batch[:, 1:].masked_fill(batch[:, 1:] == 50256, -100)

    def zeros(batch, is_token):
        """where the target is padding there is 0, which is the ID of a token: the exercise asks for −100"""
        return batch[:, 1:] * is_token[:, 1:]

    def shape_lost(batch, is_token):
        """only the targets that count are returned, in one row: keep the others too, as −100"""
        return batch[:, 1:][is_token[:, 1:]]


class LastTokens(Exercise, number="2.6", where="section 2.8", asks="a tensor of IDs, one per text"):
    cases = _BATCHES
    edges = {"one text without padding": _padded(0, [4, 2, 6]), "a text of one token": _padded(0, [8], [5, 0, 1])}

    def right(batch, is_token):
        return batch[torch.arange(len(batch)), is_token.sum(dim=1) - 1]

    def padding_read(batch, is_token):
        """for the shorter texts that is padding: their last real token comes before it"""
        return batch[:, -1]

    def first_column(batch, is_token):
        """you took the first token, which has no other token of its text before it"""
        return batch[:, 0]

    def the_one_before(batch, is_token):
        """you are one position too early: with n tokens the last is at position n − 1"""
        return batch[torch.arange(len(batch)), is_token.sum(dim=1) - 2]

    def number_of_tokens_as_position(batch, is_token):
        """with n tokens the last is at position n − 1: a row of n tokens without padding has no position n"""
        return batch[torch.arange(len(batch)), is_token.sum(dim=1)]

    def positions_not_ids(batch, is_token):
        """those are the positions of the last tokens: the exercise asks for their IDs"""
        return is_token.sum(dim=1) - 1

    def lengths(batch, is_token):
        """that is how many tokens each text has: the exercise asks for the ID of the last one"""
        return is_token.sum(dim=1)

    def whole_columns(batch, is_token):
        """every row is read at the positions of all rows: pair each row with its own position"""
        return batch[:, is_token.sum(dim=1) - 1]

    def where_the_first_text_ends(batch, is_token):
        """all rows are read where the first text ends: each text has its own length"""
        return batch[:, is_token[0].sum() - 1]

    def padding_by_its_id(batch, is_token):
        """real tokens with the ID of the padding are skipped: only the mask knows which is which"""
        padding = batch[~is_token][0]
        return torch.stack([row[row != padding][-1] for row in batch])

    def only_50256_skipped(batch, is_token):
        """only 50256 is taken for padding: other IDs are used for it too, and only the mask knows where"""
        return torch.stack([row[row != 50256][-1] for row in batch])

    def squeezed(batch, is_token):
        """for a batch of one text the result has no axis: its shape should be (1,)"""
        return batch.gather(1, is_token.sum(dim=1, keepdim=True) - 1).squeeze()
