"""The exercises of lesson 9, from text to the next word."""

import copy
import itertools
import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.embeddings import TokenAndPositionEmbedding
from utils.exercises import Exercise, demand
from utils.exercises.values import same
from utils.gpt import GPTModel
from utils.tokenizer import get_tokenizer
from utils.trace import Trace, trace

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

    def no_shortcuts(x, norm1, attention, norm2, feed_forward):
        """neither output is added to anything: with layers that return only zeros, x should pass unchanged"""
        return feed_forward(norm2(attention(norm1(x))))

    def only_attention(x, norm1, attention, norm2, feed_forward):
        """attention's output is added to x, but feed_forward's is missing from what you return"""
        return x + attention(norm1(x))

    def only_feed_forward(x, norm1, attention, norm2, feed_forward):
        """feed_forward's output is added to x, but attention's is missing from what you return"""
        return x + feed_forward(norm2(x))

    def one_shortcut(x, norm1, attention, norm2, feed_forward):
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
        """feed_forward gets norm1 of the sum: before it comes norm2"""
        return Block.right(x, norm1, attention, norm1, feed_forward)

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


# 9.C and 9.5: a function plays the model. What it predicts depends on each token and on its position.


def _model(context_length: int, vocab_size: int, axes: int) -> Callable[[Tensor], Tensor]:
    def next_logits(ids: Tensor) -> Tensor:
        num_tokens = ids.shape[-1]
        if ids.dim() != axes:
            allowed = "(batch_size, num_tokens)" if axes == 2 else "(num_tokens,)"
            raise ValueError(f"ids must have shape {allowed}, not {tuple(ids.shape)}")
        if not 1 <= num_tokens <= context_length:
            raise ValueError(f"ids has {num_tokens} tokens: 1 to {context_length} (context_length) are allowed")
        best = ((ids * torch.arange(1, num_tokens + 1)).sum(dim=-1, keepdim=True) + num_tokens) % vocab_size
        return -1.0 - (torch.arange(vocab_size) - best).abs()

    return next_logits


def _generated(next_logits, ids, max_new_tokens, seen: Callable[[Tensor], Tensor], end_id: int = -1) -> Tensor:
    """Continue a text or a batch, with what the model sees of it at each step."""
    for _ in range(max_new_tokens):
        new = next_logits(seen(ids)).argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, new], dim=-1)
        if (new == end_id).all():
            break
    return ids


class Continue(Exercise, number="9.C", where="section 9.6", asks="a tensor of the whole texts"):
    cases = {
        "a short text": (_model(5, 7, axes=2), torch.tensor([[3, 1]]), 3, 5),
        "two texts": (_model(4, 11, axes=2), torch.tensor([[2, 9, 5], [8, 3, 10]]), 6, 4),
        "a text longer than context_length": (_model(6, 9, axes=2), torch.tensor([[6, 1, 8, 2, 4, 3, 0, 5]]), 5, 6),
    }

    def right(next_logits, ids, max_new_tokens, context_length):
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[:, -context_length:])

    def the_first_tokens(next_logits, ids, max_new_tokens, context_length):
        """short texts are right; beyond context_length the same token is repeated again and again"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[:, :context_length])

    def not_cut(next_logits, ids, max_new_tokens, context_length):
        """the model gets more than context_length tokens and refuses: at every step, cut axis 1 to the last ones"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids)

    def always_the_same_tokens(next_logits, ids, max_new_tokens, context_length):
        """the model sees the same tokens at every step: it should also see those just generated"""
        return _generated(next_logits, ids, max_new_tokens, lambda _: ids[:, -context_length:])

    def last_token_only(next_logits, ids, max_new_tokens, context_length):
        """the model sees only the last token: it may see context_length of them"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[:, -1:])

    def newest_token_unseen(next_logits, ids, max_new_tokens, context_length):
        """the model does not see the newest token"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[:, -context_length:-1])

    def one_too_few(next_logits, ids, max_new_tokens, context_length):
        """the model sees one token fewer than it may"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[:, -context_length + 1 :])

    def text_cut(next_logits, ids, max_new_tokens, context_length):
        """every token is right, but the beginning of the text is gone: cut what the model sees, not what you return"""
        return Continue.right(next_logits, ids, max_new_tokens, context_length)[:, -context_length - 1 :]

    def new_tokens_only(next_logits, ids, max_new_tokens, context_length):
        """only the new tokens are returned: the exercise asks for the whole text"""
        return Continue.right(next_logits, ids, max_new_tokens, context_length)[:, ids.shape[1] :]


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


class Count(Exercise, number="9.2", where="sections 9.2 to 9.4", asks="one number, all parameters together"):
    cases = [(768, False), (768, True), (8, False), (10, True)]

    def right(emb_dim, qkv_bias):
        return 12 * emb_dim**2 + (13 if qkv_bias else 10) * emb_dim

    def weights_only(emb_dim, qkv_bias):
        """12 · emb_dim² are the weights of the linear layers: add their biases and the norms"""
        return 12 * emb_dim**2

    def biases_forgotten(emb_dim, qkv_bias):
        """6 · emb_dim are missing: as many as the biases of the output projection and the feed-forward layer have"""
        return Count.right(emb_dim, qkv_bias) - 6 * emb_dim

    def norms_forgotten(emb_dim, qkv_bias):
        """4 · emb_dim are missing: as many as the two norms have, or the wide bias of the feed-forward layer"""
        return Count.right(emb_dim, qkv_bias) - 4 * emb_dim

    def feed_forward_biases_forgotten(emb_dim, qkv_bias):
        """5 · emb_dim are missing: as many as the two biases of the feed-forward layer have"""
        return Count.right(emb_dim, qkv_bias) - 5 * emb_dim

    def half_the_norms(emb_dim, qkv_bias):
        """2 · emb_dim are missing: as many as one norm has, or the shifts of both"""
        return Count.right(emb_dim, qkv_bias) - 2 * emb_dim

    def one_bias_forgotten(emb_dim, qkv_bias):
        """emb_dim are missing: as many as the bias of the output projection has, or the feed-forward layer's second"""
        return Count.right(emb_dim, qkv_bias) - emb_dim

    def output_projection_forgotten(emb_dim, qkv_bias):
        """emb_dim² + emb_dim are missing: as many as attention's output projection has"""
        return Count.right(emb_dim, qkv_bias) - emb_dim**2 - emb_dim

    def not_expanded(emb_dim, qkv_bias):
        """6 · emb_dim² + 3 · emb_dim are missing: inside, the feed-forward layer has 4 · emb_dim entries"""
        return Count.right(emb_dim, qkv_bias) - 6 * emb_dim**2 - 3 * emb_dim

    def third_norm(emb_dim, qkv_bias):
        """2 · emb_dim too many, as many as one norm has: a block has two norms"""
        return Count.right(emb_dim, qkv_bias) + 2 * emb_dim

    def both_biases_wide(emb_dim, qkv_bias):
        """3 · emb_dim too many: the feed-forward layer has a bias of 4 · emb_dim, and one of emb_dim"""
        return Count.right(emb_dim, qkv_bias) + 3 * emb_dim

    def qkv_bias_always(emb_dim, qkv_bias):
        """qkv_bias makes no difference: without it, queries, keys and values have no bias"""
        return Count.right(emb_dim, True)

    def qkv_bias_never(emb_dim, qkv_bias):
        """qkv_bias makes no difference: with it, queries, keys and values have emb_dim more each"""
        return Count.right(emb_dim, False)

    def one_qkv_bias(emb_dim, qkv_bias):
        """with qkv_bias, 2 · emb_dim are missing: queries, keys and values have a bias each"""
        return Count.right(emb_dim, qkv_bias) - (2 * emb_dim if qkv_bias else 0)

    def qkv_bias_inverted(emb_dim, qkv_bias):
        """the three biases are counted without qkv_bias, and left out with it: it should be the other way round"""
        return Count.right(emb_dim, not qkv_bias)

    def output_bias_only_with_qkv_bias(emb_dim, qkv_bias):
        """without qkv_bias, emb_dim are missing: the output projection has its bias all the same"""
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

    def softmax_twice(logits, ids):
        """cross_entropy takes logits and applies softmax itself: here softmax is applied twice"""
        return Loss.right(torch.softmax(logits, dim=-1), ids)

    def softmax_of_ids(logits, ids):
        """softmax is taken of IDs: logits come first and IDs second, in your function as in cross_entropy"""
        return F.cross_entropy(ids[:, 1:].flatten(), logits[:, :-1].flatten(0, 1))

    def wrong_axis_order(logits, ids):
        """cross_entropy takes axis 1 as the vocabulary: first flatten texts and positions into one axis"""
        return F.cross_entropy(logits[:, :-1], ids[:, 1:])


class Probabilities(Exercise, number="9.4", where="section 9.6", asks="a tensor of shape (vocab_size,)"):
    cases = {
        "temperature 1 and top_k 2": (torch.tensor([0.5, 2.0, -1.0, 1.0, 0.0]), 1.0, 2),
        "temperature 0.5 and top_k 4": (torch.tensor([-2.0, 1.5, 0.0, -0.5, 0.5, -3.0, -1.0]), 0.5, 4),
        "negative logits": (torch.tensor([-3.0, -0.5, -2.5, -1.0, -4.0, -2.0]) - 200, 3.0, 3),
        "top_k 4 of 4 tokens": (torch.tensor([0.0, -1.0, 2.0, 0.5]), 2.0, 4),
    }
    edges = {"top_k 1": (torch.tensor([0.0, -1.0, 3.0]), 1.5, 1)}

    def right(logits, temperature, top_k):
        values, indices = logits.topk(top_k)
        kept = torch.full_like(logits, -torch.inf)
        kept[indices] = values
        return torch.softmax(kept / temperature, dim=-1)

    def multiplied(logits, temperature, top_k):
        """a high temperature makes your probabilities more uneven: divide the logits by it"""
        return Probabilities.right(logits, 1 / temperature, top_k)

    def temperature_forgotten(logits, temperature, top_k):
        """the temperature has no effect"""
        return Probabilities.right(logits, 1.0, top_k)

    def top_k_forgotten(logits, temperature, top_k):
        """top_k has no effect: every token can be sampled"""
        return torch.softmax(logits / temperature, dim=-1)

    def not_renormalised(logits, temperature, top_k):
        """the right tokens have 0, but the others do not sum to 1: hide tokens before softmax"""
        kept = Probabilities.right(logits, temperature, top_k) > 0
        return torch.softmax(logits / temperature, dim=-1) * kept

    def hidden_with_0(logits, temperature, top_k):
        """the logits of the other tokens count as 0, a score like any other: −inf hides them"""
        kept = Probabilities.right(logits, temperature, top_k) > 0
        return torch.softmax(logits * kept / temperature, dim=-1)

    def top_k_hidden(logits, temperature, top_k):
        """the top_k tokens are hidden and the others kept: it should be the other way round"""
        hidden = Probabilities.right(logits, temperature, top_k) > 0
        return torch.softmax(logits.masked_fill(hidden, -torch.inf) / temperature, dim=-1)

    def lowest_kept(logits, temperature, top_k):
        """the top_k lowest tokens are kept, where the highest should be"""
        hidden = logits > logits.sort().values[top_k - 1]
        return torch.softmax(logits.masked_fill(hidden, -torch.inf) / temperature, dim=-1)

    def first_kept(logits, temperature, top_k):
        """the first top_k tokens of the vocabulary are kept, where those with the highest logits should be"""
        hidden = torch.arange(len(logits)) >= top_k
        return torch.softmax(logits.masked_fill(hidden, -torch.inf) / temperature, dim=-1)

    def in_order_of_size(logits, temperature, top_k):
        """the probabilities are right, but in order of size, not at the indices of their tokens"""
        return Probabilities.right(logits, temperature, top_k).sort(descending=True).values

    def one_too_few(logits, temperature, top_k):
        """the lowest of the top_k tokens has 0: exactly top_k tokens should be kept"""
        hidden = logits <= logits.topk(top_k).values[-1]
        return torch.softmax(logits.masked_fill(hidden, -torch.inf) / temperature, dim=-1)

    def temperature_after_softmax(logits, temperature, top_k):
        """you divide probabilities by the temperature, so they no longer sum to 1: divide the logits"""
        return Probabilities.right(logits, 1.0, top_k) / temperature

    def only_k_numbers(logits, temperature, top_k):
        """those are the probabilities of the top_k tokens alone: return one per token, 0 for the others"""
        return torch.softmax(logits.topk(top_k).values / temperature, dim=-1)


class Until(Exercise, number="9.5", where="section 9.6", asks="a tensor of the whole text"):
    cases = {
        "a text that end_id ends": (_model(3, 7, axes=1), torch.tensor([1, 5]), 0, 9, 3),
        "a text that max_new_tokens ends": (_model(4, 11, axes=1), torch.tensor([1, 5, 2]), 3, 3, 4),
        "a given text that begins with end_id": (_model(5, 8, axes=1), torch.tensor([3, 6, 1]), 3, 7, 5),
        "a text longer than context_length": (
            _model(6, 997, axes=1),
            torch.tensor([6, 1, 2, 7, 4, 3, 9, 5]),
            625,  # above 256, where `is` no longer happens to compare numbers
            12,
            6,
        ),
        "a text that its first new token ends": (_model(5, 9, axes=1), torch.tensor([2, 4, 1]), 7, 6, 5),
        "a given text that ends with end_id": (_model(3, 10, axes=1), torch.tensor([2, 7, 4]), 4, 8, 3),
    }

    def right(next_logits, ids, end_id, max_new_tokens, context_length):
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[-context_length:], end_id)

    def no_stop(next_logits, ids, end_id, max_new_tokens, context_length):
        """it continues after end_id"""
        return Until.right(next_logits, ids, -1, max_new_tokens, context_length)

    def end_left_out(next_logits, ids, end_id, max_new_tokens, context_length):
        """end_id is missing at the end: stop, but return it, too"""
        text = Until.right(next_logits, ids, end_id, max_new_tokens, context_length)
        return text[:-1] if text[-1] == end_id else text

    def end_in_the_given_text(next_logits, ids, end_id, max_new_tokens, context_length):
        """an end_id in the given text keeps it from generating: only a new token may end the loop"""
        return ids if end_id in ids else Until.right(next_logits, ids, end_id, max_new_tokens, context_length)

    def end_anywhere(next_logits, ids, end_id, max_new_tokens, context_length):
        """an end_id in the given text ends the loop after one step: only a new token may end it"""
        steps = 1 if end_id in ids else max_new_tokens
        return Until.right(next_logits, ids, end_id, steps, context_length)

    def end_of_the_given_text(next_logits, ids, end_id, max_new_tokens, context_length):
        """a given text that ends with end_id is not continued: generate first, then check the new token"""
        return ids if ids[-1] == end_id else Until.right(next_logits, ids, end_id, max_new_tokens, context_length)

    def only_the_last_token_counts(next_logits, ids, end_id, max_new_tokens, context_length):
        """max_new_tokens has no effect, and a given text that ends with end_id is not continued"""
        return Until.end_of_the_given_text(next_logits, ids, end_id, 99, context_length)

    def given_tokens_counted(next_logits, ids, end_id, max_new_tokens, context_length):
        """max_new_tokens counts only new tokens, but you also count the given ones"""
        return Until.right(next_logits, ids, end_id, max_new_tokens - len(ids), context_length)

    def no_limit(next_logits, ids, end_id, max_new_tokens, context_length):
        """max_new_tokens has no effect: only end_id ends the text"""
        return Until.right(next_logits, ids, end_id, 99, context_length)

    def one_too_many(next_logits, ids, end_id, max_new_tokens, context_length):
        """it generates one token more than max_new_tokens"""
        return Until.right(next_logits, ids, end_id, max_new_tokens + 1, context_length)

    def the_first_tokens(next_logits, ids, end_id, max_new_tokens, context_length):
        """a text longer than context_length shows the model only its first tokens: give it the last ones"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[:context_length], end_id)

    def not_cut(next_logits, ids, end_id, max_new_tokens, context_length):
        """the model gets more than context_length tokens and refuses: at every step, show it only the last ones"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids, end_id)

    def always_the_same_tokens(next_logits, ids, end_id, max_new_tokens, context_length):
        """the model sees the same tokens at every step: it should also see those just generated"""
        return _generated(next_logits, ids, max_new_tokens, lambda _: ids[-context_length:], end_id)

    def one_seen_too_few(next_logits, ids, end_id, max_new_tokens, context_length):
        """the model sees one token fewer than it may"""
        return _generated(next_logits, ids, max_new_tokens, lambda ids: ids[-context_length + 1 :], end_id)

    def new_tokens_only(next_logits, ids, end_id, max_new_tokens, context_length):
        """only the new tokens are returned: the exercise asks for the whole text"""
        return Until.right(next_logits, ids, end_id, max_new_tokens, context_length)[len(ids) :]


# 9.6 and 9.7: five broken runs, and their causes.


class _FromOne(TokenAndPositionEmbedding):
    def forward(self, input_ids: Tensor, start: int = 0) -> Tensor:
        return super().forward(input_ids, start + 1)


class _UpsideDown(MultiHeadAttention):
    def forward(self, x: Tensor, cache=None) -> Tensor:
        queries, keys, values = (self.split_heads(W(x)) for W in (self.W_query, self.W_key, self.W_value))
        future = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(diagonal=1)
        heads = F.scaled_dot_product_attention(queries, keys, values, attn_mask=future)
        return self.out_proj(heads.transpose(-3, -2).flatten(-2))


class _OtherNumbers:
    """GPT-2's tokens with other IDs, as another vocabulary would number them."""

    def encode(self, text: str) -> list[int]:
        return [(token_id + 1_000) % 50_257 for token_id in get_tokenizer().encode_ordinary(text)]

    def decode(self, ids: list[int]) -> str:
        return get_tokenizer().decode([(token_id - 1_000) % 50_257 for token_id in ids])


def _forget_eval(model: GPTModel, text: str) -> Trace:
    return trace(model.train(), text)


def _reverse_mask(model: GPTModel, text: str) -> Trace:
    model.blocks[0].attention.__class__ = _UpsideDown
    return trace(model, text)


def _lose_space(model: GPTModel, text: str) -> Trace:
    return trace(model, text.lstrip())


def _count_from_one(model: GPTModel, text: str) -> Trace:
    model.embedding.__class__ = _FromOne
    return trace(model, text)


def _mix_up_tokenizers(model: GPTModel, text: str) -> Trace:
    return trace(model, text, _OtherNumbers())


_FAULTS = {"A": _forget_eval, "B": _reverse_mask, "C": _lose_space, "D": _count_from_one, "E": _mix_up_tokenizers}


def sealed_run(letter: str, model: GPTModel, text: str) -> Trace:
    """Return the trace of a run with a fault for the learner to find; the model itself is left alone.

    Args:
        letter: which of the broken runs, "A" to "E".
        model: a model in eval mode.
        text: begins with a space, and is at least one token shorter than the model's context length.

    Raises:
        ValueError: there is no such run.
    """
    if letter not in _FAULTS:
        raise ValueError(f"letter is {letter!r}: there are {', '.join(_FAULTS)}")
    with torch.random.fork_rng(devices=[]):
        return _FAULTS[letter](copy.deepcopy(model), text)


def _two_swapped(items: list) -> Iterator[list]:
    for one, other in itertools.combinations(range(len(items)), 2):
        swapped = list(items)
        swapped[one], swapped[other] = items[other], items[one]
        yield swapped


class Stations(Exercise, number="9.6", where="section 9.8", asks="a list of five names"):
    def right():
        return ["input_embeddings", "block_1", "text", "position_embeddings", "token_ids"]

    def two_swapped():
        """two of the five are swapped"""
        yield from _two_swapped(Stations.right())

    def order_of_the_route():
        """that is the order of the route: list the stations in the order of the runs, A to E"""
        return ["text", "token_ids", "position_embeddings", "input_embeddings", "block_1"]

    def another_text():
        """all five differ at the text: did you trace your good run on the same text, with its leading space?"""
        return ["text"] * 5

    def the_end():
        """that is the end of the route: find the first station that differs"""
        yield from ([station] * 5 for station in ("final_norm", "logits", "next_token"))

    def the_good_run_without_its_space():
        """was your good run made without the leading space? Trace it on the same text as the broken runs"""
        return ["text", "text", None, "text", "text"]

    def spaces_for_underscores():
        """write the names as a trace does, with underscores"""
        return [name.replace("_", " ") for name in Stations.right()]

    def the_consequence_of_the_positions():
        """you name input_embeddings twice: in one of these runs, what it is the sum of differs already"""
        return ["input_embeddings" if name == "position_embeddings" else name for name in Stations.right()]

    def the_consequence_of_the_text():
        """you name token_ids twice: in one of these runs, what the IDs are made from differs already"""
        return ["token_ids" if name == "text" else name for name in Stations.right()]


class Causes(Exercise, number="9.7", where="section 9.8", asks="a list of five numbers"):
    def right():
        return [1, 4, 2, 0, 3]

    def two_swapped():
        """two of the five are swapped"""
        yield from _two_swapped(Causes.right())

    def counted_from_1():
        """your numbers are one too high: the list is counted from 0"""
        return [2, 5, 3, 1, 4]

    def run_for_each_cause():
        """that is the run for each cause, or E to A: give the cause of each run, from A to E"""
        yield [3, 0, 2, 4, 1]
        yield ["D", "A", "C", "E", "B"]

    def the_head():
        """cause 5, another head, would first show at logits: does any run differ there first?"""
        for run in range(5):
            yield [5 if other == run else cause for other, cause in enumerate(Causes.right())]


class First(
    Exercise, number="9.8", where="section 9.5", asks="a list of four: a number, and three times True or False"
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


class Through(Exercise, number="9.9", where="section 9.7", asks="a list of numbers, one per step"):
    cases = [(4, 5, 16), (4, 5, 6), (20, 3, 16), (12, 2, 12), (2, 9, 7), (1, 4, 8)]
    edges = [(3, 0, 8)]

    def right(num_tokens, max_new_tokens, context_length):
        lengths = range(num_tokens, num_tokens + max_new_tokens)
        return [context_length if n > context_length else num_tokens if n == num_tokens else 1 for n in lengths]

    def no_cache(num_tokens, max_new_tokens, context_length):
        """that is the work without a cache: the whole window at every step"""
        return [min(num_tokens + step, context_length) for step in range(max_new_tokens)]

    def neither_cache_nor_window(num_tokens, max_new_tokens, context_length):
        """that is the work without a cache, and without a window: the whole text at every step"""
        return [num_tokens + step for step in range(max_new_tokens)]

    def window_forgotten(num_tokens, max_new_tokens, context_length):
        """beyond context_length the window moves: nothing cached is valid now, so the whole window goes through"""
        return Through.right(num_tokens, max_new_tokens, 9_999)

    def kept_beyond_the_window(num_tokens, max_new_tokens, context_length):
        """one token per step is right only while the whole text fits into the window"""
        return Through.right(min(num_tokens, context_length), max_new_tokens, 9_999)

    def first_step_too_long(num_tokens, max_new_tokens, context_length):
        """the first step sends the whole text, even if it is longer than the window"""
        return [num_tokens, *Through.right(num_tokens, max_new_tokens, context_length)[1:]]

    def first_step_too_short(num_tokens, max_new_tokens, context_length):
        """the first step sends one token: nothing is cached yet, so it should send all that the model may see"""
        return [context_length if num_tokens + step > context_length else 1 for step in range(max_new_tokens)]

    def later_steps_too_long(num_tokens, max_new_tokens, context_length):
        """beyond context_length more tokens go through than the window holds"""
        lengths = range(num_tokens + 1, num_tokens + max_new_tokens)
        return [min(num_tokens, context_length), *[n if n > context_length else 1 for n in lengths]]

    def window_one_too_short(num_tokens, max_new_tokens, context_length):
        """a text of exactly context_length tokens still fits: the window moves only after that"""
        lengths = range(num_tokens, num_tokens + max_new_tokens)
        return [context_length if n >= context_length else num_tokens if n == num_tokens else 1 for n in lengths]

    def a_step_for_nothing(num_tokens, max_new_tokens, context_length):
        """for max_new_tokens = 0 there is no step: the list should be empty"""
        return Through.right(num_tokens, max(max_new_tokens, 1), context_length)
