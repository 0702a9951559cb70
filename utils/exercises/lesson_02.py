"""The exercises of lesson 2, batches with context length and stride."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from utils.batches import TokenWindows
from utils.exercises import Exercise, Mistake

# 2.A  The positions at which windows start.


def _starts(num_tokens: int, context_length: int, stride: int) -> list[int]:
    return list(range(0, num_tokens - context_length, stride))


_STARTS = Exercise(
    reference=_starts,
    cases=[(10, 4, 1), (10, 4, 2), (10, 4, 3), (10, 4, 4), (5, 4, 1), (4, 4, 1), (3, 4, 2)],
    mistakes=[
        Mistake(
            "last window lost",
            lambda num_tokens, context_length, stride: list(range(0, num_tokens - context_length - 1, stride)),
            "5 tokens make one window of context length 4, but your function finds none",
        ),
        Mistake(
            "no room for the target",
            lambda num_tokens, context_length, stride: list(range(0, num_tokens - context_length + 1, stride)),
            "there is one start too many: its input fits, but its last target would be past the end",
        ),
        Mistake(
            "up to the end",
            lambda num_tokens, context_length, stride: list(range(0, num_tokens, stride)),
            "you start windows all the way to the end of the text, where they no longer fit",
        ),
        Mistake(
            "stride ignored",
            lambda num_tokens, context_length, stride: _starts(num_tokens, context_length, 1),
            "the starts are 1 apart whatever the stride is",
        ),
        Mistake(
            "context length for stride",
            lambda num_tokens, context_length, stride: _starts(num_tokens, context_length, context_length),
            "the starts are context_length apart whatever the stride is",
        ),
        Mistake(
            "overlap for stride",
            lambda num_tokens, context_length, stride: _starts(
                num_tokens, context_length, context_length - stride or 1
            ),
            "you moved by context_length − stride, which is the overlap: the stride is how far a window moves",
        ),
        Mistake(
            "rounded down",
            lambda num_tokens, context_length, stride: _starts(num_tokens, context_length, stride)[
                : max(0, num_tokens - context_length) // stride
            ],
            "the last window is missing where N − L is not a multiple of the stride: round the count up",
        ),
    ],
    where="section 2.3",
)

# 2.B  Inputs and targets from whole windows.

_WINDOWS = (7 * torch.arange(24) % 25 + 12).reshape(4, 6)

_SPLIT = Exercise(
    reference=lambda windows: (windows[:, :-1], windows[:, 1:]),
    cases=[(_WINDOWS,), (_WINDOWS[:1, :2],)],
    mistakes=[
        Mistake(
            "inputs rolled",
            lambda windows: (windows[:, :-1], windows[:, :-1].roll(-1, dims=1)),
            "the last target of each row is not the next token of the text, but the row's first input",
        ),
        Mistake(
            "whole windows rolled",
            lambda windows: (windows, windows.roll(-1, dims=1)),
            "inputs and targets have context_length + 1 columns, and the last target is the row's first token",
        ),
        Mistake(
            "shifted the wrong way",
            lambda windows: (windows[:, 1:], windows[:, :-1]),
            "inputs and targets are swapped: the model would predict what it has just read",
        ),
        Mistake(
            "targets are the inputs",
            lambda windows: (windows[:, :-1], windows[:, :-1]),
            "the targets are the inputs: the model could copy them and would learn nothing",
        ),
    ],
    where="section 2.4",
)

# 2.C  A loader that shuffles with its own generator. The outcome is a list of complaints.


def _complaints(loader_for: Callable[[Dataset, int], DataLoader]) -> list[str]:
    dataset = TokenWindows(range(41), 1, 1)
    state = torch.get_rng_state()
    loader = loader_for(dataset, 5)
    made = torch.get_rng_state()
    first, second = (_order(loader) for _ in range(2))
    sizes = {len(input_ids) for input_ids, _ in loader}
    found = {
        "making the loader changes the global random state": not torch.equal(made, state),
        "iterating over the loader changes the global random state": not torch.equal(torch.get_rng_state(), made),
        "the windows come in text order": first == sorted(first),
        "every epoch has the same order": first == second,
        "the same seed does not repeat the order": first != _order(loader_for(dataset, 5)),
        "a different seed gives the same order": first == _order(loader_for(dataset, 6)),
        "windows are missing or appear twice": sorted(first) != list(range(40)),
        "the batch size is not 2": sizes != {2},
    }
    return [complaint for complaint, is_true in found.items() if is_true]


def _order(loader: DataLoader) -> list[int]:
    return [int(start) for input_ids, _ in loader for start in input_ids]


def _loader(dataset: Dataset, seed: int) -> DataLoader:
    return DataLoader(dataset, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(seed))


def _seed_the_world(dataset: Dataset, seed: int) -> DataLoader:
    torch.manual_seed(seed)
    return DataLoader(dataset, batch_size=2, shuffle=True)


def _seed_both(dataset: Dataset, seed: int) -> DataLoader:
    torch.manual_seed(seed)
    return _loader(dataset, seed)


_LOADER = Exercise(
    reference=_loader,
    probe=_complaints,
    mistakes=[
        Mistake(
            "global seed",
            _seed_the_world,
            "everything drawn after the loader was made is the same in every run, also in other people's code",
        ),
        Mistake(
            "global seed left in",
            _seed_both,
            "the loader now has its own generator, but making it still seeds the global random state",
        ),
        Mistake(
            "no seed",
            lambda dataset, seed: DataLoader(dataset, batch_size=2, shuffle=True),
            "the loader draws from the global random state, and the seed has no effect",
        ),
        Mistake(
            "seed ignored",
            lambda dataset, seed: _loader(dataset, 0),
            "the loader has its own generator, but always with the same seed",
        ),
        Mistake(
            "neither shuffled nor its own generator",
            lambda dataset, seed: DataLoader(dataset, batch_size=2),
            "the windows come in text order, and the loop still changes the global random state",
        ),
        Mistake(
            "not shuffled",
            lambda dataset, seed: DataLoader(dataset, batch_size=2, generator=torch.Generator().manual_seed(seed)),
            "the windows come in text order: shuffle=True is missing",
        ),
    ],
    where="section 2.6",
)

# 2.1  One line: the target of an input.

_IDS = [40 + 7 * place % 23 for place in range(20)]

_TARGET = Exercise(
    reference=lambda ids, start, context_length: ids[start + 1 : start + context_length + 1],
    cases=[(_IDS, 0, 4), (_IDS, 7, 4), (_IDS, 3, 1)],
    mistakes=[
        Mistake(
            "the input again",
            lambda ids, start, context_length: ids[start : start + context_length],
            "that is the input itself: the target starts one position later",
        ),
        Mistake(
            "one too short",
            lambda ids, start, context_length: ids[start + 1 : start + context_length],
            "the target is one token short: a slice excludes its end, so the end moves by one as well",
        ),
        Mistake(
            "backwards",
            lambda ids, start, context_length: ids[max(0, start - 1) : max(0, start - 1) + context_length],
            "that is one position too early: the model would predict what it has already read",
        ),
        Mistake(
            "one too long",
            lambda ids, start, context_length: ids[start + 1 : start + context_length + 2],
            "the target is one token too long: it has as many tokens as the input",
        ),
        Mistake(
            "whole window",
            lambda ids, start, context_length: ids[start : start + context_length + 1],
            "that is the whole window, input and target together: the target leaves out its first token",
        ),
        Mistake(
            "only the last",
            lambda ids, start, context_length: ids[start + context_length],
            "that is only the last target: in training every position has one",
        ),
        Mistake(
            "the next window",
            lambda ids, start, context_length: ids[start + context_length : start + 2 * context_length],
            "that is the run after the input: the target moves by one position, not by a whole window",
        ),
    ],
    where="section 2.1",
)

# 2.2  How many times each token is an input: 10 tokens, context length 4, stride 3.

_INPUT_COUNTS = Exercise(
    reference=[1, 1, 1, 2, 1, 1, 1, 0, 0, 0],
    mistakes=[
        Mistake(
            "a window without target",
            [1, 1, 1, 2, 1, 1, 2, 1, 1, 1],
            "you let a third window start at 6: its input fits, but its last target would be token 10",
        ),
        Mistake(
            "targets counted",
            [0, 1, 1, 1, 2, 1, 1, 1, 0, 0],
            "you counted the targets: the exercise asks how many times each token is an input",
        ),
        Mistake(
            "inputs and targets together",
            [1, 1, 1, 2, 2, 1, 1, 1, 0, 0],
            "you counted how many windows contain a token, as input or target: count inputs only",
        ),
        Mistake(
            "stride 4",
            [1, 1, 1, 1, 1, 1, 1, 1, 0, 0],
            "that is right for stride 4: here the windows start at 0, 3, …",
        ),
        Mistake(
            "each once",
            [1] * 10,
            "you made every token an input once: here the windows overlap, and the text has a tail",
        ),
        Mistake(
            "only the first window",
            [1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
            "that is only one window: another starts at 3",
        ),
    ],
    where="section 2.5",
)

# 2.3  Positions that are not an input of any window.


def _windows(ids: Sequence, context_length: int, stride: int) -> list[tuple[list, list]]:
    starts = _starts(len(ids), context_length, stride)
    return [(list(ids[i : i + context_length]), list(ids[i + 1 : i + context_length + 1])) for i in starts]


def _not_in(num_tokens: int, read: set[int]) -> list[int]:
    return sorted(set(range(num_tokens)) - read)


def _read(num_tokens: int, context_length: int, stride: int) -> set[int]:
    return {place for input_ids, _ in _windows(range(num_tokens), context_length, stride) for place in input_ids}


def _guessed(num_tokens: int, context_length: int, stride: int) -> set[int]:
    return {place for _, target_ids in _windows(range(num_tokens), context_length, stride) for place in target_ids}


_NEVER = Exercise(
    reference=lambda n, length, stride: _not_in(n, _read(n, length, stride)),
    cases=[(10, 4, 1), (10, 4, 4), (12, 4, 5), (14, 4, 6), (20, 3, 7)],
    mistakes=[
        Mistake(
            "targets count as read",
            lambda n, length, stride: _not_in(n, _read(n, length, stride) | _guessed(n, length, stride)),
            "you list what is in no window at all: a token that is only a target is never read either",
        ),
        Mistake(
            "targets for inputs",
            lambda n, length, stride: _not_in(n, _guessed(n, length, stride)),
            "you list what is never a target: the exercise asks for what is never an input",
        ),
        Mistake(
            "tail forgotten",
            lambda n, length, stride: _not_in(max(_read(n, length, stride)) + 1, _read(n, length, stride)),
            "the gaps are there, but the tail after the last window is missing",
        ),
        Mistake(
            "a window without target",
            lambda n, length, stride: _not_in(n, _read(n + 1, length, stride)),
            "you include a window whose last target is past the end of the text",
        ),
        Mistake(
            "only the tail",
            lambda n, length, stride: list(range(max(_read(n, length, stride)) + 1, n)),
            "the tail is there, but with a large stride there are gaps between the inputs as well",
        ),
        Mistake(
            "tensors in a set",
            lambda n, length, stride: list(range(n)),
            "you list every position, as if none were read: tensors in a set never equal integers, so use .tolist()",
        ),
        Mistake(
            "read for unread",
            lambda n, length, stride: sorted(_read(n, length, stride)),
            "you list the tokens that are an input: the exercise asks for the others",
        ),
    ],
    where="section 2.5",
)

# 2.4  Training and held-out windows that share no tokens.


def _split_and_cut(ids: Sequence, num_train: int, context_length: int, stride: int, back: int = 0) -> tuple:
    return (
        _windows(ids[:num_train], context_length, stride),
        _windows(ids[num_train - back :], context_length, stride),
    )


def _cut_and_split(ids: Sequence, num_train: int, context_length: int, stride: int) -> tuple:
    windows = _windows(ids, context_length, stride)
    count = sum(start < num_train for start in _starts(len(ids), context_length, stride))
    return windows[:count], windows[count:]


def _cut_and_filter(ids: Sequence, num_train: int, context_length: int, stride: int, reach: int = 0) -> tuple:
    """Cut all, then keep for training what ends before num_train + reach, and hold out what starts at it or later."""
    starts = _starts(len(ids), context_length, stride)
    windows = list(zip(starts, _windows(ids, context_length, stride)))
    train = [window for start, window in windows if start + context_length < num_train + reach]
    return train, [window for start, window in windows if start >= num_train]


def _inputs_apart(ids: Sequence, num_train: int, context_length: int, stride: int) -> tuple:
    return _windows(ids[: num_train + 1], context_length, stride), _windows(ids[num_train:], context_length, stride)


_HELD_OUT = Exercise(
    reference=_split_and_cut,
    cases=[(list(range(30)), 21, 4, 2), ([7 * i % 11 for i in range(24)], 12, 4, 4), (list(range(25)), 15, 3, 1)],
    mistakes=[
        Mistake(
            "cut before split",
            _cut_and_split,
            "you cut first and then split the windows: those at the boundary contain training and held-out tokens",
        ),
        Mistake(
            "a held-out target",
            _inputs_apart,
            "the last training window has a held-out token as its target, so the model trains on it",
        ),
        Mistake(
            "a held-out target, filtered",
            lambda *arguments: _cut_and_filter(*arguments, reach=1),
            "you considered only inputs: where they end just before num_train, the last target is a held-out token",
        ),
        Mistake(
            "cut before split, filtered",
            _cut_and_filter,
            "nothing leaks, but the held-out windows start where those of the whole text did: cut the rest separately",
        ),
        Mistake(
            "num_train windows",
            lambda ids, num_train, context_length, stride: (
                _windows(ids, context_length, stride)[:num_train],
                _windows(ids, context_length, stride)[num_train:],
            ),
            "num_train counts tokens, but you took that many windows",
        ),
        Mistake(
            "held-out part as long as the training part",
            lambda ids, num_train, context_length, stride: (
                _windows(ids[:num_train], context_length, stride),
                _windows(ids[-num_train:], context_length, stride),
            ),
            "ids[-num_train:] is the last num_train tokens: hold out everything after the first num_train",
        ),
        Mistake(
            "held out one too late",
            lambda *arguments: _split_and_cut(*arguments, back=-1),
            "the held-out part starts one token late: token num_train is in neither part",
        ),
        Mistake(
            "held out one too early",
            lambda *arguments: _split_and_cut(*arguments, back=1),
            "the held-out part starts one token early: that token is in the training part",
        ),
        Mistake(
            "held-out overlaps",
            lambda ids, num_train, context_length, stride: _split_and_cut(
                ids, num_train, context_length, stride, back=context_length
            ),
            "the held-out part starts context_length tokens early: those tokens are in the training part",
        ),
        Mistake(
            "all for training",
            lambda ids, num_train, context_length, stride: (
                _windows(ids, context_length, stride),
                _windows(ids[num_train:], context_length, stride),
            ),
            "the training windows come from the whole text, including the held-out part",
        ),
        Mistake(
            "lists swapped",
            lambda *arguments: _split_and_cut(*arguments)[::-1],
            "the two lists are swapped: training comes first",
        ),
    ],
    where="sections 2.2 and 2.3",
)

# 2.5  Targets of a padded batch.

_BATCH = torch.tensor([[7, 8, 9, 5], [6, 5, 0, 0], [4, 3, 2, 0]])
_IS_TOKEN = torch.tensor([[True, True, True, True], [True, True, False, False], [True, True, True, False]])


def _masked(batch: Tensor, is_token: Tensor) -> Tensor:
    return batch[:, 1:].masked_fill(~is_token[:, 1:], -100)


def _mask_in_place(batch: Tensor, is_token: Tensor) -> Tensor:
    targets = batch[:, 1:]
    targets[~is_token[:, 1:]] = -100
    return targets


_MASKED = Exercise(
    reference=_masked,
    keeps_arguments=True,
    cases=[(_BATCH, _IS_TOKEN), (_BATCH.clamp(min=5), _IS_TOKEN), (_BATCH.where(_BATCH != 9, 50256), _IS_TOKEN)],
    mistakes=[
        Mistake(
            "padding counted",
            lambda batch, is_token: batch[:, 1:],
            "the targets are right, but padding is still among them: the model would learn to generate padding",
        ),
        Mistake(
            "mask not moved",
            lambda batch, is_token: batch[:, 1:].masked_fill(~is_token[:, :-1], -100),
            "the mask belongs to the inputs: move it by one position, like the targets",
        ),
        Mistake(
            "mask inverted",
            lambda batch, is_token: batch[:, 1:].masked_fill(is_token[:, 1:], -100),
            "the mask is inverted: is_token is True where the prediction counts",
        ),
        Mistake(
            "not shifted",
            lambda batch, is_token: batch[:, :-1].masked_fill(~is_token[:, :-1], -100),
            "these are the inputs: the targets start one position later",
        ),
        Mistake(
            "last position kept",
            lambda batch, is_token: batch.masked_fill(~is_token, -100),
            "nothing was shifted: the targets start at the second token, so each row has one fewer target than tokens",
        ),
        Mistake(
            "the batch changed",
            _mask_in_place,
            "the targets are right, but the inputs are ruined: a slice is a view, so batch itself was changed",
        ),
        Mistake(
            "looked for 50256",
            lambda batch, is_token: batch[:, 1:].masked_fill(batch[:, 1:] == 50256, -100),
            "you looked for 50256: other IDs are used for padding too, and only the mask knows",
        ),
        Mistake(
            "mask from the IDs",
            lambda batch, is_token: batch[:, 1:].masked_fill(batch[:, 1:] == batch[1, -1], -100),
            "you treated every token with the padding's ID as padding: only the mask knows which is which",
        ),
    ],
    where="section 2.8",
)

# 2.6  The last real token of each text.

_MORE = torch.tensor([[9, 9, 4, 4], [1, 2, 3, 8]])
_MORE_IS_TOKEN = torch.tensor([[True, False, False, False], [True, True, True, False]])


def _last_tokens(batch: Tensor, is_token: Tensor, shift: int = -1) -> Tensor:
    return batch[torch.arange(len(batch)), is_token.sum(dim=1) + shift]


_LAST = Exercise(
    reference=_last_tokens,
    cases=[(_BATCH, _IS_TOKEN), (_MORE, _MORE_IS_TOKEN), (_BATCH.where(_IS_TOKEN, 50256), _IS_TOKEN)],
    mistakes=[
        Mistake(
            "last column",
            lambda batch, is_token: batch[:, -1],
            "you took the last column, where short texts have padding",
        ),
        Mistake(
            "looked for 50256",
            lambda batch, is_token: torch.stack([row[row != 50256][-1] for row in batch]),
            "you looked for 50256: other IDs are used for padding too, and only the mask knows",
        ),
        Mistake(
            "first column",
            lambda batch, is_token: batch[:, 0],
            "you took the first token, which has no other token of its text before it",
        ),
        Mistake(
            "positions, not IDs",
            lambda batch, is_token: is_token.sum(dim=1) - 1,
            "those are the positions of the last tokens: the exercise asks for their IDs",
        ),
        Mistake(
            "the one before",
            lambda batch, is_token: _last_tokens(batch, is_token, shift=-2),
            "you are one position too early: with n tokens the last is at position n − 1",
        ),
        Mistake(
            "number of tokens as position",
            lambda batch, is_token: _last_tokens(batch, is_token, shift=0),
            "with n tokens the last is at position n − 1: position n is padding, or outside the batch",
        ),
        Mistake(
            "whole columns",
            lambda batch, is_token: batch[:, is_token.sum(dim=1) - 1],
            "batch[:, positions] takes all these columns from every row: pair each row with its own position",
        ),
    ],
    where="section 2.8",
)

EXERCISES = {
    "2.A": _STARTS,
    "2.B": _SPLIT,
    "2.C": _LOADER,
    "2.1": _TARGET,
    "2.2": _INPUT_COUNTS,
    "2.3": _NEVER,
    "2.4": _HELD_OUT,
    "2.5": _MASKED,
    "2.6": _LAST,
}
