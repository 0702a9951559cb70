"""The exercises of lesson 9, a whole GPT."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.exercises import Exercise, demand
from utils.exercises.values import same

# 9.A: these functions play the parts of a block, each with another effect.


def norm1(x: Tensor) -> Tensor:
    return x - 1


def attention(x: Tensor) -> Tensor:
    return 10 * x.cumsum(dim=1)


def norm2(x: Tensor) -> Tensor:
    return 2 * x + 3


def feed_forward(x: Tensor) -> Tensor:
    return x**2


_ONE_TEXT = torch.tensor([[[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]]])
_TWO_TEXTS = torch.arange(24.0).view(2, 3, 4) % 7 - 3


class Block(Exercise, number="9.A", where="section 9.3", asks="a tensor of the shape of x"):
    cases = {
        "layers that return only zeros": (_ONE_TEXT, norm1, torch.zeros_like, norm2, torch.zeros_like),
        "a batch of two texts": (_TWO_TEXTS, norm1, attention, norm2, feed_forward),
    }

    def right(x, norm1, attention, norm2, feed_forward):
        x = x + attention(norm1(x))
        return x + feed_forward(norm2(x))

    def attention_replaces(x, norm1, attention, norm2, feed_forward):
        """with layers that return only zeros, x should pass unchanged, but zeros come out"""
        x = attention(norm1(x))
        return x + feed_forward(norm2(x))

    def feed_forward_replaces(x, norm1, attention, norm2, feed_forward):
        """x gets past attention, but with layers that return only zeros it is still lost later"""
        x = x + attention(norm1(x))
        return feed_forward(norm2(x))

    def nothing_added(x, norm1, attention, norm2, feed_forward):
        """neither output is added to anything: with layers that return only zeros, x should pass unchanged"""
        return feed_forward(norm2(attention(norm1(x))))

    def only_attention(x, norm1, attention, norm2, feed_forward):
        """attention's output is added to x, but feed_forward's is missing from what you return"""
        return x + attention(norm1(x))

    def only_feed_forward(x, norm1, attention, norm2, feed_forward):
        """feed_forward's output is added to x, but attention's is missing from what you return"""
        return x + feed_forward(norm2(x))

    def added_once(x, norm1, attention, norm2, feed_forward):
        """x is added only once, after both layers: attention's output should be added to x, too"""
        return x + feed_forward(norm2(attention(norm1(x))))

    def norm1_forgotten(x, norm1, attention, norm2, feed_forward):
        """attention gets x itself, where it should get norm1(x)"""
        x = x + attention(x)
        return x + feed_forward(norm2(x))

    def norm2_forgotten(x, norm1, attention, norm2, feed_forward):
        """feed_forward gets the sum itself, where it should get norm2 of it"""
        x = x + attention(norm1(x))
        return x + feed_forward(x)

    def norms_forgotten(x, norm1, attention, norm2, feed_forward):
        """the sums are right, but both layers get what is not normalised: norm1 and norm2 are missing"""
        x = x + attention(x)
        return x + feed_forward(x)

    def norm1_twice(x, norm1, attention, norm2, feed_forward):
        """feed_forward gets norm1 of the sum, where it should get norm2 of it"""
        return Block.right(x, norm1, attention, norm1, feed_forward)

    def x_added_twice(x, norm1, attention, norm2, feed_forward):
        """x is added twice: the sum after attention already contains it"""
        y = x + attention(norm1(x))
        return x + y + feed_forward(norm2(y))

    def second_output_normalised(x, norm1, attention, norm2, feed_forward):
        """norm2 comes after feed_forward: normalise what feed_forward gets, not its output"""
        x = x + attention(norm1(x))
        return x + norm2(feed_forward(x))

    def added_at_the_end(x, norm1, attention, norm2, feed_forward):
        """x is in the final sum, but feed_forward gets attention's output alone, without x"""
        y = attention(norm1(x))
        return x + y + feed_forward(norm2(y))

    def side_by_side(x, norm1, attention, norm2, feed_forward):
        """both are added, but feed_forward gets the x from before attention"""
        return x + attention(norm1(x)) + feed_forward(norm2(x))

    def first_sum_lost(x, norm1, attention, norm2, feed_forward):
        """the output of attention goes into feed_forward, but is missing from the final sum"""
        return x + feed_forward(norm2(x + attention(norm1(x))))

    def outputs_normalised(x, norm1, attention, norm2, feed_forward):
        """each layer's output is normalised: normalise its input"""
        x = x + norm1(attention(x))
        return x + norm2(feed_forward(x))

    def normalised_on_the_residual_path(x, norm1, attention, norm2, feed_forward):
        """x itself comes out normalised: normalise what a layer gets, not what its output is added to"""
        x = norm1(x)
        x = norm2(x + attention(x))
        return x + feed_forward(x)

    def normalised_after_adding(x, norm1, attention, norm2, feed_forward):
        """the norms come after the sums, as in the first transformer: here a layer's input is normalised"""
        x = norm1(x + attention(x))
        return norm2(x + feed_forward(x))

    def norms_swapped(x, norm1, attention, norm2, feed_forward):
        """the sums are right, but the norms are swapped: norm1 belongs to attention, norm2 to feed_forward"""
        return Block.right(x, norm2, attention, norm1, feed_forward)

    def layers_swapped(x, norm1, attention, norm2, feed_forward):
        """feed_forward comes before attention: the order is attention, then feed_forward"""
        return Block.right(x, norm2, feed_forward, norm1, attention)


class Tie(Exercise, number="9.B", where="section 9.4", asks="one table for both"):
    def call(tie):
        embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        table, heads = embedding.weight.detach().clone(), head.weight.detach().clone()
        if tie(embedding, head) is ...:
            return ...
        one, other = embedding.weight, head.weight
        demand(not same(one, heads), "the embedding now has the head's numbers: it should keep its own and share them")
        demand(same(one, table), "the embedding's numbers have changed: only the head should change")
        demand(same(other, table), "after tie, the head's table is not equal to the embedding's")
        near = one is other or one.data_ptr() == other.data_ptr()
        demand(near, "right after tie the two tables are equal; after one training step they differ")
        demand(one is other, "the two share memory, but are not one parameter: give the head the embedding's own")
        demand(one.requires_grad, "they share one table, but it does not require a gradient: it cannot learn")

    def right(embedding, head):
        head.weight = embedding.weight

    def copied(embedding, head):
        """right after tie the two tables are equal; after one training step they differ"""
        head.weight = nn.Parameter(embedding.weight.detach().clone())

    def same_memory(embedding, head):
        """the two share memory, but are not one parameter: give the head the embedding's own"""
        head.weight.data = embedding.weight.data

    def numbers_of_the_head(embedding, head):
        """the embedding now has the head's numbers: it should keep its own and share them"""
        embedding.weight = head.weight

    def other_numbers(embedding, head):
        """the embedding's numbers have changed: only the head should change"""
        head.weight = embedding.weight
        nn.init.normal_(head.weight)

    def head_unchanged(embedding, head):
        """after tie, the head's table is not equal to the embedding's"""
        head.weights = embedding.weight

    def not_a_parameter(embedding, head):
        """torch refuses: a weight must be a parameter, and what you assign is only a tensor, such as a clone"""
        head.weight = embedding.weight.clone()

    def the_layer_itself(embedding, head):
        """torch refuses: a weight must be a parameter, and what you assign is a whole embedding layer"""
        head.weight = embedding

    def frozen(embedding, head):
        """they share one table, but it does not require a gradient: it cannot learn"""
        head.weight = embedding.weight.requires_grad_(False)


_TEXTS = torch.tensor([
    [[1.0, 2.0, 3.0, 4.0, 7.0], [0.0, 0.0, 8.0, 1.0, -2.0], [5.0, -1.0, 0.0, 2.0, 1.0]],
    [[-3.0, 2.0, 0.5, 0.0, 1.0], [6.0, 1.0, 1.0, 2.0, -4.0], [0.3, 0.1, 0.2, 0.0, 0.4]],
])  # fmt: skip


class Norm(Exercise, number="9.1", where="section 9.1", asks="a tensor of the shape of x"):
    cases = {
        "a batch of two texts": (_TEXTS, 1e-5),
        "one text": (_TEXTS[1, :, 1:], 0.5),
        "one vector": (torch.tensor([4.0, -1.0, 0.0, 3.0, 2.0, 2.5]), 0.1),
        "vectors of equal numbers": (torch.full((2, 1, 3, 8), 4.0), 1e-5),
    }

    def right(x, eps):
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()

    def divided_by_n_minus_1(x, eps):
        """your variance divides by n − 1, as torch's var does by default: divide by n (correction=0)"""
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt()

    def neither_n_nor_eps(x, eps):
        """your variance divides by n − 1, not by n (correction=0), and eps is not added to it"""
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)

    def over_axis_0(x, eps):
        """you normalise over axis 0, which is the last one only for a vector: the last axis is always −1"""
        return (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt()

    def over_axis_1(x, eps):
        """you normalise over axis 1, which is the last one only for a matrix: the last axis is always −1"""
        return (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + eps).sqrt()

    def over_everything(x, eps):
        """you normalise over the whole tensor at once: each token has its own mean and variance"""
        return (x - x.mean()) / (x.var(correction=0) + eps).sqrt()

    def no_square_root(x, eps):
        """you divide by the variance plus eps: divide by its square root"""
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + eps)

    def neither_n_nor_square_root(x, eps):
        """your variance divides by n − 1, not by n (correction=0), and its square root is missing"""
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps)

    def eps_after_the_square_root(x, eps):
        """you add eps to the square root: add it to the variance, before you take the square root"""
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + eps)

    def eps_added_to_std(x, eps):
        """your variance divides by n − 1, not by n (correction=0), and eps belongs under the square root"""
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)

    def no_eps(x, eps):
        """a vector of equal numbers becomes nan: eps is not added to the variance"""
        return Norm.right(x, 0)

    def fixed_eps(x, eps):
        """the eps that the function gets makes no difference: add it to the variance"""
        return Norm.right(x, 1e-5)

    def mean_not_subtracted(x, eps):
        """the mean is not subtracted"""
        return x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()

    def mean_square(x, eps):
        """the mean is subtracted neither from x nor in the variance"""
        return x / ((x**2).mean(-1, keepdim=True) + eps).sqrt()

    def divided_by_its_length(x, eps):
        """you divide by the square root of a sum of squares: the variance is their mean"""
        x = x - x.mean(-1, keepdim=True)
        return x / ((x**2).sum(-1, keepdim=True) + eps).sqrt()

    def only_centred(x, eps):
        """the mean is subtracted, but nothing is divided by the square root of the variance"""
        return x - x.mean(-1, keepdim=True)

    def axis_lost(x, eps):
        """the shapes do not fit together: a mean or variance has lost its axis, so keep it with keepdim=True"""
        return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt()


class Count(Exercise, number="9.2", where="sections 9.1 to 9.3", asks="one number, all parameters together"):
    cases = [(768, False), (768, True), (8, False), (10, True)]

    def right(emb_dim, qkv_bias):
        return 12 * emb_dim**2 + (13 if qkv_bias else 10) * emb_dim

    def weights_only(emb_dim, qkv_bias):
        """12 · emb_dim² are the weights of the linear layers: add their biases and the norms"""
        return 12 * emb_dim**2

    def biases_forgotten(emb_dim, qkv_bias):
        """6 · emb_dim parameters are missing: as many as the biases of the output projection and feed_forward have"""
        return Count.right(emb_dim, qkv_bias) - 6 * emb_dim

    def norms_forgotten(emb_dim, qkv_bias):
        """4 · emb_dim parameters are missing: as many as the two norms have, or the wide bias of feed_forward"""
        return Count.right(emb_dim, qkv_bias) - 4 * emb_dim

    def feed_forward_biases_forgotten(emb_dim, qkv_bias):
        """5 · emb_dim parameters are missing: as many as the two biases of the feed-forward layer have"""
        return Count.right(emb_dim, qkv_bias) - 5 * emb_dim

    def half_the_norms(emb_dim, qkv_bias):
        """2 · emb_dim parameters are missing: as many as one norm has, or the shifts of both"""
        return Count.right(emb_dim, qkv_bias) - 2 * emb_dim

    def one_bias_forgotten(emb_dim, qkv_bias):
        """emb_dim parameters are missing: as many as the bias of the output projection has, or that of narrow"""
        return Count.right(emb_dim, qkv_bias) - emb_dim

    def output_projection_forgotten(emb_dim, qkv_bias):
        """emb_dim² + emb_dim parameters are missing: as many as attention's output projection has"""
        return Count.right(emb_dim, qkv_bias) - emb_dim**2 - emb_dim

    def not_expanded(emb_dim, qkv_bias):
        """6 · emb_dim² + 3 · emb_dim parameters are missing: inside, the feed-forward layer has 4 · emb_dim entries"""
        return Count.right(emb_dim, qkv_bias) - 6 * emb_dim**2 - 3 * emb_dim

    def third_norm(emb_dim, qkv_bias):
        """2 · emb_dim parameters too many, as many as one norm has: a block has two norms"""
        return Count.right(emb_dim, qkv_bias) + 2 * emb_dim

    def both_biases_wide(emb_dim, qkv_bias):
        """3 · emb_dim parameters too many: the feed-forward layer has a bias of 4 · emb_dim, and one of emb_dim"""
        return Count.right(emb_dim, qkv_bias) + 3 * emb_dim

    def qkv_bias_always(emb_dim, qkv_bias):
        """qkv_bias makes no difference: without it, queries, keys and values have no bias"""
        return Count.right(emb_dim, True)

    def qkv_bias_never(emb_dim, qkv_bias):
        """qkv_bias makes no difference: with it, queries, keys and values have emb_dim more each"""
        return Count.right(emb_dim, False)

    def one_qkv_bias(emb_dim, qkv_bias):
        """with qkv_bias, 2 · emb_dim parameters are missing: queries, keys and values have a bias each"""
        return Count.right(emb_dim, qkv_bias) - (2 * emb_dim if qkv_bias else 0)

    def qkv_bias_inverted(emb_dim, qkv_bias):
        """the three biases are counted without qkv_bias, and left out with it: it should be the other way round"""
        return Count.right(emb_dim, not qkv_bias)

    def output_bias_only_with_qkv_bias(emb_dim, qkv_bias):
        """without qkv_bias, emb_dim parameters are missing: the output projection has its bias all the same"""
        return Count.right(emb_dim, qkv_bias) - (0 if qkv_bias else emb_dim)

    def brackets(emb_dim, qkv_bias):
        """without qkv_bias attention counts 0: are brackets missing around the if … else?"""
        return Count.right(emb_dim, qkv_bias) - (0 if qkv_bias else 4 * emb_dim**2 + emb_dim)


def _batch(batch_size: int, num_tokens: int, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Return logits of both signs, and IDs."""
    k = torch.arange(batch_size * num_tokens * vocab_size)
    logits = (5 * k**2 + 3 * k) % 17 / 4 - 2
    ids = (3 * k**2 + 4 * k + 1)[: batch_size * num_tokens] % vocab_size
    return logits.view(batch_size, num_tokens, vocab_size), ids.view(batch_size, num_tokens)


class Loss(Exercise, number="9.3", where="section 9.5", asks="one number, a tensor without axes"):
    cases = {
        "two texts of four tokens": _batch(2, 4, 7),
        "three texts of five tokens": _batch(3, 5, 6),
        "one text of two tokens": _batch(1, 2, 9),
    }

    def right(logits, ids):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    def not_shifted(logits, ids):
        """each row is scored on the token that it has just seen: row t predicts token t + 1"""
        return F.cross_entropy(logits.flatten(0, 1), ids.flatten())

    def shifted_the_other_way(logits, ids):
        """shifted, but in the wrong direction: row t is scored on token t − 1, which it has already seen"""
        return F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, :-1].flatten())

    def both_without_the_first(logits, ids):
        """both have lost their first position, so each row is still scored on the token that it has just seen"""
        return F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, 1:].flatten())

    def both_without_the_last(logits, ids):
        """both have lost their last position, so each row is still scored on the token that it has just seen"""
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, :-1].flatten())

    def rolled(logits, ids):
        """the last row is scored on the text's own first token: it has no target, so leave it out"""
        return F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, dims=1).flatten())

    def across_the_boundary(logits, ids):
        """the last row of a text is scored on the first token of the next text: cut before you flatten"""
        return F.cross_entropy(logits.flatten(0, 1)[:-1], ids.flatten()[1:])

    def more_rows_than_targets(logits, ids):
        """there are more rows of logits than targets: the last row of a text has none, so leave it out"""
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    def more_targets_than_rows(logits, ids):
        """there are more targets than rows of logits: the first token of a text is not a target"""
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids.flatten())

    def first_row_only(logits, ids):
        """only the first row of each text counts: every row that has a target should count"""
        return F.cross_entropy(logits[:, 0], ids[:, 1])

    def last_row_only(logits, ids):
        """only one row of each text counts: every row that has a target should count"""
        return F.cross_entropy(logits[:, -2], ids[:, -1])

    def summed(logits, ids):
        """that is the sum: the exercise asks for the mean"""
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")

    def divided_by_all_tokens(logits, ids):
        """the sum is divided by the number of all tokens: divide by the number of targets"""
        return Loss.summed(logits, ids) / ids.numel()

    def summed_for_each_text(logits, ids):
        """the losses of a text are summed: the exercise asks for the mean over all targets"""
        return Loss.summed(logits, ids) / len(ids)

    def first_text_only(logits, ids):
        """only the first text of the batch counts: every text should count"""
        return F.cross_entropy(logits[0, :-1], ids[0, 1:])

    def texts_cut_off(logits, ids):
        """axis 0 is cut, so whole texts are lost: the positions are on axis 1"""
        return F.cross_entropy(logits[:-1].flatten(0, 1), ids[1:].flatten())

    def perplexity(logits, ids):
        """that is the perplexity, e to the power of the loss: the exercise asks for the loss"""
        return Loss.right(logits, ids).exp()

    def softmax_twice(logits, ids):
        """cross_entropy takes logits and applies softmax itself: here softmax is applied twice"""
        return Loss.right(torch.softmax(logits, dim=-1), ids)

    def softmax_of_ids(logits, ids):
        """softmax is taken of IDs: logits come first and IDs second, in your function as in cross_entropy"""
        return F.cross_entropy(ids[:, 1:].flatten(), logits[:, :-1].flatten(0, 1))

    def wrong_axis_order(logits, ids):
        """cross_entropy takes axis 1 as the vocabulary: first flatten texts and positions into one axis"""
        return F.cross_entropy(logits[:, :-1], ids[:, 1:])


class First(
    Exercise, number="9.4", where="section 9.5", asks="a list of four: the loss, and three times True or False"
):
    def right():
        return [math.log(8192), True, False, False]

    def base_2():
        """13 is the logarithm to base 2: the loss uses the natural logarithm"""
        yield [13.0, False, True, False]
        yield [13.0, True, False, False]

    def base_10():
        """that is the logarithm to base 10: use the natural logarithm"""
        for first, last in ((False, True), (False, False), (True, False)):
            yield [math.log10(8192), first, False, last]

    def another_vocabulary():
        """that is ln 50257, for GPT-2's vocabulary: yours has 8,192 tokens"""
        yield [math.log(50257), False, False, False]
        yield [math.log(50257), True, False, False]

    def a_probability():
        """that is the probability of one token: the loss is minus its logarithm"""
        yield [1 / 8192, True, False, False]
        yield [1 / 8192, False, False, False]

    def sign():
        """a probability below 1 has a negative logarithm: the loss is minus the logarithm"""
        return [-math.log(8192), True, False, False]

    def lower_is_better():
        """a loss that is far too low is a sign, too: an untrained model can know nothing"""
        return [math.log(8192), True, False, True]

    def higher_is_fine():
        """a loss that is far too high is a sign, too: the model is sure of wrong tokens"""
        return [math.log(8192), True, True, False]

    def too_strict():
        """a first loss only has to be close: the initial weights are random, and so is the loss"""
        return [math.log(8192), False, False, False]

    def inverted():
        """True means that a loss is as it should be, False that something is wrong"""
        return [math.log(8192), False, True, True]
