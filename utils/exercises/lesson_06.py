"""The exercises of lesson 6, causal masking."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.attention import SelfAttention
from utils.exercises import Exercise, Mistake

_Q = torch.tensor([[0.4, -1.2], [1.5, 0.7], [-0.3, 0.8], [0.9, 0.2]])
_K = torch.tensor([[-0.5, 0.8], [0.2, 1.3], [0.9, -0.4], [0.7, 0.1]])
_V = torch.tensor([[1.0, 0.0], [0.0, 3.0], [5.0, 1.0], [2.0, 2.0]])
_SCORES = torch.tensor([[0.2, 1.5, -0.3], [2.0, 0.0, 0.7], [-1.0, 0.4, 0.9]])


def _above(square: Tensor, diagonal: int = 1) -> Tensor:
    return torch.ones_like(square).triu(diagonal).bool()


def _causal(scores: Tensor, diagonal: int = 1, fill: float = -torch.inf, dim: int = -1) -> Tensor:
    return torch.softmax(scores.masked_fill(_above(scores, diagonal), fill), dim=dim)


# 6.A  In torch's fused attention, True means "may be attended to".


def _fused(queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor | None = None) -> Tensor:
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed, is_causal=allowed is None)


def _allowed(queries: Tensor, diagonal: int = 0) -> Tensor:
    return torch.ones(queries.shape[-2], queries.shape[-2]).tril(diagonal).bool()


_CONVENTION = Exercise(
    reference=_fused,
    cases=[(_Q, _K, _V), (_Q[:3], 2 * _K[:3], _V[:3]), (_Q[None], _K[None], _V[None])],
    mistakes=[
        Mistake(
            "convention inverted",
            lambda queries, keys, values: _fused(queries, keys, values, ~_allowed(queries)),
            "token 0 attends to tokens 1, 2 and 3, but not to itself; the last token attends to no token",
        ),
        Mistake(
            "itself hidden",
            lambda queries, keys, values: _fused(queries, keys, values, _allowed(queries, -1)),
            "the future is hidden now, but each token is also hidden from itself, and token 0 sees nothing",
        ),
        Mistake(
            "one step ahead",
            lambda queries, keys, values: _fused(queries, keys, values, _allowed(queries, 1)),
            "each token still attends to the one after it: the diagonal is one too far to the right",
        ),
        Mistake(
            "no mask",
            lambda queries, keys, values: F.scaled_dot_product_attention(queries, keys, values),
            "there is no mask now: every token attends to every other",
        ),
        Mistake(
            "inverted and added",
            lambda queries, keys, values: _fused(queries, keys, values, (~_allowed(queries)).float()),
            "a floating-point mask is *added* to the scores: 1 for the future makes it more visible, not less",
        ),
        Mistake(
            "0 and 1 added",
            lambda queries, keys, values: _fused(queries, keys, values, _allowed(queries).float()),
            "a floating-point mask is *added* to the scores: 0 and 1 hide nothing, only True and False do",
        ),
    ],
    where="section 6.6",
)

# 6.B  A mask does not belong in the state dict. The outcome is a list of complaints.


def _complaints(answer: type) -> list[str]:
    torch.manual_seed(0)
    short, long = answer(2, 2, 4), answer(2, 2, 8)
    extra = [name for name in short.state_dict() if not name.startswith("W_")]
    if extra:
        shape = tuple(short.state_dict()[extra[0]].shape)
        return [f"the saved weights contain {extra[0]}, a tensor of shape {shape} that is not a weight"]
    long.load_state_dict(short.state_dict())
    meta = answer(2, 2, 4).to("meta")
    try:
        meta.attention_weights(torch.ones(3, 2, device="meta"))
        moves = True
    except RuntimeError:
        moves = False
    found = {
        "the mask stays behind when the module moves to another device": not moves,
        "the future is visible": not torch.equal(short.attention_weights(_V).triu(1), torch.zeros(4, 4)),
        "rows do not sum to 1": not torch.allclose(short.attention_weights(_V).sum(-1), torch.ones(4)),
        "the weights are not those of the formula": not torch.allclose(
            short.attention_weights(_V), _causal(short.W_query(_V) @ short.W_key(_V).T / 2**0.5), atol=1e-5
        ),
        "the weights depend on context_length": not torch.equal(
            short.attention_weights(_V), long.attention_weights(_V)
        ),
    }
    return [complaint for complaint, is_true in found.items() if is_true]


class _Masked(SelfAttention):
    """Right, and a base class for the mistakes, which store the mask in other ways."""

    def __init__(self, d_in: int, d_out: int, context_length: int):
        super().__init__(d_in, d_out)
        self.keep(torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def keep(self, hidden: Tensor) -> None:
        self.register_buffer("hidden", hidden, persistent=False)

    def attention_weights(self, x: Tensor) -> Tensor:
        num_tokens = x.shape[-2]
        scores = self.W_query(x) @ self.W_key(x).transpose(-2, -1)
        hidden = self.hidden[:num_tokens, :num_tokens].bool()
        return torch.softmax(scores.masked_fill(hidden, -torch.inf) / self.W_key.out_features**0.5, dim=-1)


class _Persistent(_Masked):
    def keep(self, hidden: Tensor) -> None:
        self.register_buffer("hidden", hidden)


class _Attribute(_Masked):
    def keep(self, hidden: Tensor) -> None:
        self.hidden = hidden


class _Parameter(_Masked):
    def keep(self, hidden: Tensor) -> None:
        self.causal_mask = nn.Parameter(hidden.float())

    @property
    def hidden(self) -> Tensor:
        return self.causal_mask


class _NoMask(_Masked):
    def attention_weights(self, x: Tensor) -> Tensor:
        return SelfAttention.attention_weights(self, x)


_LUGGAGE = Exercise(
    reference=_Masked,
    probe=_complaints,
    mistakes=[
        Mistake(
            "saved with the weights",
            _Persistent,
            "the saved weights contain a 4 × 4 tensor that is not a weight, and the larger module cannot load it",
        ),
        Mistake(
            "parameter",
            _Parameter,
            "the mask is a parameter now: it is saved, and training might change it",
        ),
        Mistake(
            "plain attribute",
            _Attribute,
            "the mask is no longer saved, but it stays behind when the module moves to another device",
        ),
        Mistake(
            "no mask",
            _NoMask,
            "nothing extra is saved now, but nothing is hidden either: every token attends to the future",
        ),
    ],
    where="section 6.3",
)

# 6.C  Hide the scores, not the weights.

_HIDE = Exercise(
    keeps_arguments=True,
    reference=_causal,
    cases=[
        (_SCORES,),
        (3 * _SCORES.T,),
        (torch.tensor([[-2e4, 5.0], [0.0, 1.0]]),),
        (torch.tensor([[-2e9, 5.0], [0.0, 1.0]]),),
    ],
    mistakes=[
        Mistake(
            "weights zeroed",
            lambda scores: torch.softmax(scores, dim=-1).masked_fill(_above(scores), 0.0),
            "the upper triangle is 0, but the first rows sum to less than 1",
        ),
        Mistake(
            "divided afterwards",
            lambda scores: _divided(torch.softmax(scores, dim=-1).masked_fill(_above(scores), 0.0)),
            "right for ordinary scores, but where a hidden score is much larger than the visible ones, you compute 0/0",
        ),
        Mistake(
            "zero for hidden",
            lambda scores: _causal(scores, fill=0.0),
            "the hidden scores are 0, which is a score like any other: e to the power 0 is 1",
        ),
        Mistake(
            "large finite fill",
            lambda scores: _causal(scores, fill=-1e9),
            "right for ordinary scores, but a visible score of −2,000,000,000 loses to −1e9: only −∞ always loses",
        ),
        Mistake(
            "finite fill",
            lambda scores: _causal(scores, fill=-1e4),
            "right for ordinary scores, but a visible score of −20,000 loses to −10,000: only −∞ always loses",
        ),
        Mistake(
            "itself hidden",
            lambda scores: _causal(scores, diagonal=0),
            "each token is hidden from itself, so row 0 has nothing left: the mask begins one column further right",
        ),
        Mistake(
            "columns sum to 1",
            lambda scores: _causal(scores, dim=0),
            "softmax runs along the columns: each row must sum to 1",
        ),
    ],
    where="section 6.2",
)


def _divided(weights: Tensor) -> Tensor:
    return weights / weights.sum(dim=-1, keepdim=True)


# 6.1  One line: what is hidden.

_MASK = Exercise(
    reference=lambda num_tokens: torch.ones(num_tokens, num_tokens).triu(diagonal=1).bool(),
    cases=[(4,), (1,), (6,)],
    mistakes=[
        Mistake(
            "itself hidden",
            lambda num_tokens: torch.ones(num_tokens, num_tokens).triu().bool(),
            "each token is hidden from itself: the future begins one column right of the diagonal",
        ),
        Mistake(
            "inverted",
            lambda num_tokens: torch.ones(num_tokens, num_tokens).tril().bool(),
            "that is True where the key is visible: here True means hidden",
        ),
        Mistake(
            "past hidden",
            lambda num_tokens: torch.ones(num_tokens, num_tokens).tril(diagonal=-1).bool(),
            "the past is hidden and the future is visible: you took the lower triangle for the upper",
        ),
        Mistake(
            "one step too late",
            lambda num_tokens: torch.ones(num_tokens, num_tokens).triu(diagonal=2).bool(),
            "each token can attend to the one after it: the future begins at diagonal 1",
        ),
        Mistake(
            "numbers",
            lambda num_tokens: torch.ones(num_tokens, num_tokens).triu(diagonal=1),
            "the right entries are set, but to 0 and 1: .bool() makes them False and True",
        ),
    ],
    where="section 6.2",
)

# 6.2  Weights by hand.

_THIRD = 1 / 3

_IN_THE_HEAD = Exercise(
    reference=[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [_THIRD, _THIRD, _THIRD]],
    mistakes=[
        Mistake(
            "rounded",
            [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.33, 0.33, 0.33]],
            "right, but rounded: write 1/3",
        ),
        Mistake(
            "no mask",
            [[_THIRD] * 3] * 3,
            "those are the weights without a mask: token 0 attends only to itself",
        ),
        Mistake(
            "weights zeroed",
            [[_THIRD, 0.0, 0.0], [_THIRD, _THIRD, 0.0], [_THIRD] * 3],
            "the first rows sum to less than 1: what is hidden gets no weight, and the rest must sum to 1",
        ),
        Mistake(
            "future instead of past",
            [[_THIRD] * 3, [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]],
            "that is reversed: tokens attend to the past, not to the future",
        ),
        Mistake(
            "itself hidden",
            [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]],
            "each token attends to itself as well",
        ),
        Mistake(
            "columns",
            [[1.0, 0.5, _THIRD], [0.0, 0.5, _THIRD], [0.0, 0.0, _THIRD]],
            "rows and columns are swapped: a row is a query, and sums to 1",
        ),
    ],
    where="sections 6.2 and 6.6",
)

# 6.3  Only the recent past.


def _beyond(num_tokens: int, reach: int, future: int = 1) -> Tensor:
    square = torch.ones(num_tokens, num_tokens)
    return (square.triu(diagonal=future) + square.tril(diagonal=-reach)).bool()


_RECENT = Exercise(
    reference=_beyond,
    cases=[(6, 3), (5, 1), (4, 9), (7, 2)],
    mistakes=[
        Mistake(
            "one too many",
            lambda num_tokens, reach: _beyond(num_tokens, reach + 1),
            "a token sees reach tokens before it: the token itself counts as one of the reach",
        ),
        Mistake(
            "one too few",
            lambda num_tokens, reach: _beyond(num_tokens, reach - 1),
            "a token sees too few: it should see itself and reach − 1 tokens before it",
        ),
        Mistake(
            "future visible",
            lambda num_tokens, reach: torch.ones(num_tokens, num_tokens).tril(diagonal=-reach).bool(),
            "the distant past is hidden, but the future is visible",
        ),
        Mistake(
            "all of the past",
            lambda num_tokens, reach: torch.ones(num_tokens, num_tokens).triu(diagonal=1).bool(),
            "the future is hidden, but the whole past is visible, not only the recent part",
        ),
        Mistake(
            "inverted",
            lambda num_tokens, reach: ~_beyond(num_tokens, reach),
            "True and False are swapped: here True means hidden",
        ),
    ],
    where="section 6.2",
)

# 6.4  A detector. Its cases are attention functions with and without a leak.


def _attention(weights_of: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: weights_of(x @ x.T) @ x


_ATTENTIONS = [
    _attention(_causal),
    _attention(lambda scores: torch.softmax(scores, dim=-1)),
    _attention(lambda scores: _causal(scores, diagonal=2)),
    _attention(lambda scores: torch.softmax(scores, dim=-1).masked_fill(_above(scores), 0.0)),
    lambda x: x.cumsum(dim=0),
    lambda x: torch.cat([x[:-2], x[-1:], x[-1:]]),
    lambda x: torch.cat([x[1:2], x[1:]]),
    lambda x: torch.cat([x[2:3], x[1:]]),
]


def _detect(attend: Callable, x: Tensor, places: range | None = None, tolerance: float = 0.0, upto: int = 1) -> bool:
    for place in places or range(len(x) - 1):
        changed = x.clone()
        changed[place + 1 :] += 1.0
        if not torch.allclose(attend(x)[: place + upto], attend(changed)[: place + upto], atol=tolerance, rtol=0):
            return True
    return False


def _detect_next(attend: Callable, x: Tensor) -> bool:
    for place in range(len(x) - 1):
        changed = x.clone()
        changed[place + 1] += 1.0
        if not torch.equal(attend(x)[place], attend(changed)[place]):
            return True
    return False


def _in_place(attend: Callable, x: Tensor) -> bool:
    for place in range(len(x) - 1):
        before = attend(x)[: place + 1].clone()
        x[place + 1 :] += 1.0
        if not torch.equal(before, attend(x)[: place + 1]):
            return True
    return False


def _past_changed(attend: Callable, x: Tensor) -> bool:
    changed = x.clone()
    changed[0] += 1.0
    return not torch.equal(attend(x)[1:], attend(changed)[1:])


_DETECTOR = Exercise(
    reference=_detect,
    keeps_arguments=True,
    cases=[(attend, _V) for attend in _ATTENTIONS],
    mistakes=[
        Mistake(
            "only the first position",
            lambda attend, x: _detect(attend, x, range(1)),
            "you check only position 0: one of the leaks is between the last two tokens",
        ),
        Mistake(
            "only the last position",
            lambda attend, x: _detect(attend, x, range(len(x) - 2, len(x) - 1)),
            "you change only the last token: one of the leaks is between the first two",
        ),
        Mistake(
            "only the next token changed",
            lambda attend, x: _detect_next(attend, x),
            "you change one token after each position: a leak can come from farther ahead, so change all later tokens",
        ),
        Mistake(
            "the changed token compared",
            lambda attend, x: _detect(attend, x, upto=2),
            "your answer is True for every attention function: do you compare an output at a changed position?",
        ),
        Mistake(
            "past changed",
            _past_changed,
            "you change the past and look at what comes after it: that must change, and is not a leak",
        ),
        Mistake(
            "too tolerant",
            lambda attend, x: _detect(attend, x, tolerance=10.0),
            "your answer is False for every attention function: does your tolerance hide real leaks?",
        ),
        Mistake(
            "x changed",
            _in_place,
            "your detector changes x itself: work on a copy, x.clone()",
        ),
        Mistake(
            "inverted",
            lambda attend, x: not _detect(attend, x),
            "True and False are swapped: True means that something leaks",
        ),
    ],
    where="section 6.4",
)

# 6.5  Which model cheats.

_CHEAT = Exercise(
    reference=["B", 5, "A"],
    mistakes=[
        Mistake(
            "small loss believed",
            ["B", 5, "B"],
            "when B generates, nothing is to its right, as at position 5, and there it is the worse of the two",
        ),
        Mistake(
            "good model suspected",
            ["A", 5, "B"],
            "a loss that falls slowly is honest; a loss of 0 on text that a model has not seen is not",
        ),
        Mistake(
            "first position",
            ["B", 0, "A"],
            "at position 0 the answer, token 1, is in the window: only at the last position it is not",
        ),
        Mistake(
            "counted from 1",
            ["B", 6, "A"],
            "right, but counted from 1: the last of six positions is 5",
        ),
    ],
    where="section 6.1",
)

EXERCISES = {
    "6.A": _CONVENTION,
    "6.B": _LUGGAGE,
    "6.C": _HIDE,
    "6.1": _MASK,
    "6.2": _IN_THE_HEAD,
    "6.3": _RECENT,
    "6.4": _DETECTOR,
    "6.5": _CHEAT,
}
