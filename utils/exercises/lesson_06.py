"""The exercises of lesson 6, causal masking."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from utils.attention import SelfAttention
from utils.exercises import Exercise, demand


def _numbers(*shape: int, seed: int = 6) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _future(num_tokens: int, diagonal: int = 1) -> Tensor:
    return torch.ones(num_tokens, num_tokens).triu(diagonal).bool()


# 6.A  In torch's fused attention, True means "may be attended to".


class Convention(Exercise, number="6.A", where="section 6.6", asks="a tensor of context vectors"):
    cases = {"four tokens": tuple(_numbers(3, 4, 2)), "nine tokens": tuple(_numbers(3, 9, 3))}
    edges = {"one token": tuple(_numbers(3, 1, 2))}

    def right(queries, keys, values):
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)

    def convention_inverted(queries, keys, values):
        """each token attends to the tokens after it, but not to itself; the last token attends to no token"""
        return F.scaled_dot_product_attention(queries, keys, values, _future(len(queries)))

    def itself_hidden(queries, keys, values):
        """the future is hidden now, but each token is also hidden from itself, and token 0 sees nothing"""
        return F.scaled_dot_product_attention(queries, keys, values, ~_future(len(queries), 0))

    def one_step_ahead(queries, keys, values):
        """each token still attends to the one after it, but to no later one"""
        return F.scaled_dot_product_attention(queries, keys, values, ~_future(len(queries), 2))

    def past_hidden(queries, keys, values):
        """each token attends to itself and to the tokens after it: the past is hidden, not the future"""
        return F.scaled_dot_product_attention(queries, keys, values, _future(len(queries), 0))

    def no_mask(queries, keys, values):
        """nothing is hidden now: every token attends to every other"""
        return F.scaled_dot_product_attention(queries, keys, values)

    def not_divided(queries, keys, values):
        """the scores are not divided by the square root of head_dim"""
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, scale=1.0)

    def weights_zeroed(queries, keys, values):
        """the hidden weights are 0, but all rows except the last sum to less than 1: hide the scores, before softmax"""
        return torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1).tril() @ values

    def future_favoured(queries, keys, values):
        """the scores of the future are larger by 1: a floating-point mask is added to the scores"""
        return F.scaled_dot_product_attention(queries, keys, values, _future(len(queries)).float())

    def past_favoured(queries, keys, values):
        """the future is visible, with scores smaller by 1: a floating-point mask is added to the scores"""
        return F.scaled_dot_product_attention(queries, keys, values, -_future(len(queries)).float())


# 6.B  A mask does not belong in the state dict.


class _Masked(SelfAttention):
    """Right, and the base class of the mistakes, which keep the mask in other ways."""

    def __init__(self, d_in: int, d_out: int, context_length: int):
        super().__init__(d_in, d_out)
        self.keep(_future(context_length))

    def keep(self, hidden: Tensor) -> None:
        self.register_buffer("hidden", hidden, persistent=False)

    def attention_weights(self, x: Tensor) -> Tensor:
        num_tokens = x.shape[-2]
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        return torch.softmax(scores.masked_fill(self.hidden[:num_tokens, :num_tokens].bool(), -torch.inf), dim=-1)


def _works(step: Callable[[], object]) -> bool:
    """Return whether torch can do a step, such as a sum of tensors on one device, but not on two."""
    try:
        step()
    except NotImplementedError:  # meta tensors have no values, which another device has
        return True
    except (RuntimeError, TypeError) as error:
        return "on meta tensors" in str(error)
    return True


class _OneDevice(TorchFunctionMode):
    """Refuses a mask on another device, as a GPU does; meta tensors let it pass where it is applied in place."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        devices = {argument.device for argument in args if isinstance(argument, Tensor) and argument.dim()}
        if len(devices) > 1 and function.__name__ not in ("to", "type_as", "copy_", "__getitem__", "__setitem__"):
            raise RuntimeError(f"tensors on {len(devices)} devices")
        return function(*args, **(kwargs or {}))


class Luggage(Exercise, number="6.B", where="section 6.3", asks="the class `Masked`"):
    cases = {"one text": (_numbers(4, 3),), "a batch of two texts": (_numbers(2, 9, 3),)}
    edges = {"a text of one token": (_numbers(1, 3),), "a text of context_length tokens": (_numbers(40, 3),)}

    def call(answer, x):
        short, longer = answer(3, 5, 4), answer(3, 5, 40)
        demand(len([*short.parameters()]) <= 3, "the module has more parameters now, and parameters are saved")
        demand(len(short.state_dict()) <= 3, "the saved weights contain something that is not a weight")
        demand(
            _works(lambda: longer.load_state_dict(short.state_dict())),
            "weights saved with context_length 4 cannot be loaded with context_length 40",
        )
        with torch.no_grad():
            longer.W_query.weight.copy_(_numbers(5, 3, seed=1))
            longer.W_key.weight.copy_(_numbers(5, 3, seed=2))
        weights = longer.attention_weights(x)
        demand(
            _works(lambda: longer.attention_weights(_numbers(40, 3))),
            "after a shorter text, attention_weights fails on one of context_length tokens: is the mask large enough?",
        )
        longer.to("meta")
        with _OneDevice():
            demand(
                _works(lambda: longer.attention_weights(x.to("meta"))),
                "the weights can be loaded, but on another device attention_weights fails: is the mask there too?",
            )
        return weights

    right = _Masked

    class saved_with_the_weights(_Masked):
        """the saved weights contain something that is not a weight"""

        def keep(self, hidden):
            self.register_buffer("hidden", hidden)

    class parameter(_Masked):
        """the module has more parameters now, and parameters are saved"""

        def keep(self, hidden):
            self.hidden = nn.Parameter(hidden.float())

    class left_behind(_Masked):
        """the weights can be loaded, but on another device attention_weights fails: is the mask there too?"""

        def keep(self, hidden):
            self.hidden = hidden

    class no_mask(_Masked):
        """the mask is no longer saved, but nothing is hidden either: every token attends to the future"""

        attention_weights = SelfAttention.attention_weights


# 6.C  Hide the scores, not the weights.


def _causal(scores: Tensor, diagonal: int = 1, fill: float = -torch.inf) -> Tensor:
    return torch.softmax(scores.masked_fill(_future(len(scores), diagonal), fill), dim=-1)


class Hide(Exercise, number="6.C", where="section 6.2", asks="a tensor of attention weights"):
    cases = {
        "three tokens": (torch.tensor([[0.2, 1.5, -0.3], [2.0, 0.5, 0.0], [-1.0, 0.4, 0.9]]),),
        "nine tokens": (3 * _numbers(9, 9),),
        "a hidden score of 20,000": (torch.tensor([[1.0, 2e4], [0.5, 2.0]]),),
        "a visible score of −20,000": (torch.tensor([[-2e4, 5.0], [0.0, 1.0]]),),
        "a visible score of −2e9": (torch.tensor([[-2e9, 2e9], [0.5, 0.0]]),),
        "a visible score of 2e9": (torch.tensor([[2e9, 5.0], [2.0, 0.5]]),),
        "large scores": (torch.tensor([[1.0, 0.0, 0.0], [2e9, 1.5e9, 0.0], [-1.8e9, -1.5e9, -2e9]]),),
    }

    def right(attn_scores):
        return _causal(attn_scores)

    def weights_zeroed(attn_scores):
        """the upper triangle is 0, but the first rows sum to less than 1"""
        return torch.softmax(attn_scores, dim=-1).masked_fill(_future(len(attn_scores)), 0.0)

    def divided_afterwards(attn_scores):
        """right for ordinary scores, but a hidden score far above the visible ones makes the row nan, as 0/0 is"""
        weights = torch.softmax(attn_scores, dim=-1).tril()
        return weights / weights.sum(dim=-1, keepdim=True)

    def rows_of_0(attn_scores):
        """right for ordinary scores, but a hidden score far above the visible ones makes the row all 0"""
        weights = torch.softmax(attn_scores, dim=-1).tril()
        return (weights / weights.sum(dim=-1, keepdim=True)).nan_to_num()

    def zero_for_hidden(attn_scores):
        """the hidden scores count as 0, which is a score like any other: e to the power 0 is 1"""
        return _causal(attn_scores, fill=0.0)

    def finite_fill(attn_scores):
        """right for ordinary scores, but against a visible score of −20,000 a hidden one wins: only −∞ always loses"""
        return _causal(attn_scores, fill=-1e4)

    def large_finite_fill(attn_scores):
        """right for most scores, but against a visible score of −2e9 a hidden one wins: only −∞ always loses"""
        return _causal(attn_scores, fill=-1e9)

    def wrong_axis(attn_scores):
        """softmax runs over the queries (dim=0): each row must sum to 1, not each column"""
        return torch.softmax(attn_scores.masked_fill(_future(len(attn_scores)), -torch.inf), dim=0)

    def no_mask(attn_scores):
        """nothing is hidden: each row is the softmax of all its scores"""
        return torch.softmax(attn_scores, dim=-1)

    def one_step_ahead(attn_scores):
        """each token also attends to the one after it: the mask should begin one column further left"""
        return _causal(attn_scores, diagonal=2)


# 6.1  One line: what is hidden.


class Mask(Exercise, number="6.1", where="section 6.2", asks="a (num_tokens, num_tokens) tensor of True and False"):
    cases = [(4,), (3,), (9,)]
    edges = [(1,)]

    def right(num_tokens):
        return torch.ones(num_tokens, num_tokens).triu(diagonal=1).bool()

    def itself_hidden(num_tokens):
        """each token is hidden from itself: the future begins one column right of the diagonal"""
        return _future(num_tokens, 0)

    def past_hidden(num_tokens):
        """the past is hidden and the future is visible: rows are queries, columns are keys"""
        return _future(num_tokens).T

    def one_step_ahead(num_tokens):
        """the token after the query is visible, and it belongs to the future"""
        return _future(num_tokens, 2)

    def nothing_hidden(num_tokens):
        """there is no True in it: nothing is hidden"""
        return torch.zeros(num_tokens, num_tokens).bool()

    def minus_infinity(num_tokens):
        """right, but as 0 and −∞, which are added to scores: the exercise asks for True and False"""
        return torch.zeros(num_tokens, num_tokens).masked_fill(_future(num_tokens), -torch.inf)


# 6.2  Weights by hand.

_THIRDS = [1 / 3] * 3


class InTheHead(Exercise, number="6.2", where="sections 6.2 and 6.6", asks="a list of three lists of three numbers"):
    def right():
        return [[1, 0, 0], [1 / 2, 1 / 2, 0], _THIRDS]

    def rounded():
        """the last row is close, but three digits should be right: write more, or an expression"""
        for last in ([0.33] * 3, [0.33, 0.33, 0.34], [0.3] * 3, [0.3, 0.3, 0.4]):
            yield [[1, 0, 0], [1 / 2, 1 / 2, 0], last]

    def no_mask():
        """those are the weights without a mask"""
        return [_THIRDS] * 3

    def rows_do_not_sum_to_1():
        """each row of attention weights must sum to 1"""
        yield [[1 / 3, 0, 0], [1 / 3, 1 / 3, 0], _THIRDS]
        yield [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
        yield [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
        yield [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
        yield [[1 / 6, 0, 0], [1 / 6, 1 / 6, 0], [1 / 6] * 3]
        yield from ([[number] * 3] * 3 for number in (0, 1, 1 / 6, 1 / 9))
        yield [[100, 0, 0], [50, 50, 0], [100 / 3] * 3]

    def no_softmax():
        """−∞ is what masked scores have: the exercise asks for the weights, which come after softmax"""
        yield [[0, -torch.inf, -torch.inf], [0, 0, -torch.inf], [0, 0, 0]]
        yield [[1, -torch.inf, -torch.inf], [1 / 2, 1 / 2, -torch.inf], _THIRDS]

    def past_hidden():
        """the past is hidden there: a causal mask hides the future"""
        return [_THIRDS, [0, 1 / 2, 1 / 2], [0, 0, 1]]

    def only_the_future():
        """each token attends to the tokens after it only: a causal mask hides these, and nothing else"""
        for last in (0, 1 / 3, torch.nan):
            yield [[0, 1 / 2, 1 / 2], [0, 0, 1], [last] * 3]

    def itself_hidden():
        """a token may attend to itself as well"""
        for first in (0, torch.nan):
            yield [[first] * 3, [1, 0, 0], [1 / 2, 1 / 2, 0]]

    def one_step_ahead():
        """each token also attends to the one after it, which should be hidden"""
        return [[1 / 2, 1 / 2, 0], _THIRDS, _THIRDS]

    def columns_for_rows():
        """rows and columns are swapped: each row belongs to a query, and sums to 1"""
        return [[1, 1 / 2, 1 / 3], [0, 1 / 2, 1 / 3], [0, 0, 1 / 3]]

    def rows_reversed():
        """the rows are in reverse order: the first row belongs to the first query"""
        return [_THIRDS, [1 / 2, 1 / 2, 0], [1, 0, 0]]

    def columns_reversed():
        """the columns are in reverse order: the first column belongs to the first key"""
        return [[0, 0, 1], [0, 1 / 2, 1 / 2], _THIRDS]


# 6.3  Only the recent past.


def _back(num_tokens: int) -> Tensor:
    """Return how far each key is before each query, negative for the future: (queries, keys)."""
    positions = torch.arange(num_tokens)
    return positions[:, None] - positions


class Recent(Exercise, number="6.3", where="section 6.2", asks="a (num_tokens, num_tokens) tensor of True and False"):
    cases = [(7, 3), (5, 1), (10, 5), (7, 2)]
    edges = [(4, 9), (3, 3), (1, 1)]

    def right(num_tokens, reach):
        return (_back(num_tokens) < 0) | (_back(num_tokens) >= reach)

    def one_too_many(num_tokens, reach):
        """each token sees reach tokens before it: the token itself is one of the reach"""
        return (_back(num_tokens) < 0) | (_back(num_tokens) > reach)

    def one_too_few(num_tokens, reach):
        """each token sees one too few: it should see itself and reach − 1 tokens before it"""
        return (_back(num_tokens) < 0) | (_back(num_tokens) >= reach - 1)

    def itself_hidden(num_tokens, reach):
        """each token is hidden from itself: it should see itself and reach − 1 tokens before it"""
        return (_back(num_tokens) <= 0) | (_back(num_tokens) >= reach)

    def one_step_ahead(num_tokens, reach):
        """the token after the query is visible, and it belongs to the future"""
        return (_back(num_tokens) < -1) | (_back(num_tokens) >= reach)

    def both_sides(num_tokens, reach):
        """each token also sees the reach − 1 tokens after it, and they belong to the future"""
        return _back(num_tokens).abs() >= reach

    def future_visible(num_tokens, reach):
        """the distant past is hidden, but the future is visible"""
        return _back(num_tokens) >= reach

    def all_of_the_past(num_tokens, reach):
        """the future is hidden, but the whole past is visible, not only the recent part"""
        return _back(num_tokens) < 0

    def nothing_hidden(num_tokens, reach):
        """there is no True in it: neither the future nor the distant past is hidden"""
        return torch.zeros(num_tokens, num_tokens).bool()

    def all_hidden(num_tokens, reach):
        """there is no False in it: everything is hidden, even each token from itself"""
        return torch.ones(num_tokens, num_tokens).bool()

    def last_tokens_seen(num_tokens, reach):
        """the first tokens also see the last ones: does an index below 0 count from the end?"""
        return _back(num_tokens) % num_tokens >= reach

    def first_tokens_see_nothing(num_tokens, reach):
        """the first reach − 1 tokens see nothing, not even themselves: does an index below 0 count from the end?"""
        first = torch.arange(num_tokens)[:, None] < reach - 1
        return (_back(num_tokens) < 0) | (_back(num_tokens) >= reach) | first


# 6.4  A detector. Its cases are attention functions with and without a leak.


def _attention(visible: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return attention in which query i sees key j where visible(i, j)."""

    def attend(x: Tensor) -> Tensor:
        positions = torch.arange(len(x))
        scores = (x @ x.T).masked_fill(~visible(positions[:, None], positions), -torch.inf)
        return 9 * torch.softmax(scores, dim=-1) @ x[:, 1:]

    return attend


def _from(key: int, to: int) -> Callable[[Tensor], Tensor]:
    """Return causal attention with one leak."""
    return _attention(lambda i, j: (j <= i) | ((i == to) & (j == key)))


_X = torch.tensor([[0.43, 0.15, 0.89], [0.55, -0.87, 0.66], [-0.57, 0.85, 0.64], [0.22, 0.58, -0.93], [0.77, 0.2, 0.1]])
_ZERO_AT_1 = _X[:3].index_fill(0, torch.tensor(1), 0.0)
_ZERO_EXCEPT_1 = _X[:4].index_fill(0, torch.tensor([0, 2, 3]), 0.0)


def _finds(attend, x, positions=None, change=lambda later: later + 1.0, compared=1, tolerance=1e-5) -> bool:
    """Change what comes after each position, and compare the outputs before it and, with compared=1, its own."""
    before = attend(x)
    for position in positions or range(len(x) - 1):
        after = attend(torch.cat([x[: position + 1], change(x[position + 1 :])]))
        end = position + compared
        if not torch.allclose(before[:end], after[:end], rtol=0, atol=tolerance):
            return True
    return False


class Detector(Exercise, number="6.4", where="section 6.4", asks="True or False"):
    cases = {
        "attention with a causal mask": (_attention(lambda i, j: j <= i), _X),
        "attention to the last two tokens": (_attention(lambda i, j: (j <= i) & (j > i - 2)), _X),
        "attention to token 0 and itself": (_attention(lambda i, j: (j == 0) | (j == i)), _X[:4]),
        "a running sum": (lambda x: x.cumsum(dim=0), _X),
        "a function of each token alone": (lambda x: 3 * x[:, :1] - 2, _X[:3]),
        "a causal mask and a row of zeros": (_attention(lambda i, j: j <= i), _ZERO_AT_1),
        "attention without a mask": (_attention(lambda i, j: j >= 0), _X),
        "attention one step ahead": (_attention(lambda i, j: j <= i + 1), _X[:4]),
        "attention to itself and two steps ahead": (_attention(lambda i, j: (j == i) | (j == i + 2)), _X),
        "a leak from token 1 to token 0": (_from(1, to=0), _X),
        "a leak from token 2 to token 1": (_from(2, to=1), _X),
        "a leak from token 8, the last, to token 7": (_from(8, to=7), _X.repeat(2, 1)[:9]),
        "a leak from token 4 to token 0": (_from(4, to=0), _X),
        "a leak from token 1, a row of zeros": (_from(1, to=0), _ZERO_AT_1),
        "a leak from token 3 to token 2, both zeros": (_from(3, to=2), _ZERO_EXCEPT_1),
        "weights set to 0 after softmax": (lambda x: 9 * torch.softmax(x @ x.T, dim=-1).tril() @ x, _X),
        "one column minus the mean of another": (lambda x: torch.stack([x[:, 0], x[:, 2] - x[:, 1].mean()], dim=1), _X),
        "a large sum with 0.02 of the next token": (lambda x: 9 + x.cumsum(0) + 0.02 * F.pad(x[1:], (0, 0, 0, 1)), _X),
    }

    def right(attend, x):
        return _finds(attend, x)

    def only_the_first_position(attend, x):
        """only leaks into position 0 are found: each position must be checked"""
        return _finds(attend, x, positions=[0])

    def only_the_last_token(attend, x):
        """only leaks from the last token are found: change the other tokens as well"""
        return _finds(attend, x, positions=[len(x) - 2])

    def only_the_next_token(attend, x):
        """only leaks from the very next token are found: a leak can come from farther ahead"""
        changed = [x.index_add(0, torch.tensor([i + 1]), torch.ones(1, 3)) for i in range(len(x) - 1)]
        return any(not torch.allclose(attend(x)[i], attend(after)[i]) for i, after in enumerate(changed))

    def next_token_missed(attend, x):
        """leaks from the very next token are not found, only those from farther ahead"""
        return _finds(attend, x, compared=0)

    def small_leak_missed(attend, x):
        """a small leak is not found: is the tolerance too large, or the change too small?"""
        return _finds(attend, x, tolerance=0.05)

    def zeros_unchanged(attend, x):
        """leaks from a row of zeros are not found: the change must turn zeros into something else"""
        return _finds(attend, x, change=lambda later: 2 * later)

    def order_changed(attend, x):
        """leaks that do not depend on the order of the later tokens are not found: replace these tokens with others"""
        return _finds(attend, x, change=lambda later: later.flip(0))

    def always_true(attend, x):
        """it is True even for functions without a leak: is an output compared that is allowed to change?"""
        return True


# 6.5  Which model cheats.


class Cheat(Exercise, number="6.5", where="section 6.1", asks="a list of three items"):
    def right():
        return ["B", 5, "A"]

    def good_model_suspected():
        """a loss of 0 on text that a model has not seen is the sign of a leak, and A has no such loss"""
        yield from (["A", position, letter] for position in range(7) for letter in "AB")

    def small_loss_believed():
        """a model that generates has nothing to its right: copying, the reason for a loss of 0, cannot help it then"""
        yield from (["B", position, "B"] for position in range(7))

    def answer_in_the_window():
        """at that position the next token is in the window, so a model that sees the future can copy it"""
        yield from (["B", position, "A"] for position in range(5))

    def counted_from_1():
        """right, but counted from 1: the first of the six positions is 0"""
        return ["B", 6, "A"]

    def counted_from_the_end():
        """right, but counted from the end: the exercise asks for the position counted from 0"""
        return ["B", -1, "A"]

    def loss_for_a_position():
        """the item at index 1 is a loss: the exercise asks for its position"""
        yield from (["B", loss, "A"] for loss in (2.6, 3.1, 2.4, 2.2, 2.1))

    def words_for_letters():
        """right, but with words around the letters: give the letter alone"""
        yield from ([word + " B", 5, word + " A"] for word in ("model", "Model"))
