"""The exercises of lesson 9, from text to the next word."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.embeddings import TokenAndPositionEmbedding
from utils.exercises import Exercise, Mistake
from utils.gpt import GPTModel
from utils.tokenizer import get_tokenizer
from utils.trace import Trace, trace

# 9.A  A block adds to x. These functions play its parts, each with another effect.

_X = torch.tensor([[[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]]])


def norm0(x: Tensor) -> Tensor:
    return x


def norm1(x: Tensor) -> Tensor:
    return x - 1


def attention(x: Tensor) -> Tensor:
    return 10 * x.cumsum(dim=1)


def norm2(x: Tensor) -> Tensor:
    return 2 * x


def feed_forward(x: Tensor) -> Tensor:
    return x**2


def zeros(x: Tensor) -> Tensor:
    return torch.zeros_like(x)


def _block(x, norm1, attention, norm2, feed_forward):
    x = x + attention(norm1(x))
    return x + feed_forward(norm2(x))


def _attention_replaces(x, norm1, attention, norm2, feed_forward):
    x = attention(norm1(x))
    return x + feed_forward(norm2(x))


def _feed_forward_replaces(x, norm1, attention, norm2, feed_forward):
    x = x + attention(norm1(x))
    return feed_forward(norm2(x))


def _norm_in_the_way(x, norm1, attention, norm2, feed_forward):
    x = norm1(x)
    x = norm2(x + attention(x))
    return x + feed_forward(x)


def _norm_after(x, norm1, attention, norm2, feed_forward):
    x = norm1(x + attention(x))
    return norm2(x + feed_forward(x))


_BLOCK = Exercise(
    reference=_block,
    keeps_arguments=True,
    cases=[(_X, norm1, zeros, norm2, zeros), (_X, norm1, attention, norm2, feed_forward)],
    mistakes=[
        Mistake(
            "attention replaces",
            _attention_replaces,
            "with layers that return only zeros x should pass unchanged, but zeros come out",
        ),
        Mistake(
            "feed-forward replaces",
            _feed_forward_replaces,
            "x now gets past attention, but with layers that return only zeros it is still lost later",
        ),
        Mistake(
            "both replace",
            lambda x, norm1, attention, norm2, feed_forward: feed_forward(norm2(attention(norm1(x)))),
            "now x gets past neither layer: with layers that return only zeros nothing of it is left",
        ),
        Mistake(
            "side by side",
            lambda x, norm1, attention, norm2, feed_forward: x + attention(norm1(x)) + feed_forward(norm2(x)),
            "both are added, but feed_forward gets the x from before attention",
        ),
        Mistake(
            "layer's output normalised",
            lambda x, norm1, attention, norm2, feed_forward: _block(x, attention, norm1, feed_forward, norm2),
            "you normalise each layer's output: normalise its input",
        ),
        Mistake(
            "norms left out",
            lambda x, norm1, attention, norm2, feed_forward: _block(x, norm0, attention, norm0, feed_forward),
            "both are added, but their inputs are not normalised first",
        ),
        Mistake(
            "first sum lost",
            lambda x, norm1, attention, norm2, feed_forward: x + feed_forward(norm2(x + attention(norm1(x)))),
            "the output of attention goes into feed_forward, but is missing from the final sum",
        ),
        Mistake(
            "norm on the residual path",
            _norm_in_the_way,
            "with layers that return only zeros x should pass unchanged, but it comes out normalised: normalise what a "
            "layer gets, not what its output is added to",
        ),
        Mistake(
            "norm after",
            _norm_after,
            "you normalise after adding, as the first transformer did: here a layer's input is normalised",
        ),
    ],
    where="section 9.3",
)

# 9.B  One table, two names. The outcome is a list of complaints.


def _tie_complaints(tie) -> list[str]:
    embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    table = embedding.weight.detach().clone()
    if tie(embedding, head) is ...:
        return ...
    if not torch.equal(embedding.weight, table):
        return ["the embedding has lost its table: only the head should change"]
    if head.weight.shape != table.shape or not torch.equal(head.weight, table):
        return ["right after tie the head's numbers are not those of the embedding"]
    if head.weight is embedding.weight:
        return [] if embedding.weight.requires_grad else ["they share one table, but it is frozen: neither can learn"]
    if head.weight.data_ptr() == embedding.weight.data_ptr():
        return ["the two share memory but are two parameters: the optimizer moves the same numbers twice per step"]
    return ["right after tie the two tables are equal; after one training step they differ"]


def _tie(embedding, head):
    head.weight = embedding.weight


def _copied(embedding, head):
    head.weight = nn.Parameter(embedding.weight.detach().clone())


def _cloned(embedding, head):
    head.weight = embedding.weight.clone()


def _same_memory(embedding, head):
    head.weight.data = embedding.weight.data


def _frozen(embedding, head):
    head.weight = embedding.weight
    head.weight.requires_grad_(False)


def _wrong_way(embedding, head):
    embedding.weight = head.weight


_TIE = Exercise(
    reference=_tie,
    probe=_tie_complaints,
    mistakes=[
        Mistake("copied", _copied, "right after tie the two tables are equal; after one training step they differ"),
        Mistake(
            "same memory, two parameters",
            _same_memory,
            "the two share memory but are still two parameters: the optimizer moves the same numbers twice per step",
        ),
        Mistake("wrong way", _wrong_way, "they are tied, but to the head's table: the embedding has lost its own"),
        Mistake(
            "not a parameter",
            _cloned,
            "torch refuses: a clone, a slice or the layer itself is not a parameter; give the head the embedding's own",
        ),
        Mistake("frozen", _frozen, "they share one table, but it no longer requires a gradient: neither can learn"),
        Mistake("nothing done", lambda embedding, head: embedding.weight, "the head's table is not the embedding's"),
    ],
    where="section 9.4",
)

# 9.C  Beyond the context length. A model with seven tokens and a context length of four plays the part.


def next_logits(ids: Tensor) -> Tensor:
    if ids.shape[-1] > 4:
        raise ValueError(f"input_ids has {ids.shape[-1]} tokens: 1 to 4 (context_length) are allowed")
    best = (ids[..., 0] + 2 * ids[..., -1] + ids.sum(dim=-1) + ids.shape[-1]) % 7
    return F.one_hot(best, 7).float()


def _continue(next_logits, ids, max_new_tokens, context_length):
    for _ in range(max_new_tokens):
        next_ids = next_logits(ids[:, -context_length:]).argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, next_ids], dim=1)
    return ids


_CONTINUE = Exercise(
    reference=_continue,
    cases=[
        (next_logits, torch.tensor([[1, 5]]), 2, 4),
        (next_logits, torch.tensor([[1, 5, 2], [3, 3, 6]]), 6, 4),
        (next_logits, torch.tensor([[6, 1, 2, 2, 4, 3]]), 4, 4),
    ],
    mistakes=[
        Mistake(
            "the first tokens",
            lambda next_logits, ids, max_new_tokens, context_length: _continue(
                lambda whole: next_logits(whole[:, :context_length]), ids, max_new_tokens, 9_999
            ),
            "short texts are right; beyond context_length the same token is repeated again and again",
        ),
        Mistake(
            "not cut",
            lambda next_logits, ids, max_new_tokens, context_length: _continue(next_logits, ids, max_new_tokens, 9_999),
            "the model gets more than context_length tokens and refuses: cut axis 1, the tokens, at every step",
        ),
        Mistake(
            "new tokens only",
            lambda next_logits, ids, max_new_tokens, context_length: _continue(
                next_logits, ids, max_new_tokens, context_length
            )[:, ids.shape[1] :],
            "only the new tokens are returned: the exercise asks for the whole text",
        ),
        Mistake(
            "cut the wrong way",
            lambda next_logits, ids, max_new_tokens, context_length: next_logits(ids[:, context_length:]),
            "nothing is left for the model to see: the last tokens are [:, -context_length:]",
        ),
        Mistake(
            "text cut",
            lambda next_logits, ids, max_new_tokens, context_length: _continue(
                next_logits, ids, max_new_tokens, context_length
            )[:, -context_length - 1 :],
            "every token is right, but the beginning of the text is gone: cut what the model sees, not what you return",
        ),
        Mistake(
            "last token only",
            lambda next_logits, ids, max_new_tokens, context_length: _continue(next_logits, ids, max_new_tokens, 1),
            "the model sees only the last token: it may see context_length of them",
        ),
        Mistake(
            "one too few",
            lambda next_logits, ids, max_new_tokens, context_length: _continue(
                next_logits, ids, max_new_tokens, context_length - 1
            ),
            "the model sees one token fewer than it may",
        ),
    ],
    where="section 9.6",
)

# 9.1  Layer norm.

_ROWS = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 8.0, 1.0]], [[-3.0, 2.0, 0.5, 0.0], [6.0, 1.0, 1.0, 2.0]]])


def _norm(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(dim=-1, keepdim=True)) / (x.var(dim=-1, correction=0, keepdim=True) + eps).sqrt()


def _norm_over(x: Tensor, eps: float, dim) -> Tensor:
    return (x - x.mean(dim=dim, keepdim=True)) / (x.var(dim=dim, correction=0, keepdim=True) + eps).sqrt()


_NORM = Exercise(
    reference=_norm,
    cases=[(_ROWS, 1e-5), (torch.full((2, 4), 5.0), 1e-5), (_ROWS[0], 0.5), (_ROWS[0, 0], 1e-5)],
    mistakes=[
        Mistake(
            "divided by n − 1",
            lambda x, eps: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt(),
            "your variance divides by n − 1, torch's default: correction=0 makes it divide by n",
        ),
        Mistake(
            "over the tokens",
            lambda x, eps: _norm_over(x, eps, -2),
            "you normalise over the tokens, axis −2: normalise each token over its own entries, axis −1",
        ),
        Mistake(
            "over everything",
            lambda x, eps: _norm_over(x, eps, tuple(range(x.dim()))),
            "you normalise over the whole tensor at once: each token has its own mean and variance",
        ),
        Mistake(
            "no square root",
            lambda x, eps: (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + eps),
            "you divide by the variance: divide by its square root",
        ),
        Mistake(
            "eps after the square root",
            lambda x, eps: (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + eps),
            "you add eps to the square root: add it to the variance, before you take the square root",
        ),
        Mistake(
            "n − 1, and eps after the square root",
            lambda x, eps: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps),
            "std divides by n − 1 unless you pass correction=0, and eps belongs under the square root",
        ),
        Mistake(
            "no eps",
            lambda x, eps: (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True),
            "a vector of equal numbers becomes nan: eps is missing",
        ),
        Mistake(
            "mean not subtracted",
            lambda x, eps: x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
            "the mean is not subtracted",
        ),
        Mistake(
            "fixed eps",
            lambda x, eps: _norm(x, 1e-5),
            "your eps is always the same: use the one that the function gets",
        ),
        Mistake(
            "mean square",
            lambda x, eps: x / (x.square().mean(-1, keepdim=True) + eps).sqrt(),
            "you divide by the square root of the mean square: subtract the mean first",
        ),
        Mistake(
            "brackets",
            lambda x, eps: x - x.mean(-1, keepdim=True) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
            "only the mean is divided: put the difference in brackets",
        ),
        Mistake(
            "axis lost",
            lambda x, eps: (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt(),
            "the shapes do not match: the means have lost an axis, so keep it with keepdim=True",
        ),
    ],
    where="section 9.1",
)

# 9.2  Parameters of a block.


def _parameters(emb_dim: int, qkv_bias: bool) -> int:
    attention = 4 * emb_dim**2 + emb_dim + (3 * emb_dim if qkv_bias else 0)
    return attention + 8 * emb_dim**2 + 5 * emb_dim + 4 * emb_dim


def _off_by(difference):
    return lambda emb_dim, qkv_bias: _parameters(emb_dim, qkv_bias) + difference(emb_dim)


_COUNT = Exercise(
    reference=_parameters,
    cases=[(768, False), (768, True), (8, False), (10, True)],
    mistakes=[
        Mistake(
            "weights only",
            lambda emb_dim, qkv_bias: 12 * emb_dim**2,
            "those are the weights of the linear layers: add their biases and the norms",
        ),
        Mistake(
            "only the qkv biases",
            _off_by(lambda e: -6 * e),
            "the biases of the output projection and of the feed-forward network are missing",
        ),
        Mistake(
            "norms forgotten", _off_by(lambda e: -4 * e), "the two norms are missing: each has a scale and a shift"
        ),
        Mistake("one norm", _off_by(lambda e: -2 * e), "one of the two norms is missing, or both lack their shift"),
        Mistake(
            "feed-forward biases forgotten",
            _off_by(lambda e: -5 * e),
            "the biases of the feed-forward network are missing: 4 · emb_dim and emb_dim",
        ),
        Mistake(
            "one feed-forward bias",
            _off_by(lambda e: -4 * e**2 - e),
            "the feed-forward network has two layers, there and back, but you counted only the first",
        ),
        Mistake(
            "not expanded",
            _off_by(lambda e: -6 * e**2 - 3 * e),
            "inside, the feed-forward network has 4 · emb_dim entries",
        ),
        Mistake(
            "output bias forgotten",
            _off_by(lambda e: -e),
            "emb_dim parameters are missing: the bias of the output projection, or of the second feed-forward layer",
        ),
        Mistake(
            "output projection forgotten",
            _off_by(lambda e: -(e**2) - e),
            "attention's output projection is missing: emb_dim · emb_dim and its bias",
        ),
        Mistake(
            "qkv bias always",
            lambda emb_dim, qkv_bias: _parameters(emb_dim, True),
            "you always counted a bias for queries, keys and values: without qkv_bias they have none",
        ),
        Mistake(
            "qkv bias never",
            lambda emb_dim, qkv_bias: _parameters(emb_dim, False),
            "with qkv_bias queries, keys and values have emb_dim more each",
        ),
        Mistake(
            "one qkv bias",
            lambda emb_dim, qkv_bias: _parameters(emb_dim, False) + (emb_dim if qkv_bias else 0),
            "qkv_bias adds a bias to queries, to keys and to values: three, but you counted one",
        ),
        Mistake(
            "qkv bias inverted",
            lambda emb_dim, qkv_bias: _parameters(emb_dim, not qkv_bias),
            "you count the bias of queries, keys and values exactly when there is none",
        ),
    ],
    where="sections 9.2 to 9.4",
)

# 9.3  The loss of a batch.

_LOGITS = ((5 * torch.arange(48) ** 2 + 3 * torch.arange(48)) % 17).view(2, 4, 6) / 4
_IDS = torch.tensor([[1, 4, 0, 5], [2, 2, 3, 1]])


def _loss(logits: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


_LOSS = Exercise(
    reference=_loss,
    cases=[(_LOGITS, _IDS), (_LOGITS[:1, :2], _IDS[:1, :2])],
    mistakes=[
        Mistake(
            "not shifted",
            lambda logits, ids: F.cross_entropy(logits.flatten(0, 1), ids.flatten()),
            "each row is scored on the token that it has just seen: row t predicts token t + 1",
        ),
        Mistake(
            "shifted the other way",
            lambda logits, ids: F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, :-1].flatten()),
            "shifted, but in the wrong direction: row t is scored on token t − 1, which it has already seen",
        ),
        Mistake(
            "both cut the same way",
            lambda logits, ids: F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, 1:].flatten()),
            "both have lost their first position, so each row is still scored on the token that it has just seen",
        ),
        Mistake(
            "rolled",
            lambda logits, ids: F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, dims=1).flatten()),
            "the last row is scored on the text's own first token: it has no target, so leave it out",
        ),
        Mistake(
            "rolled over all texts",
            lambda logits, ids: F.cross_entropy(logits.flatten(0, 1), ids.flatten().roll(-1)),
            "the last row of each text is scored on the first token of another: it has no target, so leave it out",
        ),
        Mistake(
            "across the boundary",
            lambda logits, ids: F.cross_entropy(logits.flatten(0, 1)[:-1], ids.flatten()[1:]),
            "the last row of a text is scored on the first token of the next text: cut before you flatten",
        ),
        Mistake(
            "last row only",
            lambda logits, ids: F.cross_entropy(logits[:, -2], ids[:, -1]),
            "only one row of each text counts: in training every row with a target counts",
        ),
        Mistake(
            "summed",
            lambda logits, ids: F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="sum"),
            "that is the sum: the exercise asks for the mean",
        ),
        Mistake(
            "softmax twice",
            lambda logits, ids: _loss(torch.softmax(logits, dim=-1), ids),
            "cross_entropy takes logits and applies softmax itself: here softmax is applied twice",
        ),
        Mistake(
            "wrong axis order",
            lambda logits, ids: F.cross_entropy(logits[:, :-1], ids[:, 1:]),
            "cross_entropy takes axis 1 as the vocabulary: first flatten texts and positions into one axis",
        ),
    ],
    where="section 9.5",
)

# 9.4  Temperature and top-k.


def _odds(logits: Tensor, temperature: float, top_k: int) -> Tensor:
    values, places = logits.topk(top_k)
    kept = torch.full_like(logits, -torch.inf)
    kept[places] = values
    return torch.softmax(kept / temperature, dim=-1)


_SCORES = torch.tensor([0.5, 2.0, -1.0, 1.0, 0.0])

_ODDS = Exercise(
    reference=_odds,
    keeps_arguments=True,
    cases=[(_SCORES, 1.0, 2), (_SCORES, 0.5, 3), (_SCORES, 2.0, 5), (_SCORES, 3.0, 1)],
    mistakes=[
        Mistake(
            "multiplied",
            lambda logits, temperature, top_k: _odds(logits, 1 / temperature, top_k),
            "a high temperature makes your probabilities more uneven: divide the logits by it",
        ),
        Mistake(
            "temperature forgotten",
            lambda logits, temperature, top_k: _odds(logits, 1.0, top_k),
            "the temperature has no effect",
        ),
        Mistake(
            "top_k forgotten",
            lambda logits, temperature, top_k: torch.softmax(logits / temperature, dim=-1),
            "top_k has no effect: every token can be sampled",
        ),
        Mistake(
            "not renormalised",
            lambda logits, temperature, top_k: (
                torch.softmax(logits / temperature, dim=-1) * (_odds(logits, 1.0, top_k) > 0)
            ),
            "the right tokens have 0, but the others do not sum to 1: hide tokens before softmax",
        ),
        Mistake(
            "hidden with 0",
            lambda logits, temperature, top_k: torch.softmax(
                torch.where(_odds(logits, 1.0, top_k) > 0, logits, 0.0) / temperature, dim=-1
            ),
            "you set the other logits to 0, a score like any other: −inf hides them",
        ),
        Mistake(
            "the lowest",
            lambda logits, temperature, top_k: torch.softmax(
                logits.masked_fill(logits > logits.sort().values[top_k - 1], -torch.inf) / temperature, dim=-1
            ),
            "you keep the top_k lowest logits: keep the highest",
        ),
        Mistake(
            "indices lost",
            lambda logits, temperature, top_k: F.pad(
                torch.softmax(logits.topk(top_k).values / temperature, dim=-1), (0, len(logits) - top_k)
            ),
            "the probabilities are right, but at the first indices instead of at those of their tokens",
        ),
        Mistake(
            "one too few",
            lambda logits, temperature, top_k: torch.softmax(
                logits.masked_fill(logits <= logits.topk(top_k).values[-1], -torch.inf) / temperature, dim=-1
            ),
            "the last of the top_k is lost: hide what is lower than it, not what equals it",
        ),
        Mistake(
            "temperature after softmax",
            lambda logits, temperature, top_k: _odds(logits, 1.0, top_k) / temperature,
            "you divide probabilities by the temperature, so they no longer sum to 1: divide the logits",
        ),
        Mistake(
            "only k numbers",
            lambda logits, temperature, top_k: torch.softmax(logits.topk(top_k).values / temperature, dim=-1),
            "those are the probabilities of the top_k tokens alone: return one per token of the vocabulary, 0 for the "
            "others",
        ),
    ],
    where="section 9.6",
)

# 9.5  Generate until the end.


def last_logits(ids: Tensor) -> Tensor:
    if ids.dim() != 1:
        raise ValueError(f"ids must have shape (num_tokens,), not {tuple(ids.shape)}")
    return next_logits(ids)


def _until(next_logits, ids, end_id, max_new_tokens, context_length):
    for _ in range(max_new_tokens):
        next_id = next_logits(ids[-context_length:]).argmax()
        ids = torch.cat([ids, next_id[None]])
        if next_id == end_id:
            break
    return ids


def _end_left_out(next_logits, ids, end_id, max_new_tokens, context_length):
    written = _until(next_logits, ids, end_id, max_new_tokens, context_length)
    return written[:-1] if len(written) > len(ids) and written[-1] == end_id else written


def _any_end(next_logits, ids, end_id, max_new_tokens, context_length):
    while max_new_tokens and end_id not in ids:
        ids = _until(next_logits, ids, end_id, 1, context_length)
        max_new_tokens -= 1
    return ids


_UNTIL = Exercise(
    reference=_until,
    cases=[
        (last_logits, torch.tensor([1, 5]), 0, 9, 4),
        (last_logits, torch.tensor([1, 5, 2]), 6, 3, 4),
        (last_logits, torch.tensor([3, 0, 1]), 0, 6, 4),
        (last_logits, torch.tensor([6, 1, 2, 2, 4, 3]), 5, 8, 4),
        (last_logits, torch.tensor([2, 2, 4]), 4, 5, 4),
    ],
    mistakes=[
        Mistake(
            "no stop",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, -1, max_new_tokens, context_length
            ),
            "it continues after end_id",
        ),
        Mistake("end left out", _end_left_out, "end_id is missing at the end: append it, then stop"),
        Mistake(
            "end in the given text",
            _any_end,
            "an end_id in the given text keeps it from generating: only a new token may end the loop",
        ),
        Mistake(
            "end in the given text, one token later",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, end_id, 1 if end_id in ids else max_new_tokens, context_length
            ),
            "an end_id in the given text stops it after one token: check only the token just generated",
        ),
        Mistake(
            "given text ends with it",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: (
                ids if ids[-1] == end_id else _until(next_logits, ids, end_id, max_new_tokens, context_length)
            ),
            "a given text that ends with end_id is not continued: generate first, then check the new token",
        ),
        Mistake(
            "given tokens counted",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, end_id, max_new_tokens - len(ids), context_length
            ),
            "max_new_tokens counts only new tokens, but you also count the given ones",
        ),
        Mistake(
            "text cut",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, end_id, max_new_tokens, context_length
            )[-context_length - 1 :],
            "the beginning of the text is gone: cut what the model sees, not what you return",
        ),
        Mistake(
            "not cut",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, end_id, max_new_tokens, 9_999
            ),
            "the model gets more than context_length tokens and refuses",
        ),
        Mistake(
            "new tokens only",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, end_id, max_new_tokens, context_length
            )[len(ids) :],
            "only the new tokens are returned: the exercise asks for the whole text",
        ),
        Mistake(
            "one too few",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, end_id, max_new_tokens - 1, context_length
            ),
            "it generates one token fewer than max_new_tokens",
        ),
        Mistake(
            "one too many",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                next_logits, ids, end_id, max_new_tokens + 1, context_length
            ),
            "it generates one token more than max_new_tokens",
        ),
        Mistake(
            "the first tokens",
            lambda next_logits, ids, end_id, max_new_tokens, context_length: _until(
                lambda _: next_logits(ids[:context_length]), ids, end_id, max_new_tokens, context_length
            ),
            "the model always sees the same first tokens: give it the last ones, including those just generated",
        ),
    ],
    where="section 9.6",
)

# 9.6 and 9.7  Five broken runs, and their causes.


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


def _turn_mask(model: GPTModel, text: str) -> Trace:
    model.blocks[0].attention.__class__ = _UpsideDown
    return trace(model, text)


def _lose_blank(model: GPTModel, text: str) -> Trace:
    return trace(model, text.lstrip())


def _count_from_one(model: GPTModel, text: str) -> Trace:
    model.embedding.__class__ = _FromOne
    return trace(model, text)


def _mix_up_tokenizers(model: GPTModel, text: str) -> Trace:
    return trace(model, text, _OtherNumbers())


_FAULTS = {"A": _forget_eval, "B": _turn_mask, "C": _lose_blank, "D": _count_from_one, "E": _mix_up_tokenizers}


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


_STATIONS = Exercise(
    reference=["input_embeddings", "block_1", "text", "position_embeddings", "token_ids"],
    mistakes=[
        Mistake(
            "another text",
            ["text"] * 5,
            "all five differ at the text: did you trace your good run on the same text, with its leading space?",
        ),
        Mistake(
            "the end",
            ["next_token"] * 5,
            "that is the end, where every fault shows last: look for the first difference",
        ),
        Mistake(
            "the good run without its space",
            ["text", "text", None, "text", "text"],
            "your good run was made without the leading space: C, which lost it, then looks right",
        ),
        Mistake(
            "eval and positions",
            ["position_embeddings", "block_1", "text", "input_embeddings", "token_ids"],
            "A and D are swapped",
        ),
        Mistake(
            "the consequence of the IDs",
            ["input_embeddings", "block_1", "text", "position_embeddings", "batch"],
            "all right except E: the batch is made from something that already differs",
        ),
        Mistake(
            "the consequence of the positions",
            ["input_embeddings", "block_1", "text", "input_embeddings", "token_ids"],
            "all right except D: the sum differs because one of its two parts does",
        ),
        Mistake(
            "the consequence of the text",
            ["input_embeddings", "block_1", "token_ids", "position_embeddings", "token_ids"],
            "all right except C: the IDs differ because something before them does",
        ),
    ],
    where="section 9.8",
)

_CAUSES = Exercise(
    reference=[1, 4, 2, 0, 3],
    mistakes=[
        Mistake("counted from 1", [2, 5, 3, 1, 4], "your numbers are one too high: the list is counted from 0"),
        Mistake(
            "eval and positions",
            [0, 4, 2, 1, 3],
            "A and D are swapped: dropout comes after the positions are added",
        ),
        Mistake(
            "the wrong direction",
            [3, 0, 2, 4, 1],
            "that is the run for each cause: give the cause for each run, A to E",
        ),
        Mistake(
            "space and tokenizer",
            [1, 4, 3, 0, 2],
            "C and E are swapped: a lost space shows in the text itself, before any tokenizer sees it",
        ),
        Mistake(
            "mask and head",
            [1, 5, 2, 0, 3],
            "all right except B: a different head would first show at logits",
        ),
        Mistake(
            "eval and head",
            [5, 4, 2, 0, 3],
            "all right except A: a different head would first show at logits, and A differs long before",
        ),
    ],
    where="section 9.8",
)

# 9.8  First losses. The answer lies between ln 8192 = 9.0109 and 9.01, so that either will do.

_LN = 9.0105

_FIRST = Exercise(
    reference=[_LN, True, False, False],
    mistakes=[
        Mistake(
            "base 2",
            [13.0, False, True, False],
            "13 is the logarithm to base 2: the loss uses the natural logarithm",
        ),
        Mistake("base 10", [3.91, False, False, True], "that is the logarithm to base 10: use the natural logarithm"),
        Mistake(
            "lower is better",
            [_LN, True, False, True],
            "an untrained model knows nothing: 4.10 would be right for 60 tokens, but not for 8,192",
        ),
        Mistake(
            "tensor",
            [torch.tensor(_LN), True, False, False],
            "the right loss, but as a tensor: .item() turns it into a number",
        ),
        Mistake(
            "too strict",
            [_LN, False, False, False],
            "9.05 is close enough: the initial weights are random, and so are the targets",
        ),
        Mistake(
            "sign",
            [-_LN, True, False, False],
            "a probability below 1 has a negative logarithm: the loss is minus the logarithm",
        ),
    ],
    where="section 9.5",
)

# 9.9  How many tokens go through the model, step by step, with a cache.


def _through(num_tokens: int, max_new_tokens: int, context_length: int) -> list[int]:
    lengths = [num_tokens + step for step in range(max_new_tokens)]
    return [min(length, context_length) if length == num_tokens or length > context_length else 1 for length in lengths]


_THROUGH = Exercise(
    reference=_through,
    cases=[(4, 5, 16), (4, 5, 6), (20, 3, 16), (16, 2, 16), (3, 0, 8), (1, 4, 8)],
    mistakes=[
        Mistake(
            "no cache",
            lambda num_tokens, max_new_tokens, context_length: [
                min(num_tokens + step, context_length) for step in range(max_new_tokens)
            ],
            "that is the work without a cache: the whole window at every step",
        ),
        Mistake(
            "neither cache nor window",
            lambda num_tokens, max_new_tokens, context_length: [num_tokens + step for step in range(max_new_tokens)],
            "that is the work without a cache, and with more tokens than the window holds",
        ),
        Mistake(
            "window forgotten",
            lambda num_tokens, max_new_tokens, context_length: _through(num_tokens, max_new_tokens, 9_999),
            "beyond context_length the window moves: nothing cached is valid now, so the whole window goes through",
        ),
        Mistake(
            "kept beyond the window",
            lambda num_tokens, max_new_tokens, context_length: [
                min(num_tokens, context_length),
                *[1] * (max_new_tokens - 1),
            ][:max_new_tokens],
            "one token per step is right only while the whole text fits into the window",
        ),
        Mistake(
            "text not read",
            lambda num_tokens, max_new_tokens, context_length: [
                1 if num_tokens + step <= context_length else context_length for step in range(max_new_tokens)
            ],
            "the first step has to read the whole text: nothing is cached yet",
        ),
        Mistake(
            "window one too short",
            lambda num_tokens, max_new_tokens, context_length: [
                context_length if length >= context_length else count
                for length, count in zip(
                    range(num_tokens, num_tokens + max_new_tokens), _through(num_tokens, max_new_tokens, 9_999)
                )
            ],
            "a text of exactly context_length tokens still fits: the window moves only after that",
        ),
        Mistake(
            "one step too many",
            lambda num_tokens, max_new_tokens, context_length: _through(num_tokens, max_new_tokens + 1, context_length),
            "there are max_new_tokens steps: reading the text is part of the first",
        ),
        Mistake(
            "the sum",
            lambda num_tokens, max_new_tokens, context_length: sum(
                _through(num_tokens, max_new_tokens, context_length)
            ),
            "that is all the work in one number: return a list with one number per step",
        ),
    ],
    where="section 9.7",
)

EXERCISES = {
    "9.A": _BLOCK,
    "9.B": _TIE,
    "9.C": _CONTINUE,
    "9.1": _NORM,
    "9.2": _COUNT,
    "9.3": _LOSS,
    "9.4": _ODDS,
    "9.5": _UNTIL,
    "9.6": _STATIONS,
    "9.7": _CAUSES,
    "9.8": _FIRST,
    "9.9": _THROUGH,
}
