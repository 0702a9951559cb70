"""The exercises of lesson 4, simple attention."""

import torch
from torch import Tensor

from utils.attention import simple_attention
from utils.exercises import Exercise, Mistake

_INPUTS = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
_LONG = _INPUTS[:4] * torch.tensor([[1.0], [4.0], [0.5], [9.0]])
_SCORES = torch.tensor([[0.2, 1.5, -0.3], [2.0, 0.0, 0.7], [-1.0, 0.4, 0.9]])

# 4.A  Rows sum to 1.

_ROWS = Exercise(
    reference=lambda scores: torch.softmax(scores, dim=-1),
    cases=[(_SCORES,), (3 * _SCORES.T,)],
    mistakes=[
        Mistake(
            "columns sum to 1",
            lambda scores: torch.softmax(scores, dim=0),
            "the columns sum to 1: a query's weights are a row, and its sum is something else",
        ),
        Mistake(
            "all sum to 1",
            lambda scores: torch.softmax(scores.flatten(), dim=0).reshape(scores.shape),
            "all entries together sum to 1: each query's row must sum to 1 by itself",
        ),
        Mistake(
            "divided by the sum",
            lambda scores: scores / scores.sum(dim=-1, keepdim=True),
            "the scores are only divided by their sum: negative scores give negative weights",
        ),
    ],
    where="section 4.5",
)

# 4.B  The loop that overwrites its own input.


def _contexts(inputs: Tensor) -> Tensor:
    return simple_attention(inputs)[0]


def _overwritten(inputs: Tensor) -> Tensor:
    inputs = inputs.clone()
    for i in range(len(inputs)):
        inputs[i] = torch.softmax(inputs @ inputs[i], dim=-1) @ inputs
    return inputs


def _overwritten_in_place(inputs: Tensor) -> Tensor:
    for i in range(len(inputs)):
        inputs[i] = torch.softmax(inputs @ inputs[i], dim=-1) @ inputs
    return inputs


_LOOP = Exercise(
    reference=_contexts,
    keeps_arguments=True,
    cases=[(_INPUTS,), (_LONG,)],
    mistakes=[
        Mistake(
            "input overwritten",
            _overwritten_in_place,
            "the inputs have changed: what a later token attends to was overwritten on the way",
        ),
        Mistake(
            "copy overwritten",
            _overwritten,
            "the caller's inputs are safe now, but token 1 still attends to the changed token 0: write to a new tensor",
        ),
        Mistake(
            "weights, not contexts",
            lambda inputs: simple_attention(inputs)[1],
            "those are the weights: the context vectors are the weighted sums of the inputs",
        ),
        Mistake(
            "one for all",
            lambda inputs: simple_attention(inputs)[0][:1].expand_as(inputs),
            "all tokens get the context vector of token 0: each token has to be the query once",
        ),
    ],
    where="section 4.5",
)

# 4.C  A softmax that does not overflow.


def _softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1)


def _naive(scores: Tensor) -> Tensor:
    return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)


def _shifted(scores: Tensor, shift: Tensor | float) -> Tensor:
    return _naive(scores - shift)


_STABLE = Exercise(
    keeps_arguments=True,
    reference=_softmax,
    cases=[
        (torch.tensor([[1.0, 2.0, 3.0]]),),
        (torch.tensor([[1000.0, 0.0], [0.0, 1.0]]),),
        (torch.tensor([[-1000.0, -1001.0], [500.0, 499.0]]),),
        (torch.tensor([[0.0, 90.0, 0.0, 0.0]]),),
    ],
    mistakes=[
        Mistake(
            "overflow",
            _naive,
            "small scores are right, but for 1000 and 0 the first weight comes out as nan",
        ),
        Mistake(
            "one maximum for all",
            lambda scores: _shifted(scores, scores.max()),
            "one maximum for all rows: a row with scores far below it becomes 0/0, so each row needs its own",
        ),
        Mistake(
            "minimum subtracted",
            lambda scores: _shifted(scores, scores.min(dim=-1, keepdim=True).values),
            "you subtract the smallest score, and the largest is then even farther above 0: subtract the largest",
        ),
        Mistake(
            "mean subtracted",
            lambda scores: _shifted(scores, scores.mean(dim=-1, keepdim=True)),
            "you subtract the mean, and the largest score can still be far above it: subtract the maximum",
        ),
        Mistake(
            "scores clamped",
            lambda scores: _naive(scores.clamp(min=-50, max=50)),
            "scores above 50 become equal, so different scores get equal weights: subtract instead of clamping",
        ),
        Mistake(
            "nan hidden",
            lambda scores: _naive(scores).nan_to_num(),
            "nan was replaced with 0, so rows no longer sum to 1: the overflow is hidden, not prevented",
        ),
        Mistake(
            "columns",
            lambda scores: torch.softmax(scores, dim=0),
            "the columns sum to 1: apply softmax along the last axis",
        ),
    ],
    where="section 4.3",
)

# 4.1  One line: scores of one query.

_SCORES_FOR = Exercise(
    reference=lambda inputs, index: inputs @ inputs[index],
    cases=[(_INPUTS, 1), (_INPUTS, 4), (_LONG, 0)],
    mistakes=[
        Mistake(
            "not summed",
            lambda inputs, index: inputs * inputs[index],
            "the products are not added up: a score is one number per token",
        ),
        Mistake(
            "all queries",
            lambda inputs, index: inputs @ inputs.T,
            "those are the scores of all queries: the exercise asks for one row",
        ),
        Mistake(
            "softmax already",
            lambda inputs, index: torch.softmax(inputs @ inputs[index], dim=-1),
            "those are already weights: scores come before softmax",
        ),
        Mistake(
            "only itself",
            lambda inputs, index: inputs[index] @ inputs[index],
            "that is only the query's score with itself: every token has a score",
        ),
        Mistake(
            "always token 0",
            lambda inputs, index: inputs @ inputs[0],
            "the query is always token 0: it should be inputs[index]",
        ),
    ],
    where="section 4.2",
)

# 4.2  From weights to contexts.

_WEIGHTS = torch.softmax(_SCORES, dim=-1)

_FROM_WEIGHTS = Exercise(
    reference=lambda inputs, weights: weights @ inputs,
    cases=[(_INPUTS[:3], _WEIGHTS), (_LONG[:3], torch.eye(3)[[1, 1, 2]])],
    mistakes=[
        Mistake(
            "weights transposed",
            lambda inputs, weights: weights.T @ inputs,
            "you summed with the columns of the weights: a query's weights are its row",
        ),
        Mistake(
            "one sum for all",
            lambda inputs, weights: weights.sum(dim=0) @ inputs,
            "you get one vector for all tokens: each query has its own sum",
        ),
        Mistake(
            "not mixed",
            lambda inputs, weights: weights.diagonal()[:, None] * inputs,
            "each token only gets its own vector times its own weight: the others are missing",
        ),
        Mistake(
            "softmax again",
            lambda inputs, weights: torch.softmax(weights, dim=-1) @ inputs,
            "softmax was applied a second time: these are already weights",
        ),
        Mistake(
            "inputs first",
            lambda inputs, weights: inputs @ weights,
            "the order of the product is wrong: it mixes the entries of a vector instead of the tokens",
        ),
    ],
    where="section 4.4",
)

# 4.3  Softmax by hand: scores 0, 0, ln 2.

_IN_THE_HEAD = Exercise(
    reference=[0.25, 0.25, 0.5],
    mistakes=[
        Mistake(
            "divided by the sum",
            [0.0, 0.0, 1.0],
            "you divided the scores themselves by their sum: first compute e to the power of each",
        ),
        Mistake(
            "equal weights",
            [1 / 3, 1 / 3, 1 / 3],
            "a larger score gets a larger weight: e to the power ln 2 is 2, the others are 1",
        ),
        Mistake(
            "not divided",
            [1.0, 1.0, 2.0],
            "those are the powers: divide them by their sum",
        ),
        Mistake(
            "order reversed",
            [0.5, 0.25, 0.25],
            "the right numbers in the wrong order: the third score is the largest",
        ),
    ],
    where="section 4.3",
)

# 4.4  Attention by direction.


def _unit(inputs: Tensor, dim: int = -1) -> Tensor:
    return inputs / inputs.norm(dim=dim, keepdim=True)


def _by_direction(inputs: Tensor, values: Tensor | None = None, unit: Tensor | None = None, dim: int = -1) -> tuple:
    unit = _unit(inputs) if unit is None else unit
    weights = torch.softmax(unit @ unit.transpose(-2, -1), dim=dim)
    return weights @ (inputs if values is None else values), weights


_DIRECTION = Exercise(
    reference=_by_direction,
    cases=[(_INPUTS,), (_LONG,)],
    mistakes=[
        Mistake(
            "values of length 1 too",
            lambda inputs: _by_direction(inputs, values=_unit(inputs)),
            "the weights are right, but the context vectors are sums of normalised vectors: sum the original inputs",
        ),
        Mistake(
            "dot product",
            simple_attention,
            "the scores still grow with the vectors' lengths: scale the vectors to length 1 before comparing them",
        ),
        Mistake(
            "columns of length 1",
            lambda inputs: _by_direction(inputs, unit=_unit(inputs, dim=-2)),
            "you scaled the columns to length 1: a token's vector is a row, the last axis",
        ),
        Mistake(
            "query only",
            lambda inputs: _mixed(inputs, _unit(inputs), inputs),
            "only the query was scaled to length 1: long keys still get more weight",
        ),
        Mistake(
            "columns sum to 1",
            lambda inputs: _by_direction(inputs, dim=-2),
            "softmax ran along the columns: a query's weights, its row, must sum to 1",
        ),
        Mistake(
            "softmax forgotten",
            lambda inputs: (_cosines(inputs) @ inputs, _cosines(inputs)),
            "the cosines are used as weights: softmax is missing",
        ),
        Mistake(
            "weights first",
            lambda inputs: _by_direction(inputs)[::-1],
            "right, but in the wrong order: return (context_vectors, attn_weights)",
        ),
    ],
    where="section 4.6",
)


def _cosines(inputs: Tensor) -> Tensor:
    return _unit(inputs) @ _unit(inputs).transpose(-2, -1)


def _mixed(inputs: Tensor, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(queries @ keys.transpose(-2, -1), dim=-1)
    return weights @ inputs, weights


# 4.5  What is always true.

_ALWAYS = Exercise(
    reference=[True, False, True, True, False],
    mistakes=[
        Mistake(
            "columns too",
            [True, True, True, True, False],
            "all right except (b): the scores are symmetric, but each row is divided by its own sum",
        ),
        Mistake(
            "scores not symmetric",
            [True, False, False, True, False],
            "all right except (c): a dot product does not depend on which vector comes first",
        ),
        Mistake(
            "order matters",
            [True, False, True, False, False],
            "all right except (d): nothing in this attention knows a token's position",
        ),
        Mistake(
            "attends to itself most",
            [True, False, True, True, True],
            "all right except (e): a longer vector that points roughly the same way beats the token itself",
        ),
        Mistake(
            "rows and columns swapped",
            [False, True, True, True, False],
            "(a) and (b) are swapped: the weights of one query are a row",
        ),
    ],
    where="sections 4.5 and 4.7",
)

EXERCISES = {
    "4.A": _ROWS,
    "4.B": _LOOP,
    "4.C": _STABLE,
    "4.1": _SCORES_FOR,
    "4.2": _FROM_WEIGHTS,
    "4.3": _IN_THE_HEAD,
    "4.4": _DIRECTION,
    "4.5": _ALWAYS,
}
