"""The exercises of lesson 3, embeddings."""

from collections.abc import Callable, Iterator
from itertools import permutations, product

import torch
import torch.nn.functional as F
from torch import Tensor, tensor

from utils.exercises import Exercise


def _numbers(*shape: int) -> Tensor:
    """Return numbers of both signs, the same in each run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


class AddPositions(Exercise, number="3.A", where="section 3.6", asks="a new tensor of the same shape"):
    cases = {
        "two texts of three tokens": (_numbers(2, 3, 5), _numbers(7, 5)),
        "five texts of two tokens": (_numbers(5, 2, 3), _numbers(11, 3)),
        "as many texts as tokens": (_numbers(3, 3, 4), _numbers(10, 4)),
    }
    edges = {
        "texts as long as the table": (_numbers(2, 6, 4), _numbers(6, 4)),
        "texts of one token": (_numbers(4, 1, 2), _numbers(8, 2)),
        "one text": (_numbers(1, 4, 3), _numbers(9, 3)),
    }

    def right(token_vectors, position_table):
        return token_vectors + position_table[: token_vectors.shape[1]]

    def along_the_batch(token_vectors, position_table):
        """all tokens of a text get the same position, and every text a different one: positions run along the batch"""
        return token_vectors + position_table[: len(token_vectors), None]

    def lined_up_with_the_texts(token_vectors, position_table):
        """there is one position per token, but along the axis of the texts: shapes line up from the right"""
        return token_vectors + position_table[: token_vectors.shape[1], None]

    def as_many_as_texts(token_vectors, position_table):
        """the number of positions is the number of texts: each text needs as many positions as it has tokens"""
        return token_vectors + position_table[: len(token_vectors)]

    def whole_table(token_vectors, position_table):
        """all positions of the table are added: take only as many as a text has tokens"""
        return token_vectors + position_table

    def counted_on(token_vectors, position_table):
        """each text goes on counting where the one before it ended: every text starts at position 0"""
        return token_vectors + position_table[: token_vectors[..., 0].numel()].view_as(token_vectors)

    def counted_from_1(token_vectors, position_table):
        """positions are counted from 1: the first token of each text needs row 0"""
        return token_vectors + position_table.roll(-1, dims=0)[: token_vectors.shape[1]]

    def vectors_left_out(token_vectors, position_table):
        """those are the position vectors alone: add them to the token vectors"""
        return position_table[: token_vectors.shape[1]].expand_as(token_vectors)

    def one_position_for_all(token_vectors, position_table):
        """every token gets position 0: the token at position t needs row t"""
        return token_vectors + position_table[0]


class LookUp(Exercise, number="3.B", where="section 3.6", asks="a tensor with one row per ID"):
    cases = {
        "three correct IDs": (tensor([2, 5, 1]), _numbers(6, 3)),
        "two correct IDs, one of them 0": (tensor([3, 0]), _numbers(5, 4)),
        "correct IDs of a longer table": (tensor([3, 7, 3]), _numbers(9, 2)),
        "ID 99": (tensor([1, 99]), _numbers(6, 3)),
        "ID −1": (tensor([3, -1]), _numbers(6, 3)),
        "an ID equal to vocab_size": (tensor([6]), _numbers(6, 7)),
        "a wrong ID before a correct one": (tensor([5, 1]), _numbers(4, 2)),
    }
    edges = {"a negative ID before a correct one": (tensor([-3, 1]), _numbers(5, 2))}

    def right(ids, table):
        if ids.min() < 0 or ids.max() >= len(table):
            raise ValueError
        return table[ids]

    def clamped(ids, table):
        """ID 99 silently returns the table's last row: the error is hidden, not fixed"""
        return table[ids.clamp(min=0, max=len(table) - 1)]

    def not_checked(ids, table):
        """ID 99 raises torch's IndexError, and −1 returns the last row: raise ValueError for an ID past either end"""
        return table[ids]

    def left_out(ids, table):
        """wrong IDs are left out, so there are silently fewer rows than IDs"""
        return table[ids[(ids >= 0) & (ids < len(table))]]

    def one_too_far(ids, table):
        """an ID equal to vocab_size is not noticed: the last row is vocab_size − 1"""
        if ids.min() < 0 or ids.max() > len(table):
            raise ValueError
        return table[ids]

    def last_refused(ids, table):
        """the last row's ID is refused, but it is correct: the IDs go from 0 to vocab_size − 1"""
        if ids.min() < 0 or ids.max() >= len(table) - 1:
            raise ValueError
        return table[ids]

    def first_refused(ids, table):
        """ID 0 is refused, but it is correct: the IDs go from 0 to vocab_size − 1"""
        if ids.min() <= 0 or ids.max() >= len(table):
            raise ValueError
        return table[ids]

    def upper_end_only(ids, table):
        """ID −1 still returns the last row: Python counts it from the end, so check for IDs below 0 as well"""
        if ids.max() >= len(table):
            raise ValueError
        return table[ids]


class Cosine(Exercise, number="3.1", where="section 3.1", asks="a number"):
    cases = [
        (tensor([2.0, 0.1, 0.0]), tensor([1.2, 0.8, 2.0])),
        (tensor([3.0, -1.0]), tensor([-0.5, 2.0])),
        (tensor([0.4, -7.0, 1.0, 2.5]), tensor([-0.2, 3.0, 0.3, 0.6])),
    ]
    edges = [(tensor([2.0, 1.0]), tensor([-3.0, 6.0])), (tensor([0.3, -0.4]), tensor([0.3, -0.4]))]

    def right(a, b):
        return a @ b / (a.norm() * b.norm())

    def dot_product(a, b):
        """that is the dot product, which grows with the lengths of the vectors: divide by both norms"""
        return a @ b

    def not_added_up(a, b):
        """there is one number per entry: the products still have to be added up"""
        return a * b / (a.norm() * b.norm())

    def first_norm_only(a, b):
        """the dot product is divided only by the norm of a: the length of b still counts"""
        return a @ b / a.norm()

    def second_norm_only(a, b):
        """the dot product is divided only by the norm of b: the length of a still counts"""
        return a @ b / b.norm()

    def second_norm_multiplied(a, b):
        """the dot product is divided by the norm of a, but multiplied by the norm of b: divide by both"""
        return a @ b / a.norm() * b.norm()

    def norms_added(a, b):
        """the dot product is divided by the sum of the norms: divide by their product"""
        return a @ b / (a.norm() + b.norm())

    def norms_squared(a, b):
        """the norms are squared: the norm is the square root of the dot product with itself"""
        return a @ b / ((a @ a) * (b @ b))

    def sign_lost(a, b):
        """the cosine of vectors that point away from each other is negative, but yours is positive"""
        return (a @ b).abs() / (a.norm() * b.norm())

    def cut_off_at_0(a, b):
        """a negative cosine comes out as 0: the cosine is between −1 and 1"""
        return (a @ b / (a.norm() * b.norm())).clamp(min=0)

    def distance(a, b):
        """that is 1 minus the cosine: the exercise asks for the cosine itself"""
        return 1 - a @ b / (a.norm() * b.norm())

    def angle(a, b):
        """that is the angle: the exercise asks for its cosine"""
        return torch.acos(a @ b / (a.norm() * b.norm()))


class EmbedByMatmul(Exercise, number="3.2", where="section 3.2", asks="a tensor with one row per ID"):
    cases = {
        "four IDs": (tensor([2, 5, 0, 5]), _numbers(8, 3)),
        "two IDs": (tensor([6, 0]), _numbers(7, 4)),
        "five IDs": (tensor([8, 1, 3, 9, 3]), _numbers(11, 2)),
    }
    edges = {"one ID": (tensor([40]), _numbers(60, 5))}

    def right(ids, table):
        return F.one_hot(ids, num_classes=len(table)).to(table.dtype) @ table

    def integers(ids, table):
        """integers are multiplied by floating-point numbers (one_hot returns integers): convert them first"""
        return F.one_hot(ids, num_classes=len(table)) @ table

    def as_long_as_the_largest(ids, table):
        """the one-hot vectors have just enough entries for the largest ID: they need vocab_size entries"""
        return F.one_hot(ids).to(table.dtype) @ table

    def too_short(ids, table):
        """the one-hot vectors are too short for these IDs: num_classes must be vocab_size"""
        return F.one_hot(ids, num_classes=len(ids)).to(table.dtype) @ table

    def not_multiplied(ids, table):
        """those are the one-hot vectors: multiply them by the table"""
        return F.one_hot(ids, num_classes=len(table))

    def entry_by_entry(ids, table):
        """the one-hot vectors and the table are combined entry by entry: the matrix product is @"""
        return F.one_hot(ids, num_classes=len(table)) * table

    def operands_swapped(ids, table):
        """the table comes first in the product: the one-hot vectors must come first, since they pick its rows"""
        return table @ F.one_hot(ids, num_classes=len(table)).to(table.dtype)

    def one_vector_for_all(ids, table):
        """the rows are added up, those of equal IDs only once: each ID needs a one-hot vector of its own"""
        return table[ids.unique()].sum(dim=0)


class EmbeddingParameters(Exercise, number="3.3", where="section 3.2", asks="one number"):
    cases = [(30_000, 512, 384), (100, 16, 8), (7, 20, 5)]

    def right(vocab_size, context_length, emb_dim):
        return (vocab_size + context_length) * emb_dim

    def positions_forgotten(vocab_size, context_length, emb_dim):
        """that is the token table alone: positions have a table too"""
        return vocab_size * emb_dim

    def tokens_forgotten(vocab_size, context_length, emb_dim):
        """that is the position table alone: tokens have a table too"""
        return context_length * emb_dim

    def one_table_of_pairs(vocab_size, context_length, emb_dim):
        """that would be one row for each token at each position: the tables are separate, and their rows are added"""
        return vocab_size * context_length * emb_dim

    def rows_counted(vocab_size, context_length, emb_dim):
        """that is the number of rows: each of them has emb_dim entries"""
        return vocab_size + context_length

    def one_number_per_token(vocab_size, context_length, emb_dim):
        """the tokens count as one number each: their rows have emb_dim entries too"""
        return vocab_size + context_length * emb_dim

    def one_number_per_position(vocab_size, context_length, emb_dim):
        """the positions count as one number each: their rows have emb_dim entries too"""
        return vocab_size * emb_dim + context_length

    def arguments_swapped(vocab_size, context_length, emb_dim):
        """context_length and emb_dim are swapped: the second argument is context_length"""
        return (vocab_size + emb_dim) * context_length

    def biases(vocab_size, context_length, emb_dim):
        """that is one number too many per row: a row has emb_dim entries, and an embedding table has no bias"""
        return (vocab_size + context_length) * (emb_dim + 1)


class StaysTheSame(Exercise, number="3.4", where="section 3.5", asks="a list of four values, each True or False"):
    def right():
        return [True, False, True, True]

    def a_sum_knows_the_order():
        """a sum is the same in whatever order its parts are added"""
        yield from product([False], *3 * [[True, False]])

    def positions_change_the_sum():
        """with positions, too: the sum of all rows is the sum of the tokens plus the sum of the positions"""
        yield from product([True], *2 * [[True, False]], [False])

    def rows_taken_for_others():
        """a row is its own token's vector plus its own position's: go through the rows again"""
        yield from ([True, True, True, True], [True, True, False, True], [True, False, False, True])


def _cosines(index: int, table: Tensor) -> Tensor:
    return F.cosine_similarity(table, table[index], dim=-1)


def _order(scores: Tensor) -> Tensor:
    """Return all indices, that of the highest score first."""
    return scores.argsort(descending=True, stable=True)


def _others(index: int, scores: Tensor) -> Tensor:
    order = _order(scores)
    return order[order != index]


class Nearest(Exercise, number="3.5", where="sections 3.1 and 3.4", asks="k indices, nearest first"):
    cases = {  # no dot product is below −2, so that it does not matter how the row itself is left out
        "six of seven rows": (0, _numbers(7, 3), 6),
        "three of nine rows": (4, _numbers(9, 2), 3),
        "a row equal to an earlier one": (2, tensor([[0.0, 5], [3, -1], [0, 5], [0, -2], [-1, 2]]) / 8, 4),
        "a row equal to a later one": (1, tensor([[-2.0, 0, 0], [3, 0, 0], [3, 0, 0], [1, -4, 2], [-1, 1, 0]]) / 4, 4),
    }
    edges = {"the nearest alone": (2, _numbers(6, 4), 1)}

    def right(index, table, k):
        return _others(index, _cosines(index, table))[:k]

    def itself_included(index, table, k):
        """index itself is in the list: every row is nearest to itself, so leave it out"""
        return _order(_cosines(index, table))[:k]

    def first_left_out(index, table, k):
        """where another row has the same direction, that one is left out, and index itself is in the list"""
        return _order(_cosines(index, table))[1 : k + 1]

    def ahead_of_the_negative(index, table, k):
        """index itself is in the list, ahead of the rows with a negative cosine: leave it out altogether"""
        return _order(_cosines(index, table).index_fill(0, tensor(index), 0))[:k]

    def dot_products(index, table, k):
        """those have the largest dot products, in which the length of a row counts too: divide by its norm"""
        return _others(index, table @ table[index])[:k]

    def dot_products_and_itself(index, table, k):
        """those have the largest dot products: divide by the norm of each row, and leave out the row itself"""
        return _order(table @ table[index])[:k]

    def cosines(index, table, k):
        """those are the cosines: return the indices of their rows"""
        return _cosines(index, table)[_others(index, _cosines(index, table))][:k]

    def columns_normalised(index, table, k):
        """the columns are scaled to length 1: a vector is a row, so divide each row by its norm"""
        columns = F.normalize(table, dim=0)
        return _others(index, columns @ columns[index])[:k]

    def one_missing(index, table, k):
        """the last of the k indices is missing: is index itself left out only after k have been chosen?"""
        return _others(index, _cosines(index, table))[: k - 1]

    def distance(index, table, k):
        """those are the nearest points, by distance: the cosine compares directions alone"""
        return _others(index, -(table - table[index]).norm(dim=1))[:k]

    def farthest(index, table, k):
        """those are the farthest: the largest cosine is the nearest"""
        return _others(index, -_cosines(index, table))[:k]

    def counted_without_it(index, table, k):
        """each index after that of the row itself is 1 too small: is the row left out before they are counted?"""
        others = _others(index, _cosines(index, table))[:k]
        return others - (others > index).int()


_SENTENCES = [
    s.split() for s in ("we bake fresh bread", "we bake fresh rolls", "they sell old maps", "they sell new books")
]


def _predicted(word: str) -> set[str]:
    """Return the other words of a word's sentences."""
    return {other for sentence in _SENTENCES if word in sentence for other in sentence} - {word}


def _pairs(which: Callable[[str, str], bool]) -> Iterator[tuple[str, str]]:
    return (pair for pair in permutations(set().union(*_SENTENCES), 2) if which(*pair))


class MostSimilar(Exercise, number="3.6", where="section 3.4", asks="a list of two words"):
    def right():
        return ["bread", "rolls"]

    def order():
        """the right words: give them in alphabetical order"""
        return ["rolls", "bread"]

    def spelled_otherwise():
        """the right words, but spelled differently: write them just as in the sentences"""
        for change in (str.title, str.upper, " {}".format, "{} ".format, "{}.".format, "'{}'".format, '"{}"'.format):
            yield [change("bread"), change("rolls")]

    def in_one_sentence():
        """those occur together, so each has to predict the other: similar words have to predict the same words"""
        yield from _pairs(lambda a, b: a in _predicted(b))

    def two_of_three():
        """those share two of the three words that they have to predict: another pair shares all"""
        yield from _pairs(lambda a, b: a not in _predicted(b) and len(_predicted(a) & _predicted(b)) == 2)

    def nothing_in_common():
        """those never have to predict the same word, and similar words do"""
        yield from _pairs(lambda a, b: a not in _predicted(b) and not _predicted(a) & _predicted(b))
