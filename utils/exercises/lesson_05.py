"""The exercises of lesson 5, queries, keys and values."""

import torch
from torch import Tensor, nn

from utils.attention import SelfAttention
from utils.exercises import Exercise, Mistake
from utils.exercises.differences import shown

_X = torch.tensor([[0.4, -1.2, 0.9, 0.3], [1.5, 0.7, -0.6, 0.1], [-0.3, 0.8, 0.6, -1.1]])
_W_QUERY = torch.tensor([[0.6, -0.2], [1.1, 0.4], [-0.7, 0.9], [0.3, 1.2]])
_W_KEY = torch.tensor([[-0.5, 0.8], [0.2, 1.3], [0.9, -0.4], [0.7, 0.1]])
_W_QUERY_3, _W_KEY_3 = torch.cat([_W_QUERY, _W_KEY[:, :1]], dim=1), torch.cat([_W_KEY, _W_QUERY[:, 1:]], dim=1)
_QUERIES, _KEYS = _X @ _W_QUERY, _X @ _W_KEY
_VALUES = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [5.0, 1.0, 0.0]])


def _softmax(scores: Tensor, dim: int = -1) -> Tensor:
    return torch.softmax(scores, dim=dim)


# 5.A  The square root of head_dim, not of the input's size.

_ROOT = Exercise(
    reference=lambda x, W_query, W_key: _softmax(x @ W_query @ (x @ W_key).T / W_key.shape[-1] ** 0.5),
    cases=[(_X[:2], _W_QUERY_3, _W_KEY_3), (_X.flip(0), _W_QUERY_3, 2 * _W_KEY_3)],
    mistakes=[
        Mistake(
            "square root of the input's size",
            lambda x, W_query, W_key: _softmax(x @ W_query @ (x @ W_key).T / x.shape[-1] ** 0.5),
            "the rows sum to 1, but the weights are more uniform than they should be",
        ),
        Mistake(
            "square root of num_tokens",
            lambda x, W_query, W_key: _softmax(x @ W_query @ (x @ W_key).T / len(x) ** 0.5),
            "you divide by the square root of the number of tokens: what counts is the size of the keys, head_dim",
        ),
        Mistake(
            "not divided",
            lambda x, W_query, W_key: _softmax(x @ W_query @ (x @ W_key).T),
            "the scores are not divided at all",
        ),
        Mistake(
            "queries and keys swapped",
            lambda x, W_query, W_key: _softmax(x @ W_key @ (x @ W_query).T / W_key.shape[-1] ** 0.5),
            "queries and keys are swapped: row i is for query i",
        ),
        Mistake(
            "columns sum to 1",
            lambda x, W_query, W_key: _softmax(x @ W_query @ (x @ W_key).T / W_key.shape[-1] ** 0.5, dim=0),
            "softmax runs along the columns: a query's weights, its row, must sum to 1",
        ),
        Mistake(
            "square root missing",
            lambda x, W_query, W_key: _softmax(x @ W_query @ (x @ W_key).T / W_key.shape[-1]),
            "you divide by head_dim itself: divide by its square root",
        ),
        Mistake(
            "after softmax",
            lambda x, W_query, W_key: _softmax(x @ W_query @ (x @ W_key).T) / W_key.shape[-1] ** 0.5,
            "the weights are divided, and no longer sum to 1: divide the scores, before softmax",
        ),
    ],
    where="section 5.6",
)

# 5.B  Row i belongs to query i.


def _context(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return _softmax(queries @ keys.T / keys.shape[-1] ** 0.5) @ values


_WHO = Exercise(
    reference=_context,
    cases=[(_QUERIES, _KEYS, _VALUES), (_QUERIES.flip(0), 3 * _KEYS, _VALUES)],
    mistakes=[
        Mistake(
            "queries and keys swapped",
            lambda queries, keys, values: _context(keys, queries, values),
            "the context vector of token 0 uses the scores in which token 0 is the key, not the query",
        ),
        Mistake(
            "softmax along columns",
            lambda queries, keys, values: _softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values,
            "softmax runs along the columns: a query's weights, its row, must sum to 1",
        ),
        Mistake(
            "weights transposed",
            lambda queries, keys, values: _softmax(queries @ keys.T / keys.shape[-1] ** 0.5).T @ values,
            "the weights are transposed before the sum: a query's weights are its row",
        ),
        Mistake(
            "keys for values",
            lambda queries, keys, values: _context(queries, keys, keys),
            "you sum the keys: keys are for finding a token, values are what it passes on",
        ),
        Mistake(
            "not divided",
            lambda queries, keys, values: _softmax(queries @ keys.T) @ values,
            "the scores are no longer divided by the square root of head_dim",
        ),
    ],
    where="section 5.3",
)

# 5.1  One line: scaled scores.

_SCALED = Exercise(
    reference=lambda queries, keys: queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5,
    cases=[(_QUERIES, _KEYS), (_X[:2], _X)],
    mistakes=[
        Mistake(
            "not divided",
            lambda queries, keys: queries @ keys.transpose(-2, -1),
            "the scores are right, but not divided: they grow with the number of entries",
        ),
        Mistake(
            "square root missing",
            lambda queries, keys: queries @ keys.transpose(-2, -1) / keys.shape[-1],
            "you divide by head_dim: dividing by its square root keeps the variance at 1",
        ),
        Mistake(
            "square root of num_tokens",
            lambda queries, keys: queries @ keys.transpose(-2, -1) / keys.shape[-2] ** 0.5,
            "you divide by the square root of the number of keys: use the size of a key, the last axis",
        ),
        Mistake(
            "queries and keys swapped",
            lambda queries, keys: keys @ queries.transpose(-2, -1) / keys.shape[-1] ** 0.5,
            "rows and columns are swapped: row i is for query i",
        ),
        Mistake(
            "softmax already",
            lambda queries, keys: _softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5),
            "those are the weights: the exercise asks for the scores before softmax",
        ),
    ],
    where="sections 5.3 and 5.6",
)

# 5.2  From nn.Linear to a matrix.


def _linear() -> nn.Linear:
    linear = nn.Linear(4, 2, bias=False)
    linear.weight.data.copy_(_W_QUERY.T)
    return linear


_MATRIX = Exercise(
    reference=lambda linear: linear.weight.T,
    cases=[(_linear(),)],
    mistakes=[
        Mistake(
            "not transposed",
            lambda linear: linear.weight,
            "nn.Linear stores its weight as (out, in): x @ W needs (in, out)",
        ),
        Mistake(
            "reshaped",
            lambda linear: linear.weight.reshape(linear.in_features, linear.out_features),
            "the shape is right, but the order of the entries is not: reshape reads row by row and transposes nothing",
        ),
        Mistake(
            "inverse",
            lambda linear: torch.linalg.pinv(linear.weight),
            "that undoes the layer: the exercise asks for the matrix that does the same as the layer",
        ),
        Mistake(
            "new numbers",
            lambda linear: torch.zeros(linear.in_features, linear.out_features),
            "these are not the layer's numbers: they are in linear.weight",
        ),
    ],
    where="section 5.4",
)

# 5.3  A rule by hand: road attends to it, and it attends to all equally. The outcome is a list of complaints.

_SENTENCE = torch.tensor(
    [[0.0, 0, 0, 1], [2.0, 0, 0, 0], *[[0.0, 0, 0, 1]] * 4, [0.0, 2, 0, 0], [0.0, 0, 0, 1], [0.0, 0, 2, 0]]
    + [[0.0, 0, 0, 1]] * 2
)
_ANIMAL, _ROAD, _IT = 1, 6, 8


def _rule_complaints(answer: object) -> list[str]:
    if not callable(answer):
        return ["the exercise asks for a function: pass road_looks_at_it itself, without calling it"]
    W_query, W_key = (torch.as_tensor(matrix, dtype=torch.float32) for matrix in answer())
    if W_query.shape != (4, 2) or W_key.shape != (4, 2):
        return [f"W_query has shape {tuple(W_query.shape)} and W_key {tuple(W_key.shape)}: both must be (4, 2)"]
    weights = _softmax(_SENTENCE @ W_query @ (_SENTENCE @ W_key).T / 2**0.5)
    road, it = weights[_ROAD], weights[_IT]
    found = {
        "nothing is set: all tokens still attend to all tokens equally": not (W_query.any() and W_key.any()),
        'the rule is reversed: "it" attends to "road"': it[_ROAD] > 0.9 and road[_IT] <= 0.9,
        '"road" has the same score with every token: query and key do not meet in one entry': road.max() - road.min()
        < 1e-6,
        '"road" attends to everything but "it": the score is negative, so one of the signs is wrong': road[_IT] < 0.05,
        '"road" attends to "animal" as much as to "it"': road[_ANIMAL] > 0.3,
        '"road" attends most to "it", but with a weight below 0.9: the score is too small': road[_IT] <= 0.9,
        '"it" does not attend to all tokens equally': it.max() - it.min() > 1e-4,
    }
    return [complaint for complaint, is_true in found.items() if is_true][:1]


def _rule(asks: int, answers: int, size: float = 3.0) -> tuple[Tensor, Tensor]:
    W_query, W_key = torch.zeros(4, 2), torch.zeros(4, 2)
    W_query[asks, 0], W_key[answers, 0] = size, abs(size)
    return W_query, W_key


_RULE = Exercise(
    reference=lambda: _rule(asks=1, answers=2),
    probe=_rule_complaints,
    mistakes=[
        Mistake(
            "rule reversed",
            lambda: _rule(asks=2, answers=1),
            'in your rule "it" asks and "road" answers: here "road" should attend to "it", so "road" asks',
        ),
        Mistake(
            "too small",
            lambda: _rule(asks=1, answers=2, size=0.9),
            '"road" attends most to "it", but ten other tokens share the remaining weight: make the score larger',
        ),
        Mistake(
            "negative score",
            lambda: _rule(asks=1, answers=2, size=-3.0),
            'the score of "road" and "it" is negative, so "road" attends to everything else: check the signs',
        ),
        Mistake(
            "nothing set",
            lambda: (torch.zeros(4, 2), torch.zeros(4, 2)),
            "all entries are 0, so all scores are 0 and every token attends to all tokens equally",
        ),
        Mistake(
            "transposed",
            lambda: tuple(matrix.T for matrix in _rule(asks=1, answers=2)),
            "the matrices are (2, 4): x @ W needs (d_in, d_out), one row per direction of the input",
        ),
    ],
    where="section 5.2",
)

# 5.4  Parameters of self-attention.

_COUNT = Exercise(
    reference=lambda d_in, d_out, qkv_bias: 3 * (d_in * d_out + (d_out if qkv_bias else 0)),
    cases=[(768, 64, False), (3, 2, True), (5, 5, True)],
    mistakes=[
        Mistake(
            "bias forgotten",
            lambda d_in, d_out, qkv_bias: 3 * d_in * d_out,
            "right without bias; with bias, each projection has one more number per output",
        ),
        Mistake(
            "one bias for all",
            lambda d_in, d_out, qkv_bias: 3 * d_in * d_out + (d_out if qkv_bias else 0),
            "you counted one bias for all: each of the three projections has its own",
        ),
        Mistake(
            "bias of the input's size",
            lambda d_in, d_out, qkv_bias: 3 * (d_in * d_out + (d_in if qkv_bias else 0)),
            "the bias is added to the output, so it has as many entries as the output",
        ),
        Mistake(
            "one projection",
            lambda d_in, d_out, qkv_bias: d_in * d_out + (d_out if qkv_bias else 0),
            "that is one projection: there are three",
        ),
        Mistake(
            "queries and keys only",
            lambda d_in, d_out, qkv_bias: 2 * (d_in * d_out + (d_out if qkv_bias else 0)),
            "that is queries and keys: values have a projection too",
        ),
    ],
    where="section 5.4",
)

# 5.5  Cross-attention. The probe gives each answer the same weights and compares what comes out.


class _Cross(SelfAttention):
    """Right, and a base class for the mistakes, each of which changes one step."""

    divisor, dim = "head_dim", -1

    def __init__(self, d_in: int, d_out: int):
        super().__init__(d_in, d_out)

    def texts(self, x: Tensor, others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x, others, others

    def forward(self, x: Tensor, others: Tensor) -> Tensor:
        for_queries, for_keys, for_values = self.texts(x, others)
        queries, keys = self.W_query(for_queries), self.W_key(for_keys)
        sizes = {"head_dim": keys.shape[-1], "d_in": x.shape[-1], "nothing": 1}
        scores = queries @ keys.transpose(-2, -1) / sizes[self.divisor] ** 0.5
        return _softmax(scores, dim=self.dim) @ self.W_value(for_values)


class _Itself(_Cross):
    def texts(self, x: Tensor, others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x, x, x


class _WrongWay(_Cross):
    def texts(self, x: Tensor, others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return others, x, x


class _OthersOnly(_Cross):
    def texts(self, x: Tensor, others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return others, others, others


class _NotDivided(_Cross):
    divisor = "nothing"


class _RootOfInput(_Cross):
    divisor = "d_in"


class _OwnValues(_Cross):
    def texts(self, x: Tensor, others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x, others, x


class _Columns(_Cross):
    dim = -2


def _probe(answer: type) -> Tensor | list[str]:
    layer = answer(4, 2)
    if layer is ...:
        return layer
    weights = {"W_query": _W_QUERY, "W_key": _W_KEY, "W_value": _W_QUERY.flip(0)}
    for name, matrix in weights.items():
        linear = getattr(layer, name, None)
        if not isinstance(linear, nn.Linear):
            return [f"the layer has no nn.Linear named {name}"]
        if linear.weight.shape != (2, 4) or linear.bias is not None:
            return [f"{name} must be nn.Linear(d_in, d_out, bias=False)"]
        linear.weight.data.copy_(matrix.T)
    output = layer(_X[:2], _X)
    if not isinstance(output, Tensor) and output is not ...:
        return [f"forward returns {shown(output)}: the exercise asks for one tensor, the context vectors"]
    return [output, layer(_X[None], _X[None, :1])]


_CROSS = Exercise(
    reference=_Cross,
    probe=_probe,
    mistakes=[
        Mistake(
            "attends to itself",
            _Itself,
            "the tokens of x attend to x: keys and values have to come from others",
        ),
        Mistake(
            "texts swapped",
            _WrongWay,
            "others attends to x: the queries, one per row of the result, come from x",
        ),
        Mistake(
            "x not used",
            _OthersOnly,
            "x has no effect: the queries come from it",
        ),
        Mistake(
            "not divided",
            _NotDivided,
            "the scores are not divided by the square root of head_dim",
        ),
        Mistake(
            "square root of d_in",
            _RootOfInput,
            "the scores are divided by the square root of d_in: use head_dim, which is d_out here",
        ),
        Mistake(
            "own values",
            _OwnValues,
            "keys come from others, but values from x: each key needs the value of the same token",
        ),
        Mistake(
            "columns sum to 1",
            _Columns,
            "softmax runs along the wrong axis: each query's weights must sum to 1",
        ),
    ],
    where="section 5.4",
)

# 5.6  Shapes and sizes: x is (2, 5, 12), d_out 4.

_SHAPES = Exercise(
    reference=[(2, 5, 4), (2, 5, 5), (2, 5, 4), 4, 1],
    mistakes=[
        Mistake(
            "scores as wide as queries",
            [(2, 5, 4), (2, 5, 4), (2, 5, 4), 4, 1],
            "all right except (b): there is one score per query and key of a text",
        ),
        Mistake(
            "variance of the input's size",
            [(2, 5, 4), (2, 5, 5), (2, 5, 4), 12, 1],
            "all right except (d): the products are of queries and keys, which have 4 entries",
        ),
        Mistake(
            "still d_in",
            [(2, 5, 12), (2, 5, 5), (2, 5, 12), 12, 1],
            "queries, keys and values have d_out entries: the projections map d_in to d_out",
        ),
        Mistake(
            "square root of the variance",
            [(2, 5, 4), (2, 5, 5), (2, 5, 4), 4, 2],
            "all right except (e): numbers divided by 2 have a quarter of the variance, since it is made of squares",
        ),
        Mistake(
            "one square root too many",
            [(2, 5, 4), (2, 5, 5), (2, 5, 4), 2, 1],
            "all right except (d): the variance is head_dim itself; you divide by its square root",
        ),
    ],
    where="sections 5.3 and 5.6",
)

EXERCISES = {
    "5.A": _ROOT,
    "5.B": _WHO,
    "5.1": _SCALED,
    "5.2": _MATRIX,
    "5.3": _RULE,
    "5.4": _COUNT,
    "5.5": _CROSS,
    "5.6": _SHAPES,
}
