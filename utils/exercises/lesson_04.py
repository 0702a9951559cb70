"""The exercises of lesson 4, simple attention."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from utils.attention import simple_attention
from utils.exercises import Exercise, first_wrong

TEXTS = {
    "five tokens": torch.tensor(
        [[0.45, -1.2, 0.9], [1.5, 0.85, -0.6], [-0.7, 0.3, 1.15], [0.2, 1.05, -0.1], [-1.3, -0.55, 0.6]]
    ),
    "three tokens": torch.tensor([[0.65, -0.4, 1.2, 0.1], [-0.9, 1.45, 0.3, -1.1], [0.5, 0.7, -0.25, 0.8]]),
    "as many tokens as entries": torch.tensor([[0.95, -0.4], [1.3, 0.75]]),
}
LN_3 = math.log(3)


class Rows(Exercise, number="4.A", where="section 4.5", asks="a tensor of weights, one row per query"):
    cases = {
        "three tokens": (torch.tensor([[0.2, 1.5, -0.3], [2.0, 0.0, 0.7], [-1.0, 0.4, 0.9]]),),
        "two tokens": (torch.tensor([[-0.5, 1.2], [0.8, 0.1]]),),
    }

    def right(attn_scores):
        return torch.softmax(attn_scores, dim=-1)

    def columns_sum_to_1(attn_scores):
        """the columns sum to 1: a query's weights are a row, and its sum is something else"""
        return torch.softmax(attn_scores, dim=0)

    def weights_of_columns(attn_scores):
        """the rows sum to 1, but row i holds the weights of column i of the scores: apply softmax to the rows"""
        return torch.softmax(attn_scores, dim=0).T

    def all_sum_to_1(attn_scores):
        """all entries together sum to 1: each query's row must sum to 1 by itself"""
        return attn_scores.exp() / attn_scores.exp().sum()

    def divided_by_other_sums(attn_scores):
        """column j is divided by the sum of row j: keepdim=True keeps each sum beside its own row"""
        return attn_scores.exp() / attn_scores.exp().sum(dim=-1)

    def divided_by_the_sum(attn_scores):
        """the scores are only divided by their sum: negative scores make negative weights"""
        return attn_scores / attn_scores.sum(dim=-1, keepdim=True)

    def not_divided(attn_scores):
        """those are the powers: divide each row by its sum"""
        return attn_scores.exp()


class Loop(Exercise, number="4.B", where="section 4.5", asks="a tensor of context vectors, one per token"):
    cases = {name: (text,) for name, text in TEXTS.items()}
    edges = {"two other tokens": (torch.tensor([[-0.35, 1.25], [0.85, 0.15]]),)}

    def right(inputs):
        return simple_attention(inputs)[0]

    def input_overwritten(inputs):
        """the inputs have changed: what a later token attends to was overwritten on the way"""
        for i in range(len(inputs)):
            inputs[i] = torch.softmax(inputs @ inputs[i], dim=-1) @ inputs
        return inputs

    def copy_overwritten(inputs):
        """the caller's inputs are safe now, but token 1 still attends to the changed token 0: read from the original"""
        inputs = inputs.clone()
        for i in range(len(inputs)):
            inputs[i] = torch.softmax(inputs @ inputs[i], dim=-1) @ inputs
        return inputs

    def changed_vectors_summed(inputs):
        """the weights are right, but they are multiplied by vectors that have already changed: sum the inputs"""
        contexts = inputs.clone()
        for i in range(len(inputs)):
            contexts[i] = torch.softmax(inputs @ inputs[i], dim=-1) @ contexts
        return contexts

    def last_row_only(inputs):
        """only the last row is a context vector, and the others are the inputs: is the copy made in every round?"""
        return torch.cat([inputs[:-1], simple_attention(inputs)[0][-1:]])

    def first_row_only(inputs):
        """only row 0 is filled, and the others are 0: is the `return` inside the loop?"""
        return torch.cat([simple_attention(inputs)[0][:1], torch.zeros_like(inputs[1:])])

    def first_row_alone(inputs):
        """only row 0 is right, and the others come from whatever was in memory: is the `return` inside the loop?"""
        return torch.cat([simple_attention(inputs)[0][:1], torch.full_like(inputs[1:], torch.nan)])

    def last_query_only(inputs):
        """that is one context vector, of the last token: keep those of all tokens"""
        return simple_attention(inputs)[0][-1]

    def columns_of_weights(inputs):
        """the weights in each sum do not add up to 1: a query's weights are a row, divided by its own sum"""
        return simple_attention(inputs)[1].T @ inputs

    def softmax_forgotten(inputs):
        """the scores are used as weights: softmax is missing"""
        return inputs @ inputs.T @ inputs

    def weights_not_contexts(inputs):
        """those are the weights: the context vectors are the weighted sums of the inputs"""
        return simple_attention(inputs)[1]


def naive_softmax(scores: Tensor) -> Tensor:
    return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)


class Stable(Exercise, number="4.C", where="section 4.3", asks="the softmax of each row, as a tensor"):
    cases = {
        "small scores": (torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, -2.0]]),),
        "scores of 1000 and 0": (torch.tensor([[1000.0, 0.0], [0.0, 1.0], [-2.0, 3.0]]),),
        "scores near -1000 and 500": (torch.tensor([[-1000.0, -1001.0], [500.0, 499.0]]),),
        "a score of 300": (torch.tensor([[0.0, 300.0, 0.0, 0.0]]),),
    }
    edges = {"scores far below 0 alone": (torch.tensor([[-30_000.0, -60_000.0]]),)}

    def right(scores):
        return torch.softmax(scores, dim=-1)

    def overflow(scores):
        """small scores are right, but for 1000 and 0 the first weight comes out as nan"""
        return naive_softmax(scores)

    def limit_moved(scores):
        """a score of 300 is right now, but for 1000 and 0 the first weight is still nan: subtract the maximum"""
        return naive_softmax(scores.double())

    def one_maximum_for_all(scores):
        """one maximum for all rows: a row with scores far below it becomes 0/0, so each row needs its own"""
        return naive_softmax(scores - scores.max())

    def not_the_maximum(scores):
        """a score far above the others of its row still overflows: subtract the maximum of each row"""
        return naive_softmax(scores - scores.mean(dim=-1, keepdim=True))

    def maximum_of_columns(scores):
        """the maximum of each column is subtracted, which changes the weights: subtract the maximum of each row"""
        return naive_softmax(scores - scores.max(dim=0).values)

    def columns_sum_to_1(scores):
        """the columns sum to 1: each row of scores must become a row of weights whose sum is 1"""
        return torch.softmax(scores, dim=0)

    def divided_by_the_maximum(scores):
        """the scores are divided by the largest, which changes the weights: subtract it, and they stay the same"""
        return torch.softmax(scores / scores.max(dim=-1, keepdim=True).values, dim=-1)

    def difference_lost(scores):
        """500 and 499 get equal weights, so their difference is lost: subtracting the maximum keeps it"""
        return naive_softmax(scores.clamp(min=-50, max=50))

    def not_divided(scores):
        """those are the powers, and none overflows: divide each row by its sum"""
        return (scores - scores.max(dim=-1, keepdim=True).values).exp()

    def nan_hidden(scores):
        """the weights of 1000 and 0 are both 0: the overflow is hidden, not prevented"""
        return naive_softmax(scores).nan_to_num()


class ScoresFor(Exercise, number="4.1", where="section 4.2", asks="a tensor of scores, one per token"):
    cases = {name: (text, index) for (name, text), index in zip(TEXTS.items(), [3, 0, 1])}

    def right(inputs, index):
        return inputs @ inputs[index]

    def summed_over_tokens(inputs, index):
        """the products are added up over the tokens: add up each token's own products"""
        return (inputs * inputs[index]).sum(dim=0)

    def not_added_up(inputs, index):
        """there is one product per entry: each token's products still have to be added up"""
        return inputs * inputs[index]

    def all_queries(inputs, index):
        """those are the scores of all queries: return only those of inputs[index]"""
        return inputs @ inputs.T

    def times_columns(inputs, index):
        """the columns of inputs are multiplied by the query: a token's vector is a row"""
        return inputs[index] @ inputs

    def always_token_0(inputs, index):
        """the query is always token 0: it should be inputs[index]"""
        return inputs @ inputs[0]

    def always_token_1(inputs, index):
        """the query is always token 1: it should be inputs[index]"""
        return inputs @ inputs[1]

    def cosines(inputs, index):
        """those are cosines: a score is the plain dot product, which is not divided by the norms"""
        return F.cosine_similarity(inputs, inputs[index][None])

    def softmax_already(inputs, index):
        """those are already weights: scores come before softmax"""
        return torch.softmax(inputs @ inputs[index], dim=-1)

    def context_vector(inputs, index):
        """that is already the context vector: the scores are its first step"""
        return simple_attention(inputs)[0][index]


class FromWeights(Exercise, number="4.2", where="section 4.4", asks="a tensor of context vectors, one per token"):
    # Each token's weights come from the token before it, so they differ from those of simple attention.
    cases = {name: (text, torch.softmax(text.roll(1, 0) @ text.T, dim=-1)) for name, text in TEXTS.items()}

    def right(inputs, attn_weights):
        return attn_weights @ inputs

    def weights_transposed(inputs, attn_weights):
        """each sum uses a column of the weights: a query's weights are its row"""
        return attn_weights.T @ inputs

    def inputs_first(inputs, attn_weights):
        """the inputs, the first argument, come first in the product: the weights must come first"""
        return inputs @ attn_weights

    def softmax_again(inputs, attn_weights):
        """softmax was applied a second time: these are already weights"""
        return torch.softmax(attn_weights, dim=-1) @ inputs

    def other_weights(inputs, attn_weights):
        """those are the context vectors of simple attention: use the weights that are given"""
        return simple_attention(inputs)[0]

    def first_query_only(inputs, attn_weights):
        """that is one context vector, of token 0: each token needs one"""
        return attn_weights[0] @ inputs

    def not_added_up(inputs, attn_weights):
        """each vector is multiplied by its weight, but the products still have to be added up"""
        return attn_weights[:, :, None] * inputs

    def inputs_again(inputs, attn_weights):
        """the inputs come out as they were: a context vector is the sum of all vectors, each times its weight"""
        return inputs

    def last_only(inputs, attn_weights):
        """only the last token's part is left of each sum: add the parts up"""
        return attn_weights[:, -1:] * inputs[-1]


class WithoutComputer(Exercise, number="4.3", where="section 4.3", asks="a list of three numbers"):
    def right():
        return [0.25, 0.25, 0.5]

    def zero_for_zero():
        """a score of 0 does not mean a weight of 0: what is e to the power 0?"""
        for third in (1, 2, 0.693, 0.5):
            yield [0, 0, third]

    def equal_weights():
        """those weights are equal, or nearly: a larger score gets a larger weight"""
        yield [1 / 3, 1 / 3, 1 / 3]
        yield [0.333, 0.333, 0.334]
        yield [0.33, 0.33, 0.34]

    def another_is_largest():
        """the largest weight belongs to the largest score, and that is the third"""
        yield [0.5, 0.25, 0.25]
        yield [0.25, 0.5, 0.25]
        yield [0.5, 0.5, 0]
        yield [0.4, 0.4, 0.2]

    def not_divided():
        """those are the powers: divide them by their sum"""
        return [1, 1, 2]

    def divided_by_three():
        """those add up to more than 1: divide the powers by their sum, not by their number"""
        return [1 / 3, 1 / 3, 2 / 3]

    def percent():
        """those add up to 100: weights add up to 1"""
        return [25, 25, 50]

    def one_for_ln_2():
        """those are the weights of the scores 0, 0 and 1: the third score is ln 2"""
        return [0.212, 0.212, 0.576]


def attend(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the context vectors, sums of the values, and the weights."""
    weights = torch.softmax(scores, dim=-1)
    return weights @ values, weights


class Direction(Exercise, number="4.4", where="section 4.6", asks="`(context_vectors, attn_weights)`"):
    cases = {name: (text,) for name, text in TEXTS.items()}
    edges = {"a long and a short vector": (torch.tensor([[12.4, -3.1], [0.3, 0.4]]),)}

    def right(inputs):
        unit = F.normalize(inputs, dim=-1)
        return attend(unit @ unit.T, inputs)

    def values_of_length_1_too(inputs):
        """the weights are right, but the context vectors are sums of normalised vectors: sum the original inputs"""
        return simple_attention(F.normalize(inputs, dim=-1))

    def dot_product(inputs):
        """the scores still depend on the vectors' lengths: scale the vectors to length 1 before comparing them"""
        return simple_attention(inputs)

    def query_only(inputs):
        """the scores are divided by the norm of the query only: the length of a key still counts"""
        return attend(F.normalize(inputs, dim=-1) @ inputs.T, inputs)

    def key_only(inputs):
        """the scores are divided by the norm of the key only: the length of the query still counts"""
        return attend(inputs @ F.normalize(inputs, dim=-1).T, inputs)

    def one_norm_for_all(inputs):
        """all vectors are divided by the same norm, so their lengths still count: each has its own norm"""
        unit = inputs / inputs.norm()
        return attend(unit @ unit.T, inputs)

    def norms_squared(inputs):
        """each vector is divided by its dot product with itself: its length is the square root of that"""
        unit = inputs / (inputs**2).sum(dim=-1, keepdim=True)
        return attend(unit @ unit.T, inputs)

    def columns_of_length_1(inputs):
        """the columns are scaled to length 1: a token's vector is a row, the last axis"""
        unit = F.normalize(inputs, dim=0)
        return attend(unit @ unit.T, inputs)

    def softmax_forgotten(inputs):
        """the cosines are used as weights: softmax is missing"""
        unit = F.normalize(inputs, dim=-1)
        return unit @ unit.T @ inputs, unit @ unit.T

    def cosines_returned(inputs):
        """the context vectors are right, but after them come the cosines: return the weights"""
        unit = F.normalize(inputs, dim=-1)
        return attend(unit @ unit.T, inputs)[0], unit @ unit.T

    def columns_sum_to_1(inputs):
        """the columns of the weights sum to 1: a query's weights are a row, and its sum must be 1"""
        unit = F.normalize(inputs, dim=-1)
        weights = torch.softmax(unit @ unit.T, dim=0)
        return weights @ inputs, weights


ALWAYS = [True, False, True, True, False]


class Always(Exercise, number="4.5", where="sections 4.5 and 4.7", asks="a list of five values, True or False"):
    def right():
        return ALWAYS

    def rows():
        """think of (a) again: softmax divides each row by its sum"""
        yield from first_wrong(ALWAYS, 0)

    def columns():
        """think of (b) again: each row is divided by its own sum, and what becomes of a column?"""
        yield from first_wrong(ALWAYS, 1)

    def symmetric_scores():
        """think of (c) again: does a dot product depend on which vector comes first?"""
        yield from first_wrong(ALWAYS, 2)

    def order():
        """think of (d) again: does anything in this attention know a token's position?"""
        yield from first_wrong(ALWAYS, 3)

    def largest_to_itself():
        """think of (e) again: what if another vector points roughly the same way and is longer?"""
        yield from first_wrong(ALWAYS, 4)


class ContextByHand(Exercise, number="4.6", where="sections 4.3 and 4.4", asks="a list of two numbers"):
    # Tokens [2, -1] and [1, 1], weights 1/4 and 3/4.
    def right():
        return [1.25, 0.5]

    def weights_returned():
        """those are the weights: the context vector is the sum of both tokens, each times its weight"""
        return [0.25, 0.75]

    def weights_swapped():
        """the weights are swapped: token 1 has the larger score (mind the −1 in token 0), so it gets 3/4"""
        return [1.75, -0.5]

    def powers_as_weights():
        """the sum is weighted with the powers 3 and 9: divide them by their sum first"""
        return [15, 6]

    def scores_as_weights():
        """the sum is weighted with the scores: softmax is missing"""
        yield [4 * LN_3, LN_3]
        yield [4.394, 1.099]
        yield [4.39, 1.1]
        yield [4.4, 1.1]

    def scores_divided_by_their_sum():
        """the scores are only divided by their sum, which makes 1/3 and 2/3: softmax takes powers of e first"""
        yield [4 / 3, 1 / 3]
        yield [1.333, 0.333]
        yield [1.33, 0.33]

    def plain_average():
        """that is the plain average: token 1 has the larger score, so it gets the larger weight"""
        return [1.5, 0]

    def plain_sum():
        """both tokens are added up without their weights"""
        return [3, 0]

    def largest_score_alone():
        """that is token 1 alone: token 0 has a smaller weight, but not 0"""
        return [1, 1]

    def scores_returned():
        """those are the scores: two steps are still to come, the weights and the weighted sum"""
        yield [LN_3, 2 * LN_3]
        yield [1.099, 2.197]
        yield [1.1, 2.2]

    def powers_returned():
        """those are the powers of e: two steps are still to come, the division by their sum and the weighted sum"""
        return [3, 9]

    def entries_of_a_token_added_up():
        """each token's entries are added up: a context vector has as many entries as a token's vector"""
        return [0.25, 1.5]

    def parts_not_added_up():
        """those are the parts of the sum: add up entry 0 of both tokens, and entry 1 of both"""
        return [[0.5, -0.25], [0.75, 0.75]]

    def minus_lost():
        """token 0 has the entry −1, not 1: is it in the score and in the sum?"""
        yield [1.75, 1]  # in both: the scores are 3 ln 3 and 2 ln 3
        yield [1.25, 1]  # in the sum alone
