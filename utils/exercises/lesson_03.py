"""The exercises of lesson 3, embeddings."""

import torch
import torch.nn.functional as F
from torch import Tensor

from utils.exercises import Exercise, Mistake

_TABLE = torch.tensor(
    [[2.0, 0.1, 0.0], [1.2, 0.8, 2.0], [0.2, 4.0, 8.0], [4.0, 0.5, 0.4], [-1.0, 0.3, 0.2], [0.6, 0.6, 0.5]]
)

# 3.A  Positions run along the token axis.

_VECTORS = torch.arange(24.0).reshape(2, 3, 4)
_SQUARE = torch.arange(36.0).reshape(3, 3, 4)
_POSITIONS = 100 * torch.arange(1.0, 21.0).reshape(5, 4)

_ADD = Exercise(
    keeps_arguments=True,
    reference=lambda vectors, table: vectors + table[: vectors.shape[1]],
    cases=[(_VECTORS, _POSITIONS), (_SQUARE, _POSITIONS), (_VECTORS[:, :1], _POSITIONS)],
    mistakes=[
        Mistake(
            "along the batch",
            lambda vectors, table: vectors + table[: vectors.shape[0], None],
            "all tokens of a text get the same position, and every text a different one: positions run along the batch",
        ),
        Mistake(
            "one position for all",
            lambda vectors, table: vectors + table[0],
            "every token gets position 0: position t needs row t",
        ),
        Mistake(
            "counted from 1",
            lambda vectors, table: vectors + table[1 : vectors.shape[1] + 1],
            "the first token got row 1 of the positions: counting starts at 0",
        ),
        Mistake(
            "counted from the end",
            lambda vectors, table: vectors + table[-vectors.shape[1] :],
            "the text got the last rows of the table: it starts at position 0, however short it is",
        ),
        Mistake(
            "side by side",
            lambda vectors, table: torch.cat([vectors, table[: vectors.shape[1]].expand_as(vectors)], dim=-1),
            "the vectors are side by side, with twice as many entries: here positions are added",
        ),
    ],
    where="section 3.6",
)

# 3.B  An ID that the table does not have is an error.


def _look_up(ids: Tensor, table: Tensor) -> Tensor:
    if ids.min() < 0 or ids.max() >= len(table):
        raise ValueError(f"IDs are 0..{len(table) - 1}, not {ids.tolist()}")
    return table[ids]


def _one_too_far(ids: Tensor, table: Tensor) -> Tensor:
    if ids.min() < 0 or ids.max() > len(table):
        raise ValueError(f"IDs are 0..{len(table) - 1}, not {ids.tolist()}")
    return table[ids]


def _upper_only(ids: Tensor, table: Tensor) -> Tensor:
    if ids.max() >= len(table):
        raise ValueError(f"IDs are 0..{len(table) - 1}, not {ids.tolist()}")
    return table[ids]


_LOOK_UP = Exercise(
    reference=_look_up,
    cases=[
        (torch.tensor([0, 5, 2]), _TABLE),
        (torch.tensor([1, 99]), _TABLE),
        (torch.tensor([3, -1]), _TABLE),
        (torch.tensor([6]), _TABLE),
    ],
    mistakes=[
        Mistake(
            "clamped",
            lambda ids, table: table[ids.clamp(min=0, max=len(table) - 1)],
            "ID 99 silently returns the table's last row: the error is hidden, not fixed",
        ),
        Mistake(
            "torch's own error",
            lambda ids, table: table[ids],
            "a large ID raises torch's IndexError, and −1 returns the last row: check both ends and raise ValueError",
        ),
        Mistake(
            "wrapped around",
            lambda ids, table: table[ids % len(table)],
            "IDs wrap around: 99 returns some other token's row",
        ),
        Mistake(
            "left out",
            lambda ids, table: table[ids[(ids >= 0) & (ids < len(table))]],
            "invalid IDs are left out, so there are silently fewer rows than tokens",
        ),
        Mistake(
            "one too far",
            _one_too_far,
            "with a table of 6 rows, ID 6 slips through to torch: rows are 0 to 5, so use >=",
        ),
        Mistake(
            "upper end only",
            _upper_only,
            "ID −1 still returns the last row: Python counts it from the end, so check for IDs below 0 as well",
        ),
    ],
    where="section 3.6",
)

# 3.1  Cosine.

_COSINE = Exercise(
    reference=lambda a, b: a @ b / (a.norm() * b.norm()),
    cases=[(_TABLE[0], _TABLE[1]), (_TABLE[1], _TABLE[2]), (10 * _TABLE[4], _TABLE[2]), (_TABLE[4], _TABLE[0])],
    mistakes=[
        Mistake(
            "dot product",
            lambda a, b: a @ b,
            "that is the dot product, which is large for long vectors: divide by both norms",
        ),
        Mistake(
            "not summed",
            lambda a, b: a * b / (a.norm() * b.norm()),
            "the products are not added up: * multiplies entry by entry, @ is the dot product",
        ),
        Mistake(
            "absolute value",
            lambda a, b: (a @ b).abs() / (a.norm() * b.norm()),
            "vectors that point in opposite directions have a negative cosine, but yours is positive",
        ),
        Mistake(
            "norms added",
            lambda a, b: a @ b / (a.norm() + b.norm()),
            "the norms are added: divide by their product",
        ),
        Mistake(
            "one norm",
            lambda a, b: a @ b / a.norm(),
            "you divided only by the first vector's norm: the length of the second still counts",
        ),
        Mistake(
            "square root missing",
            lambda a, b: a @ b / ((a @ a) * (b @ b)),
            "you divide by the squared norms: the norm is the square root of a @ a",
        ),
    ],
    where="section 3.1",
)

# 3.2  Look up with a matrix product.


def _one_hot(ids: Tensor, table: Tensor) -> Tensor:
    return F.one_hot(ids, num_classes=len(table)).to(table.dtype)


_MATMUL = Exercise(
    reference=lambda ids, table: _one_hot(ids, table) @ table,
    cases=[(torch.tensor([2, 5, 2]), _TABLE), (torch.tensor([0, 1]), _TABLE), (torch.tensor([4]), _TABLE)],
    mistakes=[
        Mistake(
            "integers",
            lambda ids, table: F.one_hot(ids, num_classes=len(table)) @ table,
            "one_hot returns integers and the table is floating-point: convert one to the other's dtype first",
        ),
        Mistake(
            "number of classes inferred",
            lambda ids, table: F.one_hot(ids).to(table.dtype) @ table,
            "without num_classes, one_hot is only as wide as the largest ID here: it must be vocab_size wide",
        ),
        Mistake(
            "rows added up",
            lambda ids, table: _one_hot(ids, table).sum(dim=0) @ table,
            "the one-hot rows are added up before the product: that leaves one vector, but each token needs its own",
        ),
        Mistake(
            "IDs as quantities",
            lambda ids, table: ids[:, None] * table[0],
            "the IDs are multiplied as if they were quantities: they are labels",
        ),
    ],
    where="section 3.2",
)

# 3.3  Parameters of both tables.

_PARAMETERS = Exercise(
    reference=lambda vocab_size, context_length, emb_dim: (vocab_size + context_length) * emb_dim,
    cases=[(50_257, 1_024, 768), (100, 16, 8), (7, 1, 3)],
    mistakes=[
        Mistake(
            "positions forgotten",
            lambda vocab_size, context_length, emb_dim: vocab_size * emb_dim,
            "that is the token table alone: positions have a table too",
        ),
        Mistake(
            "one table of pairs",
            lambda vocab_size, context_length, emb_dim: vocab_size * context_length * emb_dim,
            "that would be one row per token and position: the two tables are separate, and their rows are added",
        ),
        Mistake(
            "numbers for positions",
            lambda vocab_size, context_length, emb_dim: vocab_size * emb_dim + context_length,
            "a position is a whole row of emb_dim entries, not a single number",
        ),
        Mistake(
            "biases added",
            lambda vocab_size, context_length, emb_dim: (vocab_size + context_length) * emb_dim + 2 * emb_dim,
            "you added a bias for each table: an embedding table has no bias",
        ),
    ],
    where="section 3.2",
)

# 3.4  What stays the same when two tokens are swapped.

_SWAP = Exercise(
    reference=[True, False, True, True],
    mistakes=[
        Mistake(
            "the sum tells the order",
            [True, False, True, False],
            "all right except (d): the sum of all tokens plus the sum of all positions does not depend on the order",
        ),
        Mistake(
            "all rows change",
            [True, False, False, True],
            "all right except (c): a row is its own token plus its own position, and neither changed there",
        ),
        Mistake(
            "order never shows",
            [True, True, True, True],
            "all right except (b): another token is at that position now, so the row is different",
        ),
        Mistake(
            "everything changes",
            [False, False, False, False],
            "you say that everything changes: the sum (a) is over the same tokens, and other positions keep their rows",
        ),
    ],
    where="section 3.5",
)

# 3.5  Nearest rows by cosine.


_TWINS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.1]])


def _cosines(index: int, table: Tensor) -> Tensor:
    rows = F.normalize(table, dim=1)
    return rows @ rows[index]


def _top(scores: Tensor, index: int, k: int, itself: bool = False) -> list[int]:
    order = scores.argsort(descending=True).tolist()
    return [row for row in order if itself or row != index][:k]


_NEAREST = Exercise(
    keeps_arguments=True,
    reference=lambda index, table, k: _top(_cosines(index, table), index, k),
    cases=[(0, _TABLE, 5), (1, _TABLE, 2), (2, _TABLE, 3), (5, _TABLE, 1), (2, _TWINS, 3)],
    mistakes=[
        Mistake(
            "itself included",
            lambda index, table, k: _top(_cosines(index, table), index, k, itself=True),
            "the word itself is in the list: it is always the nearest, so leave it out",
        ),
        Mistake(
            "dot product",
            lambda index, table, k: _top(table @ table[index], index, k),
            "you used the dot product: long vectors win, whatever their direction",
        ),
        Mistake(
            "distance",
            lambda index, table, k: _top(-(table - table[index]).norm(dim=1), index, k),
            "you used the distance between the points: the exercise asks for direction, that is, the cosine",
        ),
        Mistake(
            "farthest",
            lambda index, table, k: _top(-_cosines(index, table), index, k),
            "those are the farthest: the largest cosine is the nearest",
        ),
        Mistake(
            "order reversed",
            lambda index, table, k: _top(_cosines(index, table), index, k)[::-1],
            "the right words, but the nearest comes last: it should come first",
        ),
    ],
    where="sections 3.1 and 3.4",
)

# 3.6  Which words become similar.

_ALIKE = Exercise(
    reference=["bread", "rolls"],
    mistakes=[
        Mistake(
            "in the same sentence",
            ["bake", "fresh"],
            "those appear together, which is different: words become similar when they predict the same words",
        ),
        Mistake(
            "two of three",
            ["books", "maps"],
            "those share two of the words that they predict; another pair shares all three",
        ),
        Mistake(
            "both at the start",
            ["they", "we"],
            "those start their sentences, but share no other words: position does not matter here",
        ),
        Mistake(
            "order",
            ["rolls", "bread"],
            "the right words: give them in alphabetical order",
        ),
    ],
    where="section 3.4",
)

EXERCISES = {
    "3.A": _ADD,
    "3.B": _LOOK_UP,
    "3.1": _COSINE,
    "3.2": _MATMUL,
    "3.3": _PARAMETERS,
    "3.4": _SWAP,
    "3.5": _NEAREST,
    "3.6": _ALIKE,
}
