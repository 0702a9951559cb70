"""The exercises of lesson 8, multi-head attention."""

import torch
from torch import Tensor

from utils.exercises import Exercise, Mistake

_VECTORS = torch.arange(24).view(1, 4, 6)
_BATCH = (7 * torch.arange(80) % 81).view(2, 5, 8)

# 8.A  First view, then swap the axes.


def _split(vectors: Tensor, num_heads: int) -> Tensor:
    return vectors.unflatten(-1, (num_heads, -1)).transpose(1, 2)


_SPLIT = Exercise(
    reference=_split,
    cases=[(_VECTORS, 2), (_BATCH, 4), (_BATCH, 1)],
    mistakes=[
        Mistake(
            "view alone",
            lambda vectors, num_heads: vectors.view(
                len(vectors), num_heads, vectors.shape[1], vectors.shape[2] // num_heads
            ),
            "the shape is right, but head 0 of token 1 contains numbers of token 0",
        ),
        Mistake(
            "not swapped",
            lambda vectors, num_heads: vectors.unflatten(-1, (num_heads, -1)),
            "the heads are split correctly, but come after the tokens: (batch_size, num_heads, num_tokens, head_dim)",
        ),
        Mistake(
            "every other entry",
            lambda vectors, num_heads: vectors.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2),
            "a head gets every num_heads-th entry: it should get entries that are next to each other",
        ),
        Mistake(
            "heads and entries swapped",
            lambda vectors, num_heads: vectors.unflatten(-1, (num_heads, -1)).permute(0, 2, 3, 1),
            "the last two axes are swapped: tokens come before the entries of a head",
        ),
    ],
    where="section 8.3",
)

# 8.B  First swap the axes, then join.

_HEADS = _split(_BATCH, 4)

_JOIN = Exercise(
    reference=lambda heads: heads.transpose(1, 2).flatten(-2),
    cases=[(_split(_VECTORS, 2).contiguous(),), (_HEADS.contiguous(),)],
    mistakes=[
        Mistake(
            "not swapped",
            lambda heads: heads.reshape(heads.shape[0], heads.shape[2], heads.shape[1] * heads.shape[3]),
            "the shape is right, but the vector of token 1 contains numbers of other tokens",
        ),
        Mistake(
            "view of a non-contiguous tensor",
            lambda heads: heads.transpose(1, 2).view(heads.shape[0], heads.shape[2], -1),
            "view fails: after a swap the numbers are no longer in that order in memory; flatten and reshape copy them",
        ),
        Mistake(
            "entries first",
            lambda heads: heads.permute(0, 2, 3, 1).flatten(-2),
            "the entries of the heads alternate: all entries of head 0 come first, then those of head 1",
        ),
        Mistake(
            "heads added up",
            lambda heads: heads.sum(dim=1),
            "the heads are added up: they should be side by side",
        ),
    ],
    where="section 8.3",
)

# 8.1  The width of a head, or an error.


def _head_width(d_out: int, num_heads: int) -> int:
    if d_out % num_heads:
        raise ValueError(f"d_out {d_out} cannot be divided among num_heads {num_heads}")
    return d_out // num_heads


_WIDTH = Exercise(
    reference=_head_width,
    cases=[(768, 12), (4, 2), (3, 2), (2, 4), (6, 6)],
    mistakes=[
        Mistake(
            "rounded down",
            lambda d_out, num_heads: d_out // num_heads,
            "d_out 3 with 2 heads is accepted and loses an entry: raise ValueError when there is a remainder",
        ),
        Mistake(
            "not an integer",
            lambda d_out, num_heads: d_out / num_heads,
            "a width is an integer: use //, and raise ValueError when there is a remainder",
        ),
        Mistake(
            "assertion",
            lambda d_out, num_heads: _asserted(d_out, num_heads),
            "an assert raises AssertionError, and is skipped when Python runs with -O: raise ValueError",
        ),
        Mistake(
            "division reversed",
            lambda d_out, num_heads: _head_width(num_heads, d_out),
            "768 and 12 divide evenly, but you refuse them: divide d_out by num_heads, not the other way round",
        ),
        Mistake(
            "width per head",
            lambda d_out, num_heads: d_out,
            "d_out is the width of all heads together: each head gets a part of it",
        ),
        Mistake(
            "None on a remainder",
            lambda d_out, num_heads: None if d_out % num_heads else d_out // num_heads,
            "with a remainder you return None, and the error shows up somewhere else: raise ValueError here",
        ),
    ],
    where="section 8.2",
)


def _asserted(d_out: int, num_heads: int) -> int:
    if d_out % num_heads:
        raise AssertionError
    return d_out // num_heads


# 8.2  Parameters.


def _parameters(d_in: int, d_out: int, num_heads: int, qkv_bias: bool) -> int:
    return 3 * (d_in * d_out + (d_out if qkv_bias else 0)) + d_out * d_out + d_out


_COUNT = Exercise(
    reference=_parameters,
    cases=[(768, 768, 12, False), (3, 4, 2, True), (8, 8, 1, False), (10, 6, 3, True)],
    mistakes=[
        Mistake(
            "output projection forgotten",
            lambda d_in, d_out, num_heads, qkv_bias: 3 * (d_in * d_out + (d_out if qkv_bias else 0)),
            "those are queries, keys and values: the output projection adds d_out · d_out + d_out",
        ),
        Mistake(
            "times the heads",
            lambda d_in, d_out, num_heads, qkv_bias: (
                num_heads * 3 * (d_in * d_out + (d_out if qkv_bias else 0)) + d_out * d_out + d_out
            ),
            "you multiplied by the number of heads: d_out is the width of all heads together",
        ),
        Mistake(
            "bias of the output forgotten",
            lambda d_in, d_out, num_heads, qkv_bias: _parameters(d_in, d_out, num_heads, qkv_bias) - d_out,
            "the output projection has a bias: d_out more",
        ),
        Mistake(
            "output projection from d_in",
            lambda d_in, d_out, num_heads, qkv_bias: (
                _parameters(d_in, d_out, num_heads, qkv_bias) - d_out * d_out + d_in * d_out
            ),
            "the output projection takes the joined heads, so it maps d_out to d_out",
        ),
        Mistake(
            "bias always",
            lambda d_in, d_out, num_heads, qkv_bias: _parameters(d_in, d_out, num_heads, True),
            "you always counted a bias for queries, keys and values: without qkv_bias they have none",
        ),
        Mistake(
            "one bias for three",
            lambda d_in, d_out, num_heads, qkv_bias: (
                3 * d_in * d_out + (d_out if qkv_bias else 0) + d_out * d_out + d_out
            ),
            "each of the three projections has its own bias",
        ),
        Mistake(
            "qkv bias forgotten",
            lambda d_in, d_out, num_heads, qkv_bias: _parameters(d_in, d_out, num_heads, False),
            "with qkv_bias each of the three projections has d_out more",
        ),
    ],
    where="section 8.4",
)

# 8.3  The rows that belong to one head.


def _rows(weight: Tensor, head: int, num_heads: int) -> Tensor:
    head_dim = len(weight) // num_heads
    return weight[head * head_dim : (head + 1) * head_dim]


_WEIGHT = torch.arange(24.0).view(6, 4)

_ROWS = Exercise(
    reference=_rows,
    cases=[(_WEIGHT, 0, 2), (_WEIGHT, 1, 2), (_WEIGHT, 2, 3)],
    mistakes=[
        Mistake(
            "columns",
            lambda weight, head, num_heads: _rows(weight.T, head, num_heads),
            "those are columns, the inputs: the outputs are the rows of nn.Linear's weight",
        ),
        Mistake(
            "part of the input",
            lambda weight, head, num_heads: weight[
                :, head * len(weight) // num_heads : (head + 1) * len(weight) // num_heads
            ],
            "those are columns, a part of the input: nn.Linear stores its outputs as rows",
        ),
        Mistake(
            "one row further",
            lambda weight, head, num_heads: weight[head : head + len(weight) // num_heads],
            "head 1 begins head_dim rows further down, not one",
        ),
        Mistake(
            "every other row",
            lambda weight, head, num_heads: weight[head::num_heads],
            "a head's rows are next to each other, not every num_heads-th row",
        ),
        Mistake(
            "one row",
            lambda weight, head, num_heads: weight[head],
            "that is one row: a head has head_dim rows",
        ),
        Mistake(
            "counted from 1",
            lambda weight, head, num_heads: _rows(weight, head - 1, num_heads),
            "that is the head before it: heads are counted from 0",
        ),
        Mistake(
            "num_heads rows",
            lambda weight, head, num_heads: weight[head * num_heads : (head + 1) * num_heads],
            "you took num_heads rows: a head has head_dim = d_out / num_heads of them",
        ),
    ],
    where="section 8.5",
)

# 8.4  Bytes of the attention matrices.

_BYTES = Exercise(
    reference=lambda batch_size, num_heads, num_tokens: 4 * batch_size * num_heads * num_tokens**2,
    cases=[(1, 12, 1024), (2, 3, 10), (4, 1, 256)],
    mistakes=[
        Mistake(
            "numbers, not bytes",
            lambda batch_size, num_heads, num_tokens: batch_size * num_heads * num_tokens**2,
            "those are numbers: each takes 4 bytes",
        ),
        Mistake(
            "MiB",
            lambda batch_size, num_heads, num_tokens: 4 * batch_size * num_heads * num_tokens**2 / 2**20,
            "that is in MiB: the exercise asks for bytes",
        ),
        Mistake(
            "bits",
            lambda batch_size, num_heads, num_tokens: 32 * batch_size * num_heads * num_tokens**2,
            "those are bits: a byte has eight",
        ),
        Mistake(
            "heads squared",
            lambda batch_size, num_heads, num_tokens: 4 * batch_size * (num_heads * num_tokens) ** 2,
            "heads do not attend to each other: only num_tokens is squared",
        ),
        Mistake(
            "not squared",
            lambda batch_size, num_heads, num_tokens: 4 * batch_size * num_heads * num_tokens,
            "each query has a score for every key: num_tokens times num_tokens",
        ),
        Mistake(
            "heads forgotten",
            lambda batch_size, num_heads, num_tokens: 4 * batch_size * num_tokens**2,
            "each head has its own square matrix",
        ),
        Mistake(
            "batch forgotten",
            lambda batch_size, num_heads, num_tokens: 4 * num_heads * num_tokens**2,
            "each text of the batch has its own square matrices",
        ),
        Mistake(
            "half the matrix",
            lambda batch_size, num_heads, num_tokens: 4 * batch_size * num_heads * num_tokens * (num_tokens + 1) // 2,
            "that is only the visible triangle: the plain form stores the hidden half as well",
        ),
    ],
    where="section 8.6",
)

# 8.5  Without one head.

_CONTEXTS = torch.arange(1.0, 61.0).view(1, 3, 5, 4)


def _without(heads: Tensor, head: int) -> Tensor:
    kept = heads.clone()
    kept[:, head] = 0.0
    return kept.transpose(1, 2).flatten(-2)


def _changed(heads: Tensor, head: int) -> Tensor:
    heads[:, head] = 0.0
    return heads.transpose(1, 2).flatten(-2)


_ABLATE = Exercise(
    reference=_without,
    keeps_arguments=True,
    cases=[(_CONTEXTS, 0), (_CONTEXTS, 2), (torch.cat([_CONTEXTS, -_CONTEXTS]), 1)],
    mistakes=[
        Mistake(
            "heads changed",
            _changed,
            "the result is right, but you wrote the zeros into heads itself: work on a copy, heads.clone()",
        ),
        Mistake(
            "a text for a head",
            lambda heads, head: (
                (heads * (torch.arange(len(heads)) != head)[:, None, None, None]).transpose(1, 2).flatten(-2)
            ),
            "text `head` is 0, with all its heads: axis 0 counts texts, axis 1 counts heads",
        ),
        Mistake(
            "left out",
            lambda heads, head: heads[:, [i for i in range(heads.shape[1]) if i != head]].transpose(1, 2).flatten(-2),
            "the head is left out, so the vectors have fewer entries and out_proj no longer fits: set its part to 0",
        ),
        Mistake(
            "only this head",
            lambda heads, head: heads.transpose(1, 2).flatten(-2) - _without(heads, head),
            "only this head is left: all the others should stay",
        ),
        Mistake(
            "joined without a swap",
            lambda heads, head: (
                _without(heads, head)
                .unflatten(-1, (heads.shape[1], -1))
                .transpose(1, 2)
                .reshape(heads.shape[0], heads.shape[2], -1)
            ),
            "the right head is 0, but the tokens are mixed up: swap heads and tokens before you join",
        ),
        Mistake(
            "a token for a head",
            lambda heads, head: (heads * (torch.arange(heads.shape[2]) != head)[:, None]).transpose(1, 2).flatten(-2),
            "token `head` is 0, in all heads: axis 1 counts heads, axis 2 counts tokens",
        ),
    ],
    where="sections 8.1 and 8.3",
)

# 8.6  One weight from those of all heads.

_PIECES = [torch.arange(8.0).view(2, 4) + 10 * head for head in range(4)]

_ONE_WEIGHT = Exercise(
    reference=lambda head_weights: torch.cat(list(head_weights)),
    cases=[(_PIECES,), (_PIECES[:2],)],
    mistakes=[
        Mistake(
            "side by side",
            lambda head_weights: torch.cat(list(head_weights), dim=1),
            "the weights are side by side: outputs are rows, so stack them on top of each other",
        ),
        Mistake(
            "stacked",
            lambda head_weights: torch.stack(list(head_weights)),
            "stack adds an axis: the exercise asks for one matrix of d_out rows",
        ),
        Mistake(
            "last head first",
            lambda head_weights: torch.cat(list(head_weights)[::-1]),
            "the heads are in reverse order: head 0 has the first rows",
        ),
        Mistake(
            "rows alternate",
            lambda head_weights: torch.stack(list(head_weights), dim=1).flatten(0, 1),
            "the rows of the heads alternate: all rows of head 0 come first, then those of head 1",
        ),
    ],
    where="section 8.5",
)

# 8.7  True or False.

_FIVE = Exercise(
    reference=[False, True, False, True, False],
    mistakes=[
        Mistake(
            "heads cost parameters",
            [True, True, False, True, False],
            "all right except (a): the same projections are only split into more, narrower parts",
        ),
        Mistake(
            "fused computes less",
            [False, True, True, True, False],
            "all right except (c): it computes the same scores, block by block, and discards each block",
        ),
        Mistake(
            "dropout is free",
            [False, True, False, False, False],
            "all right except (d): with dropout the fused form on a CPU falls back to the full square",
        ),
        Mistake(
            "one head is enough",
            [False, True, False, True, True],
            "all right except (e): the output of one head is a single mixture, and a mixture cannot be taken apart",
        ),
        Mistake(
            "square is linear",
            [False, False, False, True, False],
            "all right except (b): there are twice as many queries and twice as many keys",
        ),
    ],
    where="sections 8.1, 8.4 and 8.6",
)

EXERCISES = {
    "8.A": _SPLIT,
    "8.B": _JOIN,
    "8.1": _WIDTH,
    "8.2": _COUNT,
    "8.3": _ROWS,
    "8.4": _BYTES,
    "8.5": _ABLATE,
    "8.6": _ONE_WEIGHT,
    "8.7": _FIVE,
}
