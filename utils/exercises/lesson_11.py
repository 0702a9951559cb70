"""The exercises of lesson 11, training a tiny GPT and looking inside."""

import copy
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.exercises import Exercise, demand, first_wrong
from utils.exercises.values import identical


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(low: int, high: int, *shape: int, seed: int = 0) -> Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


class Shifted(Exercise, number="11.A", where="section 11.2", asks="the mean loss, one number"):
    cases = {
        "one text": (2 * numbers(1, 5, 6, seed=1), integers(0, 6, 1, 5, seed=2)),
        "three texts": (2 * numbers(3, 4, 9, seed=3), integers(0, 9, 3, 4, seed=4)),
    }

    def right(logits, ids):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    def not_shifted(logits, ids):
        """each position is scored on its own token, which the model can see: the target is the next token"""
        return F.cross_entropy(logits.flatten(0, 1), ids.flatten())

    def own_token_without_the_last(logits, ids):
        """the last position is left out, but each of the others is scored on its own token, not on the next one"""
        return Shifted.not_shifted(logits[:, :-1], ids[:, :-1])

    def own_token_without_the_first(logits, ids):
        """both start at position 1, so each position is still scored on its own token, not on the next one"""
        return Shifted.not_shifted(logits[:, 1:], ids[:, 1:])

    def shifted_backwards(logits, ids):
        """each position is scored on the token before it: the target is the one after it"""
        return Shifted.not_shifted(logits[:, 1:], ids[:, :-1])

    def two_ahead(logits, ids):
        """each position is scored on the token two positions later: the target is the next one"""
        return Shifted.not_shifted(logits[:, :-2], ids[:, 2:])

    def rolled(logits, ids):
        """the last position is scored on the first token of its text: leave the last position out"""
        return Shifted.not_shifted(logits, ids.roll(-1, dims=1))

    def rolled_over_all(logits, ids):
        """the last position of a text is scored on the first token of another text, or of its own: leave it out"""
        return Shifted.not_shifted(logits, ids.roll(-1))

    def across_the_texts(logits, ids):
        """shifted after flatten: the end of one text is scored on the start of the next; shift along axis 1 first"""
        return F.cross_entropy(logits.flatten(0, 1)[:-1], ids.flatten()[1:])

    def padded_with_0(logits, ids):
        """the last position is scored on the token 0: leave it out"""
        return Shifted.not_shifted(logits, F.pad(ids[:, 1:], (0, 1)))

    def own_token_at_the_end(logits, ids):
        """the last position is scored on its own token: leave it out"""
        return Shifted.not_shifted(logits, torch.cat([ids[:, 1:], ids[:, -1:]], dim=1))

    def summed(logits, ids):
        """the losses are added up: return their mean"""
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")

    def softmax_twice(logits, ids):
        """F.cross_entropy applies softmax itself: give it the logits, not the probabilities"""
        return Shifted.right(logits.softmax(dim=-1), ids)


def descended(weight, batches, lr: float, gradient: Callable, steps_of: Callable = lambda batches: batches):
    """Return the weight after one step per batch; gradient(own, so far) is what a step uses, of what is computed."""
    weight, so_far = weight.detach(), torch.zeros_like(weight)
    for inputs, targets in steps_of(batches):
        own = 2 * inputs.mT @ (inputs @ weight - targets) / targets.numel()
        so_far = so_far + own
        weight = weight - lr * gradient(own, so_far)
    return weight


class Cleared(Exercise, number="11.B", where="section 11.2", asks="the trained weight, a tensor"):
    cases = {
        "four batches": (
            numbers(3, seed=1).requires_grad_(),
            [(numbers(5, 3, seed=seed), numbers(5, seed=10 + seed)) for seed in range(4)],
            0.1,
        ),
        "two batches": (
            numbers(2, seed=2).requires_grad_(),
            [(numbers(4, 2, seed=seed), numbers(4, seed=20 + seed)) for seed in range(2)],
            0.05,
        ),
    }
    edges = {"one batch": (numbers(2, seed=3).requires_grad_(), [(numbers(4, 2, seed=5), numbers(4, seed=6))], 0.2)}
    may_change = True

    def right(weight, batches, lr):
        return descended(weight, batches, lr, lambda own, so_far: own)

    def never_cleared(weight, batches, lr):
        """the first step is right; each later one also uses the gradients of all batches before it"""
        return descended(weight, batches, lr, lambda own, so_far: so_far)

    def cleared_too_early(weight, batches, lr):
        """the weight stays as it was: the gradient is cleared between `backward()` and `step()`, before it is used"""
        return weight

    def uphill(weight, batches, lr):
        """each step goes uphill: subtract the gradient, times lr"""
        return descended(weight, batches, lr, lambda own, so_far: -own)

    def without_lr(weight, batches, lr):
        """the gradient is not multiplied by lr"""
        return descended(weight, batches, 1.0, lambda own, so_far: own)

    def first_batch_only(weight, batches, lr):
        """there is only the step of the first batch: each batch needs its own step"""
        return descended(weight, batches, lr, lambda own, so_far: own, lambda batches: batches[:1])

    def last_batch_only(weight, batches, lr):
        """there is only the step of the last batch: each batch needs its own step"""
        return descended(weight, batches, lr, lambda own, so_far: own, lambda batches: batches[-1:])

    def one_step_in_all(weight, batches, lr):
        """there is one step, with the gradients of all batches added up: each batch needs its own step"""
        single = [descended(weight, [batch], 1.0, lambda own, so_far: own) - weight.detach() for batch in batches]
        return weight.detach() + lr * sum(single)

    def averaged(weight, batches, lr):
        """each step uses the mean of the gradients so far: it should use that of its own batch alone"""
        count = iter(range(1, len(batches) + 1))
        return descended(weight, batches, lr, lambda own, so_far: so_far / next(count))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.dropout, self.head = nn.Embedding(7, 30), nn.Dropout(0.5), nn.Linear(30, 7)

    def forward(self, ids):
        x = self.dropout(self.embedding(ids))
        return self.head(F.dropout(x, 0.25, training=self.training))


class Measured(Exercise, number="11.C", where="section 11.2", asks="the mean loss without dropout, one number"):
    cases = {"a model in training mode": ("training", 3), "a model in eval mode": ("eval", 2)}

    def call(loss_of, mode, batch_size):
        model = Model().train(mode == "training")
        ids, targets = torch.randint(7, (batch_size, 5)), torch.randint(7, (batch_size, 5))
        before, copies = copy.deepcopy(model), [ids.clone(), targets.clone()]
        loss = loss_of(model, ids, targets)
        demand(identical([ids, targets], copies), "ids or targets are changed: leave them as they are")
        again = loss_of(copy.deepcopy(before), ids, targets)
        known = all(isinstance(value, (Tensor, float)) for value in (loss, again))
        differ = known and not torch.equal(torch.as_tensor(loss), torch.as_tensor(again))
        demand(not differ, f"two measurements of a model in {mode} mode return different losses: is some dropout on?")
        drops = not torch.equal(model(ids), model(ids))
        demand(drops or mode == "eval", "a model that was in training mode no longer drops anything afterwards")
        demand(not drops or mode == "training", "a model that was in eval mode drops entries afterwards")
        demand(torch.is_grad_enabled(), "gradients stay switched off afterwards: use `with torch.no_grad():`")
        demand(identical(model, before), "some part of the model is not left as it was: its mode, its p or its weights")
        return loss

    def right(model, ids, targets):
        was_training = model.training
        loss = Measured.as_it_is(model.eval(), ids, targets)
        model.train(was_training)
        return loss

    def as_it_is(model, ids, targets):
        """two measurements of a model in training mode return different losses: is some dropout on?"""
        return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).detach()

    def left_in_eval(model, ids, targets):
        """a model that was in training mode no longer drops anything afterwards"""
        return Measured.as_it_is(model.eval(), ids, targets)

    def always_back_to_training(model, ids, targets):
        """a model that was in eval mode drops entries afterwards"""
        loss = Measured.as_it_is(model.eval(), ids, targets)
        model.train()
        return loss

    def summed(model, ids, targets):
        """the mode is right, but the losses are added up: return their mean"""
        return Measured.right(model, ids, targets) * targets.numel()


def without(held_out: Tensor, known: Callable[[Tensor], bool]) -> Tensor:
    return held_out[[i for i, page in enumerate(held_out) if not known(page)]]


class HeldOut(Exercise, number="11.D", where="section 11.1", asks="a tuple of two tensors of pages"):
    cases = {
        "seven pages": (torch.tensor([[1, 2, 3], [4, 5, 6], [1, 5, 3], [3, 2, 1], [4, 5, 6], [7, 7, 2], [8, 8, 8]]), 4),
        "nine pages": (torch.tensor([[2, 9], [3, 1], [2, 9], [5, 4], [8, 6], [4, 6], [2, 9], [4, 6], [3, 7]]), 4),
        "nothing in common": (torch.tensor([[1, 2], [2, 3], [3, 1], [2, 1], [3, 2]]), 2),
    }

    def right(pages, num_held_out):
        training, held_out = HeldOut.nothing_left_out(pages, num_held_out)
        return training, without(held_out, lambda page: (training == page).all(dim=1).any())

    def nothing_left_out(pages, num_held_out):
        """some held-out pages also occur in the training pages: leave these out of the held-out ones"""
        return pages[:-num_held_out], pages[-num_held_out:]

    def left_out_of_training(pages, num_held_out):
        """pages that occur in both are left out of the training pages: leave them out of the held-out ones"""
        training, held_out = HeldOut.nothing_left_out(pages, num_held_out)
        return without(training, lambda page: (held_out == page).all(dim=1).any()), held_out

    def left_out_of_both(pages, num_held_out):
        """pages that occur in both are left out of both: keep the training pages as they are"""
        training = HeldOut.left_out_of_training(pages, num_held_out)[0]
        return training, HeldOut.right(pages, num_held_out)[1]

    def only_the_known_kept(pages, num_held_out):
        """the held-out pages are those that occur in training: it should be the others"""
        training, held_out = HeldOut.nothing_left_out(pages, num_held_out)
        return training, without(held_out, lambda page: not (training == page).all(dim=1).any())

    def one_token_is_enough(pages, num_held_out):
        """a held-out page is left out as soon as it has a token in common with a training page: compare whole pages"""
        training, held_out = HeldOut.nothing_left_out(pages, num_held_out)
        return training, without(held_out, lambda page: torch.isin(page, training).any())

    def one_position_is_enough(pages, num_held_out):
        """a page is left out as soon as one token agrees with a training page, as by `in`: compare whole pages"""
        training, held_out = HeldOut.nothing_left_out(pages, num_held_out)
        return training, without(held_out, lambda page: (training == page).any())

    def each_token_known(pages, num_held_out):
        """a held-out page is left out if each of its tokens occurs in training, wherever: compare whole pages"""
        training, held_out = HeldOut.nothing_left_out(pages, num_held_out)
        return training, without(held_out, lambda page: torch.isin(page, training).all())

    def neighbours_only(pages, num_held_out):
        """a held-out page is compared with one training page: compare it with all of them"""
        training, held_out = HeldOut.nothing_left_out(pages, num_held_out)
        known = [(page == other).all() for page, other in zip(held_out, training)]
        return training, held_out[[i for i in range(len(held_out)) if i >= len(known) or not known[i]]]

    def each_kept_once(pages, num_held_out):
        """a held-out page that occurs twice is kept once: leave out only pages that occur in training"""
        training, held_out = HeldOut.right(pages, num_held_out)
        return training, torch.tensor([*dict.fromkeys(map(tuple, held_out.tolist()))])

    def first_pages_held_out(pages, num_held_out):
        """the first pages are held out: it should be the last ones"""
        training, held_out = pages[num_held_out:], pages[:num_held_out]
        return training, without(held_out, lambda page: (training == page).all(dim=1).any())

    def swapped(pages, num_held_out):
        """the two parts are right, but swapped: the training pages come first"""
        return HeldOut.right(pages, num_held_out)[::-1]


# 11.1: the best possible loss, from the true probabilities.


class BestLoss(Exercise, number="11.1", where="section 11.1", asks="the best possible loss, one number in nats"):
    cases = [
        ({"the": 0.5, "a": 0.25, "my": 0.25},),
        ({".": 0.7, "today": 0.1, "twice": 0.2},),
        ({"dog": 0.3, "cat": 0.3, "fox": 0.2, "cow": 0.2},),
        ({"¶": 1.0},),
    ]

    def right(probabilities):
        return -sum(p * math.log(p) for p in probabilities.values())

    def in_bits(probabilities):
        """that is the loss in bits, with the logarithm to base 2: use the natural logarithm"""
        return BestLoss.right(probabilities) / math.log(2)

    def base_10(probabilities):
        """that is with the logarithm to base 10: use the natural logarithm"""
        return BestLoss.right(probabilities) / math.log(10)

    def negative(probabilities):
        """the sign is wrong: ln p is negative, and the loss is −ln p"""
        return -BestLoss.right(probabilities)

    def of_the_most_probable(probabilities):
        """that is the loss if the most probable word always came: the others come too, each with its probability"""
        return -math.log(max(probabilities.values()))

    def of_the_least_probable(probabilities):
        """that is the loss if the least probable word came: each word comes with its own probability"""
        return -math.log(min(probabilities.values()))

    def plain_mean(probabilities):
        """that is the plain mean of −ln p: weight each word's loss by its probability"""
        return -sum(map(math.log, probabilities.values())) / len(probabilities)

    def plain_sum(probabilities):
        """the losses are added up unweighted: multiply each by the probability of its word"""
        return -sum(map(math.log, probabilities.values()))

    def divided_by_the_number_of_words(probabilities):
        """the weighted sum is already the mean: do not divide it by the number of words"""
        return BestLoss.right(probabilities) / len(probabilities)

    def all_equally_probable(probabilities):
        """that is ln of the number of words, the loss if all of them were equally probable"""
        return math.log(len(probabilities))

    def perplexity(probabilities):
        """that is the perplexity, e to the power of the loss"""
        return math.exp(BestLoss.right(probabilities))

    def of_the_mean_probability(probabilities):
        """the mean is taken before the logarithm: take −ln p of each word first, then their weighted mean"""
        return -math.log(sum(p * p for p in probabilities.values()))

    def no_logarithm(probabilities):
        """there is no logarithm: that is how probable it is that two words sampled here are the same"""
        return sum(p * p for p in probabilities.values())

    def parts(probabilities):
        """those are the parts of the sum, one per word: add them up"""
        return [-p * math.log(p) for p in probabilities.values()]

    def losses(probabilities):
        """those are the losses of the words, −ln p: return their mean, each weighted by its probability"""
        return [-math.log(p) for p in probabilities.values()]


def scheduled(step, lr, steps, warmup, fall: Callable[[float], float], start: int = 0, end: int = 1) -> float:
    """Return the rate with another fall, from `start` steps after the warm-up to `end` steps after the last one."""
    if step < warmup:
        return lr * step / warmup
    return lr * fall((step - warmup - start) / (steps + end - warmup - start))


def half_cosine(progress: float) -> float:
    return (1 + math.cos(math.pi * progress)) / 2


class Rate(Exercise, number="11.2", where="section 11.2", asks="the learning rate of that step, one number"):
    cases = [
        *((step, 1.0, 9, 3) for step in (1, 2, 3, 4, 6, 9)),
        *((step, 0.002, 250, 50) for step in (1, 49, 51, 150, 250)),
        *((step, 0.5, 5, 4) for step in (3, 4, 5)),
    ]
    edges = [(1, 0.1, 3, 1), (3, 0.1, 3, 3)]

    def right(step, lr, steps, warmup):
        return scheduled(step, lr, steps, warmup, half_cosine)

    def no_warmup(step, lr, steps, warmup):
        """the first steps already have the full lr: let the rate rise up to step `warmup`"""
        return Rate.right(max(step, warmup), lr, steps, warmup)

    def one_cosine(step, lr, steps, warmup):
        """there is no warm-up: one cosine falls from step 0 on"""
        return Rate.right(step, lr, steps, 0)

    def warmup_one_late(step, lr, steps, warmup):
        """the warm-up is one step late: step 1 has the rate 0, and should have lr / warmup"""
        return lr * (step - 1) / warmup if step <= warmup else Rate.right(step, lr, steps, warmup)

    def warmup_one_early(step, lr, steps, warmup):
        """the warm-up is one step early, as if steps were counted from 0: step 1 should have lr / warmup"""
        return lr * (step + 1) / warmup if step < warmup else Rate.right(step, lr, steps, warmup)

    def end_one_early(step, lr, steps, warmup):
        """the cosine reaches 0 at the last step, which then does nothing: it should be 0 one step later"""
        return scheduled(step, lr, steps, warmup, half_cosine, end=0) if steps > warmup else lr * step / warmup

    def start_one_late(step, lr, steps, warmup):
        """the cosine starts one step late: step warmup + 1 still has the full lr"""
        return lr if step == warmup else scheduled(step, lr, steps, warmup, half_cosine, start=1)

    def counted_from_0(step, lr, steps, warmup):
        """steps are counted from 1, and the cosine is 0 at steps + 1: yours is as if they were counted from 0"""
        return lr * (step + 1) / warmup if step < warmup else scheduled(step, lr, steps, warmup, half_cosine, end=0)

    def straight(step, lr, steps, warmup):
        """after the warm-up the rate falls in a straight line: use the cosine"""
        return scheduled(step, lr, steps, warmup, lambda progress: 1 - progress)

    def quarter_cosine(step, lr, steps, warmup):
        """the rate falls along a quarter of a cosine: use (1 + cos(π · progress)) / 2"""
        return scheduled(step, lr, steps, warmup, lambda progress: math.cos(math.pi / 2 * progress))

    def not_halved(step, lr, steps, warmup):
        """after the warm-up the rate is twice what it should be: divide 1 + cos by 2"""
        return scheduled(step, lr, steps, warmup, lambda progress: 1 + math.cos(math.pi * progress))

    def below_0(step, lr, steps, warmup):
        """the rate falls to −lr: add 1 to the cosine and halve the sum"""
        return scheduled(step, lr, steps, warmup, lambda progress: math.cos(math.pi * progress))

    def rising(step, lr, steps, warmup):
        """after the warm-up the rate rises from 0 to lr: add the cosine to 1, do not subtract it"""
        return scheduled(step, lr, steps, warmup, lambda progress: (1 - math.cos(math.pi * progress)) / 2)

    def without_pi(step, lr, steps, warmup):
        """the rate does not fall to 0: half a period of the cosine is π"""
        return scheduled(step, lr, steps, warmup, lambda progress: (1 + math.cos(progress)) / 2)

    def in_degrees(step, lr, steps, warmup):
        """math.cos takes radians: half a period is π, not 180"""
        return scheduled(step, lr, steps, warmup, lambda progress: (1 + math.cos(180 * progress)) / 2)

    def whole_period(step, lr, steps, warmup):
        """the cosine falls and rises again: half a period is π, not 2π"""
        return scheduled(step, lr, steps, warmup, lambda progress: half_cosine(2 * progress))

    def constant(step, lr, steps, warmup):
        """after the warm-up the rate stays at lr: let it fall"""
        return scheduled(step, lr, steps, warmup, lambda progress: 1.0)

    def over_all_steps(step, lr, steps, warmup):
        """the cosine counts from step 0, so the rate jumps down after the warm-up: progress is 0 at step `warmup`"""
        return lr * step / warmup if step < warmup else Rate.right(step, lr, steps, 0)

    def over_too_many_steps(step, lr, steps, warmup):
        """the cosine does not reach 0: from `warmup` to steps + 1 there are steps + 1 − warmup steps"""
        return scheduled(step, lr, steps, warmup, half_cosine, end=1 + warmup)

    def without_lr(step, lr, steps, warmup):
        """the rate goes up to 1, whatever lr is: multiply it by lr"""
        return Rate.right(step, 1.0, steps, warmup)

    def multiplied_warmup(step, lr, steps, warmup):
        """the warm-up is multiplied by one cosine over all steps: let the cosine begin at step `warmup`"""
        return lr * min(1, step / max(warmup, 1)) * half_cosine(step / (steps + 1))


def predicted(num_pages: int, num_tokens: int, vocab_size: int, num_cases: int, seed: int) -> tuple:
    """Return logits, pages, positions (none is the last) and answers, of which three in five are predicted right."""
    logits = numbers(num_pages, num_tokens, vocab_size, seed=seed)
    pages = integers(0, num_pages, num_cases, seed=seed + 1)
    positions = integers(1, num_tokens - 1, num_cases, seed=seed + 2)
    answers = logits[pages, positions - 1].argmax(dim=-1)
    answers[::5] = logits[pages, positions - 1].argmin(dim=-1)[::5]
    answers[1::5] = logits[pages, positions].argmax(dim=-1)[1::5]
    return logits, pages, positions, answers


class Accuracy(Exercise, number="11.3", where="section 11.3", asks="the fraction, one number from 0 to 1"):
    cases = {
        "six answers": predicted(3, 6, 7, 6, seed=1),
        "nine answers": predicted(4, 5, 9, 9, seed=11),
        "one page": predicted(1, 9, 6, 5, seed=21),
    }
    edges = {"the last positions": (numbers(2, 3, 4), torch.tensor([0, 1]), torch.tensor([2, 2]), torch.tensor([1, 0]))}

    def right(logits, pages, positions, answers):
        return (logits[pages, positions - 1].argmax(dim=-1) == answers).float().mean()

    def at_the_answer(logits, pages, positions, answers):
        """the logits are taken at the answer's own position: it is predicted one position earlier"""
        return Accuracy.right(logits, pages, positions + 1, answers)

    def after_the_answer(logits, pages, positions, answers):
        """the logits are taken one position after the answer: it is predicted one position before it"""
        return Accuracy.right(logits.roll(-1, dims=1), pages, positions + 1, answers)

    def every_position(logits, pages, positions, answers):
        """the answer is compared with the predictions at all positions of its page: only one of them counts"""
        return (logits[pages].argmax(dim=-1) == answers[:, None]).float().mean()

    def every_page(logits, pages, positions, answers):
        """each answer is compared with the predictions of all pages: index pages and positions together"""
        return (logits[:, positions - 1].argmax(dim=-1) == answers).float().mean()

    def every_pair(logits, pages, positions, answers):
        """each answer is compared at the pages and positions of all answers: index pages and positions together"""
        return (logits[pages][:, positions - 1].argmax(dim=-1) == answers).float().mean()

    def first_page(logits, pages, positions, answers):
        """all predictions are taken from the first page: `pages` says which page each answer is on"""
        return Accuracy.right(logits, 0 * pages, positions, answers)

    def counted(logits, pages, positions, answers):
        """that is the number of right predictions: divide it by the number of answers"""
        return Accuracy.right(logits, pages, positions, answers) * len(answers)

    def per_page(logits, pages, positions, answers):
        """the number of right predictions is divided by the number of pages: divide it by that of the answers"""
        return Accuracy.counted(logits, pages, positions, answers) / len(logits)

    def per_prediction(logits, pages, positions, answers):
        """the number of right predictions is divided by that of all positions: divide it by that of the answers"""
        return Accuracy.per_page(logits, pages, positions, answers) / logits.shape[1]

    def wrong_ones(logits, pages, positions, answers):
        """that is the fraction of wrong predictions: return that of the right ones"""
        return 1 - Accuracy.right(logits, pages, positions, answers)

    def in_percent(logits, pages, positions, answers):
        """that is in percent: return the fraction, from 0 to 1"""
        return 100 * Accuracy.right(logits, pages, positions, answers)

    def mean_probability(logits, pages, positions, answers):
        """that is the mean probability of the answers: count those whose logit is the highest"""
        return logits[pages, positions - 1].softmax(dim=-1).gather(-1, answers[:, None]).mean()

    def lowest(logits, pages, positions, answers):
        """the token with the lowest logit is taken: the prediction is the one with the highest"""
        return Accuracy.right(-logits, pages, positions, answers)

    def one_by_one(logits, pages, positions, answers):
        """those are the results of the single answers: return their mean"""
        return logits[pages, positions - 1].argmax(dim=-1) == answers

    def all_right(logits, pages, positions, answers):
        """that says whether all are right: return the fraction of right ones"""
        return bool(Accuracy.right(logits, pages, positions, answers) == 1)


def parts(vocab_size: int, *sizes: int) -> list[tuple[Tensor, Tensor]]:
    """Return logits (size, vocab_size) and targets (size,) for each size."""
    return [(2 * numbers(n, vocab_size, seed=n), integers(0, vocab_size, n, seed=n + 50)) for n in sizes]


class Accumulated(Exercise, number="11.4", where="section 11.8", asks="the loss of the whole batch, one number"):
    cases = {
        "two parts": (parts(5, 2, 6),),
        "three parts": (parts(7, 7, 1, 3),),
        "four parts": (parts(4, 1, 2, 9, 4),),
    }
    edges = {"one part": (parts(4, 3),)}

    def right(micro_batches):
        return F.cross_entropy(*map(torch.cat, zip(*micro_batches)))

    def mean_of_means(micro_batches):
        """each part counts equally, which is right only for parts of equal size: each target should"""
        return sum(F.cross_entropy(*part) for part in micro_batches) / len(micro_batches)

    def sum_of_means(micro_batches):
        """the means of the parts are added up and never divided: each target should count equally in one mean"""
        return sum(F.cross_entropy(*part) for part in micro_batches)

    def summed(micro_batches):
        """the losses of all targets are added up: divide by the number of all targets"""
        return sum(F.cross_entropy(*part, reduction="sum") for part in micro_batches)

    def sum_per_part(micro_batches):
        """the sum over all targets is divided by the number of parts: divide it by the number of all targets"""
        return Accumulated.summed(micro_batches) / len(micro_batches)

    def means_per_target(micro_batches):
        """means are added up and divided by the number of targets: add up the losses of the targets instead"""
        return Accumulated.sum_of_means(micro_batches) / sum(len(targets) for _, targets in micro_batches)

    def last_part(micro_batches):
        """that is the loss of the last part alone"""
        return F.cross_entropy(*micro_batches[-1])

    def first_part(micro_batches):
        """that is the loss of the first part alone"""
        return F.cross_entropy(*micro_batches[0])

    def divided_twice(micro_batches):
        """the mean is divided by the number of parts as well: divide only by the number of all targets"""
        return Accumulated.right(micro_batches) / len(micro_batches)

    def of_the_last_size(micro_batches):
        """the sum is divided by the number of targets of the last part: divide it by that of all parts together"""
        return Accumulated.summed(micro_batches) / len(micro_batches[-1][1])

    def per_part(micro_batches):
        """those are the losses of the parts: return one number for the whole batch"""
        return [F.cross_entropy(*part) for part in micro_batches]


def attention(num_pages: int, num_tokens: int, seed: int) -> Tensor:
    scores = 2 * numbers(num_pages, num_tokens, num_tokens, seed=seed)
    return scores.masked_fill(torch.ones(num_tokens, num_tokens).triu(diagonal=1) > 0, -torch.inf).softmax(dim=-1)


class AtSources(Exercise, number="11.5", where="section 11.4", asks="the mean weight, one number"):
    cases = {
        "two pages": (attention(2, 5, seed=1), [3, 4], [[1, 2], [0]]),
        "three pages": (attention(3, 7, seed=2), [6, 2, 5], [[1], [0, 1], [0, 2, 4]]),
        "four pages": (attention(4, 6, seed=3), [5, 4, 3, 5], [[2], [0, 3, 4], [2, 0], [1, 4]]),
    }
    edges = {"one page": (attention(1, 4, seed=4), [3], [[1]])}

    def right(attn_weights, queries, sources):
        return torch.stack(AtSources.per_page(attn_weights, queries, sources)).mean()

    def rows_and_columns_swapped(attn_weights, queries, sources):
        """rows and columns are swapped: the row belongs to the query, the columns to what it attends to"""
        return AtSources.right(attn_weights.mT, queries, sources)

    def first_source_only(attn_weights, queries, sources):
        """only the first source of each page counts: add up the weights at all its sources"""
        return AtSources.right(attn_weights, queries, [one[:1] for one in sources])

    def last_source_only(attn_weights, queries, sources):
        """only the last source of each page counts: add up the weights at all its sources"""
        return AtSources.right(attn_weights, queries, [one[-1:] for one in sources])

    def mean_over_sources(attn_weights, queries, sources):
        """the weights at the sources of a page are averaged: add them up, then average over the pages"""
        return torch.stack([page[q, one].mean() for page, q, one in zip(attn_weights, queries, sources)]).mean()

    def per_source(attn_weights, queries, sources):
        """the sum is divided by the number of all sources: divide it by the number of pages"""
        return sum(AtSources.per_page(attn_weights, queries, sources)) / sum(map(len, sources))

    def largest_source(attn_weights, queries, sources):
        """only the source with the largest weight counts: add up the weights at all sources of a page"""
        return torch.stack([page[q, one].max() for page, q, one in zip(attn_weights, queries, sources)]).mean()

    def largest_weight(attn_weights, queries, sources):
        """that is the mean of the largest weight in each row, wherever it is: take the weights at the sources"""
        return torch.stack([page[q].max() for page, q in zip(attn_weights, queries)]).mean()

    def chance(attn_weights, queries, sources):
        """that is the chance level, if all positions up to the query had equal weights: use `attn_weights`"""
        return sum(len(one) / (query + 1) for query, one in zip(queries, sources)) / len(queries)

    def times_chance(attn_weights, queries, sources):
        """that is how many times the chance level it is: return the mean weight itself"""
        found = AtSources.right(attn_weights, queries, sources)
        return found / AtSources.chance(attn_weights, queries, sources)

    def row_before(attn_weights, queries, sources):
        """the rows are those one position before the queries"""
        return AtSources.right(attn_weights, [query - 1 for query in queries], sources)

    def last_row(attn_weights, queries, sources):
        """the last row of each page is used: use the row of its query"""
        return AtSources.right(attn_weights, [-1 for _ in queries], sources)

    def first_page(attn_weights, queries, sources):
        """all weights are taken from the first page: the i-th query and sources belong to the i-th page"""
        return AtSources.right(attn_weights[:1].expand_as(attn_weights), queries, sources)

    def summed(attn_weights, queries, sources):
        """the weights of all pages are added up: divide by the number of pages"""
        return sum(AtSources.per_page(attn_weights, queries, sources))

    def all_other_words(attn_weights, queries, sources):
        """that is the weight of everything but the sources"""
        return 1 - AtSources.right(attn_weights, queries, sources)

    def all_rows(attn_weights, queries, sources):
        """the weights at the sources are averaged over all rows: only the row of the query counts"""
        return torch.stack([page[:, one].sum(dim=1).mean() for page, one in zip(attn_weights, sources)]).mean()

    def per_page(attn_weights, queries, sources):
        """those are the weights of the single pages: return their mean"""
        return [page[query, one].sum() for page, query, one in zip(attn_weights, queries, sources)]


SOUND = [False, False, False, True, True]


class Conclusions(
    Exercise, number="11.6", where="sections 11.1, 11.4, 11.6 and 11.9", asks="a list of five values, True or False"
):
    def right():
        return SOUND

    def accuracy_shows_the_mechanism():
        """think of (a) again: in this lesson the trained model copies names without an induction head"""
        yield from first_wrong(SOUND, 0)

    def attention_shows_the_effect():
        """think of (b) again: a map shows where a head attends; might another head make up for it?"""
        yield from first_wrong(SOUND, 1)

    def one_seed_is_enough():
        """think of (c) again: would another seed have to put the same work into the same head?"""
        yield from first_wrong(SOUND, 2)

    def overfitting_missed():
        """think of (d) again: what does the model gain on training text, and what on other text?"""
        yield from first_wrong(SOUND, 3)

    def best_can_be_beaten():
        """think of (e) again: can any model do better on average than one that knows the true probabilities?"""
        yield from first_wrong(SOUND, 4)
