"""The exercises of lesson 10, from text to text."""

import copy
import itertools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from utils.attention import MultiHeadAttention
from utils.embeddings import TokenAndPositionEmbedding
from utils.exercises import Exercise, demand
from utils.gpt import GPTModel
from utils.tokenizer import get_tokenizer
from utils.trace import Trace, trace

# 10.A and 10.2: a function plays the model. What it predicts depends on each token and on its position.


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


class Continue(Exercise, number="10.A", where="section 10.5", asks="a tensor of the whole texts"):
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


# 10.B: a function with a cache plays the model. What it predicts depends on every token and position in the cache.


class _Cached:
    """Counts the tokens that go through it; the cache is a list of pairs of ID and position."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size, self.count = vocab_size, 0

    def __call__(self, ids: Tensor, positions: Tensor, cache: list) -> Tensor:
        if ids.dim() != 1 or len(ids) == 0:
            raise ValueError(f"ids must have shape (num_tokens,), with a token or more, not {tuple(ids.shape)}")
        if positions.shape != ids.shape:
            raise ValueError(f"positions has shape {tuple(positions.shape)}, but ids {tuple(ids.shape)}")
        self.count += len(ids)
        cache.extend(zip(ids.tolist(), positions.tolist()))
        best = sum((token_id + 1) * (position + 1) ** 2 for token_id, position in cache) % self.vocab_size
        return -1.0 - (torch.arange(self.vocab_size) - best).abs()


def _generated_with_cache(next_logits, ids, max_new_tokens, step: Callable, keep: bool = True) -> Tensor:
    """Continue a text; `step` says which IDs go through the model, at which positions, from the text and `unseen`."""
    cache, unseen = [], ids
    for _ in range(max_new_tokens):
        new = next_logits(*step(ids, unseen), cache).argmax()[None]
        cache = cache if keep else []
        ids, unseen = torch.cat([ids, new]), new
    return ids


class WithCache(Exercise, number="10.B", where="section 10.6", asks="a tensor of the whole text"):
    cases = {
        "a text of two tokens": (_Cached(11), torch.tensor([3, 8]), 4),
        "a text of five tokens": (_Cached(101), torch.tensor([2, 9, 5, 80, 3]), 6),
        "a text of one token": (_Cached(37), torch.tensor([30]), 5),
    }
    edges = {"no new token": (_Cached(7), torch.tensor([3, 1]), 0)}

    def call(answer, next_logits, ids, max_new_tokens):
        num_tokens = len(ids)
        text = answer(next_logits, ids, max_new_tokens)
        if text is ... or not isinstance(text, Tensor) or text.shape != (num_tokens + max_new_tokens,):
            return text
        whole = sum(range(num_tokens, num_tokens + max_new_tokens))  # the work without a cache
        demand(
            max_new_tokens < 2 or next_logits.count != whole,
            "all tokens go through the model at every step: after the first step, send only the new one",
        )
        return text

    def right(next_logits, ids, max_new_tokens):
        return _generated_with_cache(
            next_logits, ids, max_new_tokens, lambda ids, new: (new, torch.arange(len(ids) - len(new), len(ids)))
        )

    def positions_restart(next_logits, ids, max_new_tokens):
        """the first new token is right; after it every new token goes in at position 0, as if nothing came before it"""
        return _generated_with_cache(next_logits, ids, max_new_tokens, lambda ids, new: (new, torch.arange(len(new))))

    def one_too_far(next_logits, ids, max_new_tokens):
        """the newest token's position is one too high: in a text of n tokens the last one is at position n − 1"""
        return _generated_with_cache(
            next_logits,
            ids,
            max_new_tokens,
            lambda ids, new: (new, torch.arange(len(new)) + (len(ids) if len(ids) > len(new) else 0)),
        )

    def all_shifted(next_logits, ids, max_new_tokens):
        """every position is one too high: they are counted from 0"""
        return _generated_with_cache(
            next_logits, ids, max_new_tokens, lambda ids, new: (new, torch.arange(len(ids) - len(new), len(ids)) + 1)
        )

    def no_cache(next_logits, ids, max_new_tokens):
        """all tokens go through the model at every step: after the first step, send only the new one"""
        return _generated_with_cache(
            next_logits, ids, max_new_tokens, lambda ids, _: (ids, torch.arange(len(ids))), keep=False
        )

    def emptied(next_logits, ids, max_new_tokens):
        """the positions are right, but the cache is new at every step: the model sees only the newest token"""
        return _generated_with_cache(
            next_logits,
            ids,
            max_new_tokens,
            lambda ids, new: (new, torch.arange(len(ids) - len(new), len(ids))),
            keep=False,
        )

    def always_the_same_position(next_logits, ids, max_new_tokens):
        """every new token goes in at the same position: it should grow by 1 with each"""
        num_tokens = len(ids)
        return _generated_with_cache(
            next_logits,
            ids,
            max_new_tokens,
            lambda ids, new: (new, torch.arange(len(new)) + (num_tokens if len(ids) > num_tokens else 0)),
        )

    def new_tokens_only(next_logits, ids, max_new_tokens):
        """only the new tokens are returned: the exercise asks for the whole text"""
        return WithCache.right(next_logits, ids, max_new_tokens)[len(ids) :]


class Probabilities(Exercise, number="10.1", where="section 10.4", asks="a tensor of shape (vocab_size,)"):
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
        """the top_k tokens with the lowest logits are kept: keep those with the highest"""
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


class Until(Exercise, number="10.2", where="section 10.5", asks="a tensor of the whole text"):
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


# 10.3 and 10.4: five broken runs, and their causes.


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


class Stations(Exercise, number="10.3", where="section 10.7", asks="a list of five names"):
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


class Causes(Exercise, number="10.4", where="section 10.7", asks="a list of five numbers"):
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


class Through(Exercise, number="10.5", where="section 10.6", asks="a list of numbers, one per step"):
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
