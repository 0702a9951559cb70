"""The exercises of lesson 8, multi-head attention."""

import math

import torch
from torch import Tensor

from utils.exercises import Exercise, first_wrong


def _numbers(*shape: int) -> Tensor:
    """Return numbers of both signs, such as -1.25: each occurs once, in no order, and none is an integer."""
    numbers = torch.randperm(math.prod(shape), generator=torch.Generator().manual_seed(8)) + 1
    return ((numbers + 0.25) * (-1.0) ** numbers).view(shape)


class Split(Exercise, number="8.A", where="section 8.3", asks="a tensor in which heads come before tokens"):
    cases = {"2 texts and 3 heads": (_numbers(2, 5, 12), 3), "3 texts and 4 heads": (_numbers(3, 7, 8), 4)}
    edges = {"1 head": (_numbers(2, 3, 4), 1), "heads of width 1": (_numbers(1, 4, 6), 6)}

    def right(vectors, num_heads):
        return vectors.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    def view_alone(vectors, num_heads):
        """the shape is right, but head 0 of token 1 contains numbers of token 0"""
        return vectors.view(len(vectors), num_heads, vectors.shape[1], -1)

    def swapped_too_early(vectors, num_heads):
        """the shape is right, but head 0 of token 0 contains numbers of other tokens: split first, then swap axes"""
        return vectors.mT.reshape(len(vectors), num_heads, vectors.shape[1], -1)

    def not_swapped(vectors, num_heads):
        """the split is right, but axis 1 counts tokens and axis 2 heads: these two axes should be swapped"""
        return vectors.unflatten(-1, (num_heads, -1))

    def heads_last(vectors, num_heads):
        """the split is right, but the heads are the last axis: they should come before the tokens"""
        return vectors.unflatten(-1, (num_heads, -1)).transpose(2, 3)

    def heads_first(vectors, num_heads):
        """the split is right, but heads come first and texts second: axis 0 should count texts"""
        return vectors.unflatten(-1, (num_heads, -1)).permute(2, 0, 1, 3)

    def every_other_entry(vectors, num_heads):
        """a head gets every num_heads-th entry: it should get entries that are next to each other"""
        return vectors.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)

    def num_heads_entries(vectors, num_heads):
        """each part has num_heads entries: there should be num_heads parts, of head_dim entries each"""
        return vectors.unflatten(-1, (-1, num_heads)).transpose(1, 2)


class Join(Exercise, number="8.B", where="section 8.3", asks="a tensor of shape (batch_size, num_tokens, d_out)"):
    cases = {"2 texts and 3 heads": (_numbers(2, 3, 5, 4),), "3 texts and 4 heads": (_numbers(3, 4, 7, 2),)}
    edges = {"1 head": (_numbers(2, 1, 3, 4),), "heads of width 1": (_numbers(1, 6, 4, 1),)}

    def right(heads):
        return heads.transpose(1, 2).flatten(2)

    def not_swapped(heads):
        """the shape is right, but the vector of token 1 contains numbers of other tokens"""
        return heads.reshape(len(heads), heads.shape[2], -1)

    def texts_mixed(heads):
        """the shape is right, but the vectors of text 0 contain numbers of text 1"""
        return heads.transpose(0, 1).reshape(len(heads), heads.shape[2], -1)

    def tokens_and_entries_swapped(heads):
        """the shape is right, but tokens and entries are swapped: swap heads and tokens before you join"""
        return heads.mT.reshape(len(heads), heads.shape[2], -1)

    def entries_alternate(heads):
        """the entries of the heads alternate: all entries of head 0 come first, then those of head 1"""
        return heads.permute(0, 2, 3, 1).flatten(2)

    def last_head_first(heads):
        """the heads are in reverse order: the entries of head 0 should come first"""
        return heads.flip(1).transpose(1, 2).flatten(2)

    def below_each_other(heads):
        """the heads are below each other, as if they were more tokens: each token needs them side by side"""
        return heads.flatten(1, 2)

    def added_up(heads):
        """the heads are added up: they should be side by side"""
        return heads.sum(dim=1)


class Width(Exercise, number="8.1", where="section 8.2", asks="an integer"):
    cases = [(1024, 16), (15, 5), (6, 6), (7, 2), (10, 4), (3, 5)]
    edges = [(5, 1), (3, 6)]
    exact = True

    def right(d_out, num_heads):
        if d_out % num_heads:
            raise ValueError
        return d_out // num_heads

    def rounded_down(d_out, num_heads):
        """with a remainder the width is rounded down, and entries are lost: raise ValueError there"""
        return d_out // num_heads

    def a_float(d_out, num_heads):
        """the width is right, but not an integer: `/` returns a float, such as 3.0, and `//` an integer"""
        return float(Width.right(d_out, num_heads))

    def a_float_and_no_error(d_out, num_heads):
        """the width should be an integer, and with a remainder it cannot be: use `//`, and raise ValueError there"""
        return d_out / num_heads

    def none_on_a_remainder(d_out, num_heads):
        """with a remainder it returns None, and the error shows up somewhere else: raise ValueError there"""
        return None if d_out % num_heads else d_out // num_heads

    def an_assertion(d_out, num_heads):
        """with a remainder it raises AssertionError, as `assert` does: raise ValueError"""
        assert d_out % num_heads == 0
        return d_out // num_heads

    def condition_reversed(d_out, num_heads):
        """ValueError is raised if num_heads divides d_out, and not if there is a remainder: reverse the condition"""
        if d_out % num_heads == 0:
            raise ValueError
        return d_out // num_heads

    def division_reversed(d_out, num_heads):
        """ValueError is raised although num_heads divides d_out, as for 1024 and 16: is the division reversed?"""
        return Width.right(num_heads, d_out)


def _linear(d_in: int, d_out: int, bias: bool = True) -> int:
    return d_in * d_out + d_out * bias


class Count(Exercise, number="8.2", where="section 8.4", asks="the number of parameters"):
    cases = [(10, 6, 3, True), (7, 8, 4, False), (5, 12, 2, True), (20, 15, 5, False)]
    edges = [(4, 3, 1, True), (6, 6, 2, False)]

    def right(d_in, d_out, num_heads, qkv_bias):
        return 3 * _linear(d_in, d_out, qkv_bias) + _linear(d_out, d_out)

    def output_projection_forgotten(d_in, d_out, num_heads, qkv_bias):
        """these are queries, keys and values: the output projection adds d_out · d_out + d_out"""
        return 3 * _linear(d_in, d_out, qkv_bias)

    def output_projection_from_d_in(d_in, d_out, num_heads, qkv_bias):
        """the output projection takes the joined heads, so it maps d_out to d_out, not d_in to d_out"""
        return 3 * _linear(d_in, d_out, qkv_bias) + _linear(d_in, d_out)

    def four_equal_projections(d_in, d_out, num_heads, qkv_bias):
        """all four projections are counted equally: the last maps d_out to d_out, and it always has a bias"""
        return 4 * _linear(d_in, d_out, qkv_bias)

    def output_bias_forgotten(d_in, d_out, num_heads, qkv_bias):
        """the output projection has a bias as well: d_out more"""
        return 3 * _linear(d_in, d_out, qkv_bias) + _linear(d_out, d_out, bias=False)

    def output_bias_only_with_qkv_bias(d_in, d_out, num_heads, qkv_bias):
        """the output projection always has a bias: without qkv_bias, too, it adds d_out"""
        return 3 * _linear(d_in, d_out, qkv_bias) + _linear(d_out, d_out, qkv_bias)

    def bias_always(d_in, d_out, num_heads, qkv_bias):
        """without qkv_bias the projections to queries, keys and values have no bias"""
        return 3 * _linear(d_in, d_out) + _linear(d_out, d_out)

    def qkv_bias_forgotten(d_in, d_out, num_heads, qkv_bias):
        """with qkv_bias each of the three projections has d_out more"""
        return 3 * _linear(d_in, d_out, bias=False) + _linear(d_out, d_out)

    def one_bias_for_all_three(d_in, d_out, num_heads, qkv_bias):
        """with qkv_bias d_out is added once: each of the three projections has a bias of its own"""
        return 3 * _linear(d_in, d_out, bias=False) + d_out * qkv_bias + _linear(d_out, d_out)

    def bias_of_the_input(d_in, d_out, num_heads, qkv_bias):
        """with qkv_bias each projection has d_in more: a bias has one number per output, d_out"""
        return 3 * (d_in * d_out + d_in * qkv_bias) + _linear(d_out, d_out)

    def no_bias_at_all(d_in, d_out, num_heads, qkv_bias):
        """these are the weights alone: the output projection has a bias, with qkv_bias the other three as well"""
        return 3 * d_in * d_out + d_out * d_out

    def times_the_heads(d_in, d_out, num_heads, qkv_bias):
        """queries, keys and values are counted num_heads times: d_out is the width of all heads together"""
        return 3 * num_heads * _linear(d_in, d_out, qkv_bias) + _linear(d_out, d_out)

    def everything_times_the_heads(d_in, d_out, num_heads, qkv_bias):
        """everything is counted num_heads times: the number of heads does not change the number of parameters"""
        return num_heads * Count.right(d_in, d_out, num_heads, qkv_bias)

    def one_projection_of_three(d_in, d_out, num_heads, qkv_bias):
        """one projection to d_out and the output projection are counted: queries, keys and values have one each"""
        return _linear(d_in, d_out, qkv_bias) + _linear(d_out, d_out)

    def one_head_only(d_in, d_out, num_heads, qkv_bias):
        """queries, keys and values are counted for one head only: all heads together have the width d_out"""
        return 3 * _linear(d_in, d_out // num_heads, qkv_bias) + _linear(d_out, d_out)


class Rows(Exercise, number="8.3", where="section 8.5", asks="a tensor of shape (head_dim, d_in)"):
    cases = {
        "head 1 of 3": (_numbers(15, 12), 1, 3),
        "head 2 of 5": (_numbers(20, 10), 2, 5),
        "head 3 of 4": (_numbers(24, 8), 3, 4),
    }
    edges = {"head 0 of 2": (_numbers(6, 4), 0, 2), "head 0 of 1": (_numbers(2, 3), 0, 1)}

    def right(weight, head, num_heads):
        return weight.chunk(num_heads)[head]

    def columns(weight, head, num_heads):
        """these are columns, a part of the input: a head uses the whole input, and head_dim of the rows"""
        return weight.chunk(num_heads, dim=1)[head]

    def head_dim_columns(weight, head, num_heads):
        """these are columns, the inputs: the outputs are the rows of nn.Linear's weight"""
        head_dim = len(weight) // num_heads
        return weight[:, head * head_dim : (head + 1) * head_dim]

    def every_other_row(weight, head, num_heads):
        """these are every num_heads-th row: a head's rows are next to each other"""
        return weight[head::num_heads]

    def num_heads_rows(weight, head, num_heads):
        """these are num_heads rows: a head has d_out / num_heads rows"""
        return weight.split(num_heads)[head]

    def head_dim_from_d_in(weight, head, num_heads):
        """these are d_in / num_heads rows: a head has d_out / num_heads rows"""
        return weight.split(weight.shape[1] // num_heads)[head]

    def counted_from_1(weight, head, num_heads):
        """these are the rows of the head before: heads are counted from 0"""
        return weight.chunk(num_heads)[head - 1]

    def next_head(weight, head, num_heads):
        """these are the rows of the next head: head 0 has the first head_dim rows"""
        return weight.chunk(num_heads)[(head + 1) % num_heads]

    def begun_at_row_head(weight, head, num_heads):
        """these rows begin at row `head`: each head before this one has head_dim rows"""
        return weight[head : head + len(weight) // num_heads]

    def row_number_head(weight, head, num_heads):
        """this is row number `head` alone: a head has head_dim rows"""
        return weight[head]

    def first_row_only(weight, head, num_heads):
        """this is only the first of the head's rows: there are head_dim of them"""
        return weight.chunk(num_heads)[head][0]

    def end_before_the_start(weight, head, num_heads):
        """head 1 of 3 gets no rows: a slice should end head_dim rows after its start"""
        return weight[:0]


class Bytes(Exercise, number="8.4", where="section 8.6", asks="the number of bytes"):
    cases = [(2, 3, 1024), (3, 5, 512), (5, 8, 256)]  # integers in MiB, too
    edges = [(1, 1, 1), (3, 2, 7)]

    def right(batch_size, num_heads, num_tokens):
        return 4 * batch_size * num_heads * num_tokens**2

    def numbers_not_bytes(batch_size, num_heads, num_tokens):
        """that is how many numbers there are: each takes 4 bytes"""
        return batch_size * num_heads * num_tokens**2

    def mib(batch_size, num_heads, num_tokens):
        """that is in MiB: the exercise asks for bytes"""
        return 4 * batch_size * num_heads * num_tokens**2 / 2**20

    def not_squared(batch_size, num_heads, num_tokens):
        """each query has a score for every key: num_tokens times num_tokens"""
        return 4 * batch_size * num_heads * num_tokens

    def doubled(batch_size, num_heads, num_tokens):
        """num_tokens is not squared: `num_tokens * 2` doubles it, `num_tokens**2` squares it"""
        return 4 * batch_size * num_heads * num_tokens * 2

    def heads_forgotten(batch_size, num_heads, num_tokens):
        """each head has its own square: the number of bytes should grow with num_heads"""
        return 4 * batch_size * num_tokens**2

    def batch_forgotten(batch_size, num_heads, num_tokens):
        """each text of the batch has its own squares: the number of bytes should grow with batch_size"""
        return 4 * num_heads * num_tokens**2

    def one_square_only(batch_size, num_heads, num_tokens):
        """that is one square: each head has its own, and each text of the batch as well"""
        return 4 * num_tokens**2

    def half_the_square(batch_size, num_heads, num_tokens):
        """that is the visible triangle alone: the plain form stores the hidden scores as well"""
        return 4 * batch_size * num_heads * num_tokens * (num_tokens + 1) // 2


def _zeroed(heads: Tensor, axis: int, index: int) -> Tensor:
    return heads.index_fill(axis, torch.tensor([index]), 0.0)


class Ablate(Exercise, number="8.5", where="section 8.3", asks="a tensor of shape (batch_size, num_tokens, d_out)"):
    cases = {"head 1 of 3": (_numbers(2, 3, 5, 4), 1), "head 2 of 4": (_numbers(3, 4, 7, 6), 2)}
    edges = {
        "head 0 of 2": (_numbers(1, 2, 4, 3), 0),
        "head 4 of 5": (_numbers(1, 5, 3, 2), 4),
        "equal heads": (torch.ones(2, 3, 4, 2), 1),
    }

    def right(heads, head):
        return Join.right(_zeroed(heads, 1, head))

    def a_text_for_a_head(heads, head):
        """text `head` is 0, with all its heads: axis 0 of `heads` counts texts, axis 1 counts heads"""
        return Join.right(_zeroed(heads, 0, head))

    def a_token_for_a_head(heads, head):
        """token `head` is 0, in all heads: axis 2 of `heads` counts tokens, axis 1 counts heads"""
        return Join.right(_zeroed(heads, 2, head))

    def counted_from_1(heads, head):
        """the head before is 0: heads are counted from 0"""
        return Join.right(_zeroed(heads, 1, head - 1))

    def an_entry_of_each_head(heads, head):
        """one entry of each head is 0: it should be all entries of one head"""
        return Join.right(_zeroed(heads, 3, head))

    def nothing_set_to_0(heads, head):
        """the heads are joined, but none of them is set to 0"""
        return Join.right(heads)

    def an_entry_of_the_vector(heads, head):
        """one entry of each joined vector is 0: it should be the head_dim entries of one head"""
        return Join.right(heads).index_fill(2, torch.tensor([head]), 0.0)

    def left_out(heads, head):
        """the head is left out, so the vectors have fewer entries and out_proj no longer fits: set its part to 0"""
        return Join.right(heads[:, [other for other in range(heads.shape[1]) if other != head]])

    def only_this_head(heads, head):
        """only this head is left: it should be 0, and all the others should stay"""
        return Join.right(heads - _zeroed(heads, 1, head))

    def not_joined(heads, head):
        """the right head is 0, but the heads are not joined"""
        return _zeroed(heads, 1, head)

    def joined_without_a_swap(heads, head):
        """the right head is 0, but the tokens are mixed up: swap heads and tokens before you join"""
        return _zeroed(heads, 1, head).reshape(len(heads), heads.shape[2], -1)


class OneWeight(Exercise, number="8.6", where="section 8.5", asks="a tensor of shape (d_out, d_in)"):
    cases = {"3 heads": ([*_numbers(3, 2, 5)],), "4 heads": ([*_numbers(4, 6, 3)],)}
    edges = {"1 head": ([*_numbers(1, 3, 2)],), "2 square weights": ([*_numbers(2, 4, 4)],)}

    def right(head_weights):
        return torch.cat(head_weights)

    def side_by_side(head_weights):
        """the weights are side by side: outputs are rows, so the weights should be on top of each other"""
        return torch.cat(head_weights, dim=1)

    def still_separate(head_weights):
        """the weights of the heads are still separate: the exercise asks for one matrix of d_out rows"""
        return torch.stack(head_weights)

    def last_head_first(head_weights):
        """the heads are in reverse order: head 0 should have the first rows"""
        return torch.cat(head_weights[::-1])

    def rows_alternate(head_weights):
        """the rows of the heads alternate: all rows of head 0 come first, then those of head 1"""
        return torch.stack(head_weights, dim=1).flatten(0, 1)

    def added_up(head_weights):
        """the weights are added up: they should be on top of each other"""
        return sum(head_weights)

    def along_a_diagonal(head_weights):
        """the weights are along a diagonal: they should be on top of each other, since all heads get the same input"""
        return torch.block_diag(*head_weights)


FIVE = [False, True, False, True, False]


class Five(Exercise, number="8.7", where="sections 8.1, 8.4 and 8.6", asks="a list of five values, each True or False"):
    def right():
        return FIVE

    def heads_cost_parameters():
        """think of (a) again: the same projections are only split into more, narrower parts"""
        yield from first_wrong(FIVE, 0)

    def square_is_linear():
        """think of (b) again: there are twice as many queries and twice as many keys"""
        yield from first_wrong(FIVE, 1)

    def fused_skips_visible_scores():
        """think of (c) again: none is left out: memory is saved because the square is never there as a whole"""
        yield from first_wrong(FIVE, 2)

    def dropout_is_free():
        """think of (d) again: with dropout the fused form on a CPU falls back to the full square"""
        yield from first_wrong(FIVE, 3)

    def one_head_is_enough():
        """think of (e) again: one head returns one mixture, and the two contents cannot be recovered from it"""
        yield from first_wrong(FIVE, 4)
