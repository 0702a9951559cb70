"""The exercises of lesson 5, queries, keys and values."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from utils.attention import SelfAttention
from utils.exercises import Exercise, demand
from utils.exercises.shown import described
from utils.exercises.stubs import gaps
from utils.exercises.values import as_number, items, kind_of, same

GENERATOR = torch.Generator().manual_seed(5)


def numbers(*shape: int) -> Tensor:
    """Return numbers of both signs, the same in every run: the global random state is left alone."""
    return torch.randn(shape, generator=GENERATOR)


def projections(d_in: int, d_out: int, count: int) -> list[Tensor]:
    """Return matrices with entries so small that softmax of the scores gives weight to every key."""
    return [numbers(d_in, d_out) / 2 for _ in range(count)]


def scaled(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the scores, divided as they should be: (…, queries, keys)."""
    return queries @ keys.mT / keys.shape[-1] ** 0.5


def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return the context vectors, one per query."""
    return torch.softmax(scaled(queries, keys), dim=-1) @ values


class Root(Exercise, number="5.A", where="section 5.6", asks="a tensor of attention weights, one row per query"):
    cases = {  # d_in is larger than head_dim, and the number of tokens is neither
        "keys of 2 entries": (numbers(3, 5), *projections(5, 2, count=2)),
        "keys of 5 entries": (numbers(8, 7), *projections(7, 5, count=2)),
    }

    def right(x, W_query, W_key):
        return torch.softmax(scaled(x @ W_query, x @ W_key), dim=-1)

    def square_root_of_d_in(x, W_query, W_key):
        """the rows sum to 1, but the weights in a row are closer to each other than they should be"""
        return torch.softmax(x @ W_query @ (x @ W_key).T / x.shape[-1] ** 0.5, dim=-1)

    def square_root_of_num_tokens(x, W_query, W_key):
        """the scores are divided by the square root of the number of tokens: what counts is the size of a key"""
        return torch.softmax(x @ W_query @ (x @ W_key).T / len(x) ** 0.5, dim=-1)

    def right_for_2_entries_only(x, W_query, W_key):
        """the scores are divided by √2 although a key has 5 entries: take the number from the keys' shape"""
        return torch.softmax(x @ W_query @ (x @ W_key).T / 2**0.5, dim=-1)

    def not_divided(x, W_query, W_key):
        """the scores are not divided at all"""
        return torch.softmax(x @ W_query @ (x @ W_key).T, dim=-1)

    def square_root_missing(x, W_query, W_key):
        """the scores are divided by head_dim itself: divide them by its square root"""
        return torch.softmax(x @ W_query @ (x @ W_key).T / W_key.shape[-1], dim=-1)

    def halved(x, W_query, W_key):
        """the scores are divided by 2 · head_dim: in Python, x ** 1 / 2 is half of x, and x ** 0.5 its square root"""
        return torch.softmax(x @ W_query @ (x @ W_key).T / (2 * W_key.shape[-1]), dim=-1)

    def multiplied(x, W_query, W_key):
        """the scores are multiplied by the square root of head_dim: divide them by it"""
        return torch.softmax(x @ W_query @ (x @ W_key).T * W_key.shape[-1] ** 0.5, dim=-1)

    def divided_after_softmax(x, W_query, W_key):
        """the weights are divided, so that the rows do not sum to 1: divide the scores, before softmax"""
        return torch.softmax(x @ W_query @ (x @ W_key).T, dim=-1) / W_key.shape[-1] ** 0.5

    def queries_and_keys_swapped(x, W_query, W_key):
        """queries and keys are swapped: row 0 uses the scores in which token 0 is the key, not the query"""
        return torch.softmax(scaled(x @ W_key, x @ W_query), dim=-1)

    def columns_sum_to_1(x, W_query, W_key):
        """the columns sum to 1: a query's weights are a row, and its sum must be 1"""
        return torch.softmax(scaled(x @ W_query, x @ W_key), dim=0)

    def softmax_missing(x, W_query, W_key):
        """those are the scores, divided as they should be: softmax makes weights of them"""
        return scaled(x @ W_query, x @ W_key)


class Who(Exercise, number="5.B", where="section 5.3", asks="a tensor of context vectors, one per query"):
    cases = {
        "values of 3 entries": (numbers(4, 3), numbers(4, 3), numbers(4, 3)),
        "values of 5 entries": (numbers(7, 2), numbers(7, 2), numbers(7, 5)),
    }

    right = attend

    def queries_and_keys_swapped(queries, keys, values):
        """the context vector of token 0 uses the scores in which token 0 is the key, not the query"""
        return attend(keys, queries, values)

    def weights_of_keys_sum_to_1(queries, keys, values):
        """the weights that belong to one key sum to 1: those that belong to one query must"""
        return torch.softmax(scaled(queries, keys), dim=0) @ values

    def weights_transposed(queries, keys, values):
        """the weights are right, but transposed: when the values are summed, row i must belong to query i"""
        return torch.softmax(scaled(queries, keys), dim=-1).T @ values

    def keys_for_values(queries, keys, values):
        """the keys are summed: a key is for being found, and the value is what is passed on"""
        return attend(queries, keys, keys)

    def not_divided(queries, keys, values):
        """the scores are not divided by the square root of head_dim"""
        return torch.softmax(queries @ keys.T, dim=-1) @ values

    def square_root_missing(queries, keys, values):
        """the scores are divided by head_dim itself: divide them by its square root"""
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values

    def square_root_of_value_size(queries, keys, values):
        """the scores are divided by the square root of the size of a value: what counts is the size of a key"""
        return torch.softmax(queries @ keys.T / values.shape[-1] ** 0.5, dim=-1) @ values

    def square_root_of_num_tokens(queries, keys, values):
        """the scores are divided by the square root of the number of tokens: what counts is the size of a key"""
        return torch.softmax(queries @ keys.T / len(keys) ** 0.5, dim=-1) @ values

    def softmax_missing(queries, keys, values):
        """the scores are used as weights: softmax is missing"""
        return scaled(queries, keys) @ values

    def weights_not_contexts(queries, keys, values):
        """those are the weights: the context vectors are the weighted sums of the values"""
        return torch.softmax(scaled(queries, keys), dim=-1)


class Scaled(Exercise, number="5.1", where="sections 5.3 and 5.6", asks="a tensor of scores, one row per query"):
    cases = {
        "vectors of 2 entries": (numbers(3, 2), numbers(4, 2)),
        "vectors of 5 entries": (numbers(4, 5), numbers(3, 5)),
    }

    right = scaled

    def not_divided(queries, keys):
        """the dot products are right, but not divided: they grow with the number of entries"""
        return queries @ keys.T

    def square_root_missing(queries, keys):
        """the scores are divided by head_dim: dividing by its square root keeps the variance at 1"""
        return queries @ keys.T / keys.shape[-1]

    def multiplied(queries, keys):
        """the scores are multiplied by the square root of head_dim: divide them by it"""
        return queries @ keys.T * keys.shape[-1] ** 0.5

    def halved(queries, keys):
        """the scores are divided by 2 · head_dim: in Python, x ** 1 / 2 is half of x, and x ** 0.5 its square root"""
        return queries @ keys.T / (2 * keys.shape[-1])

    def square_root_of_num_keys(queries, keys):
        """the scores are divided by the square root of the number of keys: what counts is the size of a key"""
        return queries @ keys.T / len(keys) ** 0.5

    def square_root_of_num_queries(queries, keys):
        """the scores are divided by the square root of the number of queries: what counts is the size of a key"""
        return queries @ keys.T / len(queries) ** 0.5

    def right_for_2_entries_only(queries, keys):
        """the scores are divided by √2 although a key has 5 entries: take the number from the keys' shape"""
        return queries @ keys.T / 2**0.5

    def softmax_already(queries, keys):
        """those are the weights: the exercise asks for the scores before softmax"""
        return torch.softmax(scaled(queries, keys), dim=-1)


def linear_of(weight: Tensor) -> nn.Linear:
    """Return a layer with this weight, (d_out, d_in), and no bias."""
    d_out, d_in = weight.shape
    linear = nn.utils.skip_init(nn.Linear, d_in, d_out, bias=False)
    linear.weight.data.copy_(weight)
    return linear


class Matrix(Exercise, number="5.2", where="section 5.4", asks="a matrix of shape (d_in, d_out)"):
    cases = {
        "4 inputs and 2 outputs": (linear_of(numbers(2, 4)),),
        "3 inputs and 5 outputs": (linear_of(numbers(5, 3)),),
        "3 inputs and 3 outputs": (linear_of(numbers(3, 3)),),
    }

    def right(linear):
        return linear.weight.T

    def not_transposed(linear):
        """nn.Linear stores its weight as (d_out, d_in): x @ W needs (d_in, d_out)"""
        return linear.weight

    def reshaped(linear):
        """the shape is right, but the numbers are still in the order of the weight: transposing also changes that"""
        return linear.weight.reshape(linear.in_features, linear.out_features)

    def shape_only(linear):
        """that is the shape of the matrix: the exercise asks for the matrix itself"""
        return linear.weight.T.shape


WORDS = ["The", "animal", "did", "not", "cross", "the", "road", "because", "it", "was", "tired"]
ROAD, IT = WORDS.index("road"), WORDS.index("it")
KINDS = {"animal": [2.0, 0.0, 0.0, 0.0], "road": [0.0, 2.0, 0.0, 0.0], "it": [0.0, 0.0, 2.0, 0.0]}
SENTENCE = torch.tensor([KINDS.get(word, [0.0, 0.0, 0.0, 1.0]) for word in WORDS], dtype=torch.double)


def attended(weights: Tensor) -> str:
    """Return what a token with these weights attends to, such as 'most to "it", with weight 0.85'."""
    largest = weights.max() - weights < 1e-4
    most, rest = ([f'"{word}"' for word, chosen in zip(WORDS, row) if chosen] for row in (largest, ~largest))
    if not rest:
        return "to all tokens equally"
    if len(most) > len(rest):
        return f"less to {' and '.join(rest)} than to the others"
    digits = 4 if 0.89 < weights.max() < 0.9 else 2  # 0.8992 is not above 0.9, and 0.90 does not show it
    weight = f"{weights.max():.{digits}f}"
    return f"most to {' and '.join(most)}, with {f'weight {weight}' if len(most) == 1 else f'{weight} each'}"


def matrix_of(name: str, value: Any) -> Tensor:
    """Return a matrix of any type as a tensor; complain of anything else."""
    rows = [items(row) for row in items(value) if kind_of(row) == "sequence"] if kind_of(value) == "sequence" else []
    regular = rows and len(rows) == len(value) and len({len(row) for row in rows}) == 1
    is_one = regular and all(kind_of(entry) == "number" for row in rows for entry in row)
    demand(is_one, f"{name} is {described(value)}: it should be a matrix of numbers, of shape (4, 2)")
    return torch.tensor([[as_number(entry) for entry in row] for row in rows], dtype=torch.double)


def rule(asks: int, answers: int) -> tuple[Tensor, Tensor]:
    """Return W_query and W_key with which one direction attends to another."""
    W_query, W_key = torch.zeros(4, 2), torch.zeros(4, 2)
    W_query[asks, 0] = W_key[answers, 0] = 3.0
    return W_query, W_key


class Rule(Exercise, number="5.3", where="section 5.2", asks="two matrices of shape (4, 2)"):
    def call(answer):
        pair = answer()
        if pair is None or gaps(pair)[0]:
            return pair
        demand(kind_of(pair) == "sequence" and len(pair) == 2, "it should return two matrices of shape (4, 2)")
        W_query, W_key = (matrix_of(name, value) for name, value in zip(("W_query", "W_key"), pair))
        shapes = f"W_query has shape {tuple(W_query.shape)} and W_key {tuple(W_key.shape)}"
        demand(W_query.shape == W_key.shape == (4, 2), f"{shapes}: both should have shape (4, 2)")
        weights = torch.softmax(scaled(SENTENCE @ W_query, SENTENCE @ W_key), dim=-1)
        demand(weights.isfinite().all(), "there is nan among the attention weights: are all entries finite?")
        road, it = weights[ROAD], weights[IT]
        seen = f'"road" attends {attended(road)}, and "it" {attended(it)}'
        if attended(road) == attended(it):
            seen = f'"road" and "it" attend {attended(it)}'
        demand(road[IT] > 0.9, f'{seen}: "road" should give "it" a weight above 0.9')
        demand(it.max() - it.min() < 1e-4, f'{seen}: "it" should attend to all tokens equally')
        return "the rule"

    def right():
        return rule(asks=1, answers=2)

    def rule_reversed():
        """the rule is reversed: "it" attends to "road", and "road" to all tokens equally"""
        return rule(asks=2, answers=1)

    def no_rule():
        """both "road" and "it" attend to all tokens equally: the query of "road" should fit the key of "it" only"""
        return torch.zeros(4, 2), torch.zeros(4, 2)

    def it_asks_too():
        """right for "road", but "it" attends to itself as well: it should attend to all tokens equally"""
        W_query, W_key = rule(asks=1, answers=2)
        return W_query + W_key, W_key


class Count(Exercise, number="5.4", where="section 5.4", asks="the number of parameters"):
    cases = [(768, 64, False), (5, 2, True), (4, 7, True)]

    def right(d_in, d_out, qkv_bias):
        return 3 * (d_in * d_out + (d_out if qkv_bias else 0))

    def bias_forgotten(d_in, d_out, qkv_bias):
        """right without bias; with bias, each projection has one more number per output"""
        return 3 * d_in * d_out

    def bias_always_counted(d_in, d_out, qkv_bias):
        """right with bias; where qkv_bias is False, a projection has only its matrix"""
        return 3 * (d_in * d_out + d_out)

    def zero_without_bias(d_in, d_out, qkv_bias):
        """right with bias; without it the result is 0, but the matrices are still there: are there brackets missing?"""
        return 3 * (d_in * d_out + d_out) if qkv_bias else 0

    def one_bias_for_all(d_in, d_out, qkv_bias):
        """one bias is counted for all three projections: each has its own"""
        return 3 * d_in * d_out + (d_out if qkv_bias else 0)

    def one_number_per_bias(d_in, d_out, qkv_bias):
        """each bias is counted as one number: it has one per output"""
        return 3 * (d_in * d_out + (1 if qkv_bias else 0))

    def bias_as_long_as_the_input(d_in, d_out, qkv_bias):
        """the bias is added to the output, so it has as many entries as the output"""
        return 3 * (d_in * d_out + (d_in if qkv_bias else 0))

    def one_projection(d_in, d_out, qkv_bias):
        """that is one projection: there are three"""
        return d_in * d_out + (d_out if qkv_bias else 0)


class Cross(Exercise, number="5.5", where="section 5.4", asks="a tensor of context vectors, one per token of `x`"):
    cases = {
        "2 tokens that attend to 6": (numbers(2, 5), numbers(6, 5), projections(5, 3, count=3)),
        "5 tokens that attend to 3": (numbers(5, 4), numbers(3, 4), projections(4, 7, count=3)),
    }

    def call(answer, x, others, matrices):
        d_in, d_out = matrices[0].shape
        layer, another = answer(d_in, d_out), answer(d_in, d_out)
        torch.manual_seed(0)
        used = answer(d_in, d_out)  # starts like the first, which was drawn from the same seed
        made = "what your answer makes of d_in and d_out is not an nn.Module"
        demand(isinstance(layer, nn.Module), f"{made}: write class CrossAttention(nn.Module)")
        for name, matrix in zip(("W_query", "W_key", "W_value"), matrices):
            projection = getattr(layer, name, None)
            demand(isinstance(projection, nn.Linear), f"the layer has no nn.Linear named {name}")
            shape = tuple(projection.weight.shape)
            demand(shape == (d_out, d_in), f"{name}.weight has shape {shape}, not {(d_out, d_in)}, (d_out, d_in)")
            demand(projection.bias is None, f"{name} has a bias: nn.Linear has none only with bias=False")
            same_start = torch.equal(projection.weight, getattr(another, name).weight)
            demand(not same_start, "two new layers start with the same weights: they should be random")
            for each in (layer, used):
                getattr(each, name).weight.data.copy_(matrix.T)
        own = len({layer.W_query, layer.W_key, layer.W_value})
        demand(own == 3, "two of W_query, W_key and W_value are the same layer: each should be a layer of its own")
        copies = x.clone(), others.clone()
        state = torch.get_rng_state()
        output = layer(x, others)
        random = "forward draws random numbers or sets a seed, but nothing in it is random"
        demand(torch.equal(state, torch.get_rng_state()), random)
        if isinstance(output, Tensor):
            used(*(copy.flip(-1) for copy in copies))
            kept = "forward keeps something of an earlier call: its result should depend on x and others only"
            demand(same(used(*copies), output), kept)
        return output

    class right(SelfAttention):
        def forward(self, x, others):
            return attend(self.W_query(x), self.W_key(others), self.W_value(others))

    class attends_to_itself(right):
        """the tokens of x attend to x: keys and values should come from others"""

        def forward(self, x, others):
            return super().forward(x, x)

    class texts_swapped(right):
        """the tokens of others attend to x: the queries, one per row, should come from x, the first argument"""

        def forward(self, x, others):
            return super().forward(others, x)

    class queries_and_keys_swapped(right):
        """W_key is applied to x and W_query to others: x needs the queries, and others the keys"""

        def forward(self, x, others):
            return attend(self.W_key(x), self.W_query(others), self.W_value(others))

    class keys_from_x(right):
        """keys come from x, but values from others: each value needs the key of the same token"""

        def forward(self, x, others):
            return attend(self.W_query(x), self.W_key(x), self.W_value(others))

    class values_from_x(right):
        """keys come from others, but values from x: each key needs the value of the same token"""

        def forward(self, x, others):
            return attend(self.W_query(x), self.W_key(others), self.W_value(x))

    class keys_for_values(right):
        """the keys are summed: W_value has no effect"""

        def forward(self, x, others):
            return attend(self.W_query(x), self.W_key(others), self.W_key(others))

    class not_divided(right):
        """the scores are not divided by the square root of head_dim"""

        def forward(self, x, others):
            return torch.softmax(self.W_query(x) @ self.W_key(others).mT, dim=-1) @ self.W_value(others)

    class square_root_missing(right):
        """the scores are divided by head_dim, which is d_out here: divide them by its square root"""

        def forward(self, x, others):
            queries = self.W_query(x)
            return attend(queries / queries.shape[-1] ** 0.5, self.W_key(others), self.W_value(others))

    class square_root_of_num_tokens(right):
        """the scores are divided by the square root of the number of tokens in others: what counts is head_dim"""

        def forward(self, x, others):
            scores = self.W_query(x) @ self.W_key(others).mT / others.shape[-2] ** 0.5
            return torch.softmax(scores, dim=-1) @ self.W_value(others)

    class weights_of_keys_sum_to_1(right):
        """the weights that belong to one key sum to 1: those that belong to one query must"""

        def forward(self, x, others):
            scores = scaled(self.W_query(x), self.W_key(others))
            return torch.softmax(scores, dim=-2) @ self.W_value(others)

    class softmax_missing(right):
        """the scores are used as weights: softmax is missing"""

        def forward(self, x, others):
            return scaled(self.W_query(x), self.W_key(others)) @ self.W_value(others)

    class weights_not_contexts(right):
        """those are the weights: the context vectors are the weighted sums of the values"""

        def forward(self, x, others):
            return torch.softmax(scaled(self.W_query(x), self.W_key(others)), dim=-1)

    class square_root_of_d_in(right):
        """the scores are divided by the square root of d_in: what counts is head_dim, which is d_out here"""

        def forward(self, x, others):
            scores = self.W_query(x) @ self.W_key(others).mT / x.shape[-1] ** 0.5
            return torch.softmax(scores, dim=-1) @ self.W_value(others)


SHAPES = [(2, 5, 4), (2, 5, 5), (2, 5, 4), 4.0, 1.0]
VARIANCES, DIVIDED = [12, 5, 2, 1, 16, 3, 8, 20, 60], [2, 0.25, 0.5, 4, 0, 3, 6, 12, 5]  # wrong ones


def with_wrong(index: int, *items: Any) -> Iterator[list]:
    """Yield the right list with each of these items at an index."""
    for item in items:
        yield [*SHAPES[:index], item, *SHAPES[index + 1 :]]


class Shapes(
    Exercise, number="5.6", where="sections 5.3 and 5.6", asks="a list of five: three shapes, then two numbers"
):
    def right():
        return SHAPES

    def no_batch_axis():
        """the batch axis is missing from your shapes: each text of the batch has its own vectors and scores"""
        for width, *variances in product([4, 12], [4, 2, 5, 12], [1, 2, 3]):
            yield [(5, width), (5, 5), (5, width), *variances]

    def queries():
        """think of (a) again: queries are made by a projection, from d_in to d_out entries"""
        for first, width, *variances in product([(2, 5, 12), (2, 5, 5)], [4, 12], [4, 2, 5, 12], [1, 2, 3]):
            yield [first, (2, 5, 5), (2, 5, width), *variances]
        for size, *variances in product([4, 5, 12], [4, 2, 5, 12], [1, 2, 3]):
            yield [(2, 4, 5), (2, size, size), (2, 4, 5), *variances]
            yield [(2, 5, 12), (2, size, size), (2, 5, 12), *variances]

    def scores():
        """think of (b) again: in each text there is one score per query and key"""
        yield from with_wrong(1, (2, 5, 4), (2, 4, 4), (2, 5, 12), (2, 12, 12), (5, 5), (2, 4, 5))

    def contexts():
        """think of (c) again: a context vector is a weighted sum of values"""
        yield from with_wrong(2, (2, 5, 5), (2, 5, 12), (5, 4), (2, 4, 5), (2, 4))

    def scores_and_contexts():
        """think of (b) and (c) again: a score belongs to a query and a key, a context vector to a token"""
        yield [(2, 5, 4), (2, 5, 4), (2, 5, 5), 4, 1]

    def variance():
        """think of (d) again: how many products does a score add up, and what is the variance of each?"""
        yield from with_wrong(3, *VARIANCES)

    def variance_of_divided_scores():
        """think of (e) again: where numbers are divided by c, their variance is divided by c squared"""
        yield from with_wrong(4, *DIVIDED)

    def both_variances():
        """think of (d) and (e) again: what is the variance of a sum of products, and what does dividing do to it?"""
        for variances in product(VARIANCES, DIVIDED):
            yield [*SHAPES[:3], *variances]
