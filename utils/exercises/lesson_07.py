"""The exercises of lesson 7, dropout."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.exercises import Exercise, demand
from utils.exercises.shown import described
from utils.exercises.values import identical


def trained(module: nn.Module, x: Tensor) -> Tensor:
    """Return a module's outputs of 20 runs in training mode, (20, *x.shape); complain of what no dropout may do."""
    demand(isinstance(module, nn.Module), "calling it does not make an nn.Module: does its class inherit from that?")
    parts = [*module.modules()]
    demand(all(part.training for part in parts), "a new module, or a part of it, is not in training mode")
    outputs = {"training": [], "eval": []}
    for mode in ["training"] * 10 + ["eval"] * 2 + ["training"] * 10:
        module.train() if mode == "training" else module.eval()
        given, switched_on = x.clone(), module.training
        output = module(given)
        fits = isinstance(output, Tensor) and output.shape == x.shape
        demand(fits, f"in {mode} mode forward returns {described(output)}, not a tensor of the shape of x")
        demand(not output.isnan().any(), f"in {mode} mode there is nan in the output")
        demand(torch.equal(given, x), "forward changes its argument `x`: leave it as it is, and make something new")
        demand(module.training == switched_on, "forward changes the mode of its module: it should only read the mode")
        outputs[mode].append(output.detach().float())
    training, evaluation = map(torch.stack, outputs.values())
    swapped = (evaluation == 0).any() and (training != 0).all()
    demand(not swapped, "in eval mode entries become 0, in training mode none does: are the modes swapped?")
    demand(torch.equal(*evaluation), "two runs in eval mode return different outputs")
    demand(torch.allclose(evaluation, x), "in eval mode the output is not the input")
    demand((training == 0).any(), "in 20 runs in training mode no entry becomes 0")
    demand((training != 0).any(), "in 20 runs in training mode every entry becomes 0")
    return training


def demand_dropout(outputs: Tensor, x: Tensor, p: float, dropped: Tensor, what: str) -> None:
    """Complain if decisions, (runs, rows, columns), are not made each by itself, or if what is kept is not scaled."""
    demand((dropped != dropped[0]).any(), f"every run in training mode drops the same {what}")
    fraction = dropped.float().mean()
    variance = fraction * (1 - fraction)  # of one decision: the mean of n independent ones has 1/n of it
    means = [dropped.float().mean(dim) for dim in range(3)]
    fits = all(2 / 3 < mean.var() * size / variance < 3 / 2 for mean, size in zip(means, dropped.shape))
    fits = fits and len(dropped.sum(dim=(1, 2)).unique()) > 1
    demand(fits, f"the {what} are not dropped independently, with one probability: each needs its own random decision")
    fits = abs(fraction - p) < 5 * (variance / dropped.numel()) ** 0.5
    demand(fits, f"with p = {p} the fraction of dropped {what} is {fraction:.2f}")
    scaled = torch.where(outputs == 0, 0.0, x / (1 - p))
    demand(torch.allclose(outputs, scaled), "in training mode, what is kept is not x / (1 − p)")


class Quiet(Exercise, number="7.A", where="section 7.2", asks="a module that drops entries in training mode only"):
    cases = [(torch.linspace(-2, 2, 600).view(shape),) for shape in [(20, 30), (25, 24)]]  # none is 0

    def call(answer, x):
        outputs = trained(answer(), x)
        demand_dropout(outputs, x, 0.5, outputs == 0, "entries")

    class right(nn.Module):
        def forward(self, x):
            return F.dropout(x, p=0.5, training=self.training)

    class always_on(nn.Module):
        """two runs in eval mode return different outputs"""

        def forward(self, x):
            return F.dropout(x, p=0.5)

    class always_off(nn.Identity):
        """in 20 runs in training mode no entry becomes 0"""

    class swapped(nn.Module):
        """in eval mode entries become 0, in training mode none does: are the modes swapped?"""

        def forward(self, x):
            return F.dropout(x, p=0.5, training=not self.training)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.rest = nn.Linear(3, 30), nn.Sequential(nn.Dropout(0.5), nn.Linear(30, 20))

    def forward(self, x):
        return F.dropout(self.rest(self.first(x)), 0.25, training=self.training)


class Evaluated(Exercise, number="7.B", where="section 7.4", asks="the output of the model without dropout"):
    cases = {"a model in training mode": ("training", 5), "a model in eval mode": ("eval", 4)}

    def call(evaluate, mode, batch_size):
        model = Model().train(mode == "training")
        x = batch_size * torch.randn(batch_size, 3)
        with torch.enable_grad():
            model(x).sum().backward()
            before, x_before, gradients = copy.deepcopy(model), x.clone(), [w.grad.clone() for w in model.parameters()]
            other, output = evaluate(copy.deepcopy(model), x.clone()), evaluate(model, x)
            still_on = torch.is_grad_enabled()
        differ = isinstance(output, Tensor) and isinstance(other, Tensor) and not torch.equal(output, other)
        demand(not differ, f"two evaluations of a model in {mode} mode return different outputs: some dropout is on")
        demand(torch.equal(x, x_before), "x is changed: leave it as it is, and make something new")
        as_before = identical(dict(model.state_dict()), dict(before.state_dict()))
        demand(as_before, "the weights of the model are not left as they were")
        drops = not torch.equal(model(x), model(x))
        demand(drops or mode == "eval", "a model that was in training mode no longer drops anything afterwards")
        demand(not drops or mode == "training", "a model that was in eval mode drops entries afterwards")
        needed = all(weight.requires_grad for weight in model.parameters())
        demand(needed and still_on, "gradients stay switched off afterwards: use `with torch.no_grad():`")
        as_before = identical(model, before) and repr(model) == repr(before)
        demand(as_before, "some part of the model is not left as it was: its mode or its p")
        as_before = identical([weight.grad for weight in model.parameters()], gradients)
        demand(as_before, "the gradients of the model are not left as they were")
        return output

    def right(model, x):
        was_training = model.training
        output = model.eval()(x)
        model.train(was_training)
        return output

    def left_in_eval(model, x):
        """a model that was in training mode no longer drops anything afterwards"""
        return model.eval()(x)

    def always_back_to_training(model, x):
        """a model that was in eval mode drops entries afterwards"""
        output = model.eval()(x)
        model.train()
        return output

    def no_eval(model, x):
        """two evaluations of a model in training mode return different outputs: some dropout is on"""
        return model(x)


def dropped(x: Tensor, keep: Tensor, p: float) -> Tensor:
    return torch.where(keep, x / (1 - p), 0.0)


class ByHand(Exercise, number="7.1", where="section 7.1", asks="a tensor of the same shape as `x`"):
    cases = {
        "p = 0.2": (torch.tensor([[1.0, -2.0, 3.0], [0.5, 4, -1]]), torch.tensor([[1, 0, 1], [0, 1, 1]]) > 0, 0.2),
        "p = 0.75": (torch.tensor([[-2.5, 1.5], [0.3, 6], [-1, 2]]), torch.tensor([[0, 0], [1, 0], [0, 1]]) > 0, 0.75),
    }

    right = dropped

    def not_scaled(x, keep, p):
        """what is kept is unchanged: divide it by 1 − p"""
        return x * keep

    def divided_by_p(x, keep, p):
        """what is kept is divided by p: divide it by 1 − p"""
        return x * keep / p

    def multiplied(x, keep, p):
        """what is kept is multiplied by 1 − p: divide it by 1 − p"""
        return x * keep * (1 - p)

    def mask_inverted(x, keep, p):
        """what should be kept is dropped: `keep` is True where an entry is kept"""
        return dropped(x, ~keep, p)

    def not_dropped(x, keep, p):
        """what should be dropped is unchanged: it should become 0"""
        return torch.where(keep, x / (1 - p), x)

    def not_scaled_mask_inverted(x, keep, p):
        """what should be kept is dropped, and nothing is divided by 1 − p"""
        return x * ~keep

    def nothing_dropped(x, keep, p):
        """every entry is divided by 1 − p: where `keep` is False, it should become 0"""
        return x / (1 - p)

    def sampled_again(x, keep, p):
        """what is dropped is chosen at random: here `keep` says which entries are kept"""
        return F.dropout(x, p)

    def p_subtracted(x, keep, p):
        """p is only subtracted, from every entry: divide what is kept by the difference 1 − p"""
        return x * keep / 1 - p

    def p_subtracted_from_what_is_kept(x, keep, p):
        """p is only subtracted from what is kept: divide it by the difference 1 − p"""
        return torch.where(keep, x / 1 - p, 0.0)

    def doubled(x, keep, p):
        """what is kept is doubled, whatever p is: that is right only where 1 − p is one half"""
        return x * keep * 2

    def by_what_is_kept(x, keep, p):
        """what is kept is divided by the fraction that `keep` keeps: divide it by 1 − p"""
        return x * keep / keep.float().mean()


class Values(Exercise, number="7.2", where="sections 7.1 and 7.2", asks="a list of three numbers"):
    def right():
        return [0, 4, 3]

    def not_scaled():
        """what is kept in training mode is not 3: it is divided by 1 − p"""
        return [0, 3, 3]

    def divided_by_p():
        """12 is 3 divided by p: divide by 1 − p"""
        yield from ([0, 3 / 0.25, last] for last in (3, 4, 12))

    def multiplied():
        """that is 3 multiplied by 1 − p: divide it by 1 − p instead"""
        yield from ([0, 3 * 0.75, last] for last in (3, 3 * 0.75))

    def another_p():
        """that is what a 3 becomes with another p: here p is 0.25"""
        yield from ([0, 3 / 0.5, 3], [0, 3 / 0.8, 3], [0, 3 / 0.9, 3])

    def changed_in_eval():
        """the values in training mode are right, but eval mode changes nothing at all"""
        yield from ([0, 4, last] for last in (4, 3 * 0.75, 0, 1, 3 * 1.25, 12))

    def scaled_in_eval_instead():
        """scaling in eval mode is how dropout was first published: torch scales in training mode instead"""
        return [0, 3, 3 * 0.75]

    def another_order():
        """the right values in another order: first training mode, the smaller value first, then eval mode"""
        yield from ([4, 0, 3], [3, 0, 4], [3, 4, 0], [0, 3, 4], [4, 3, 0])

    def ones():
        """such values come from a tensor of ones, and it is one of threes"""
        yield from ([0, kept, 1] for kept in (1 / 0.75, 1 / 0.8, 1 / 0.5, 1))

    def probabilities():
        """0.25 and 0.75 are how probable the two values are: the exercise asks for the values"""
        yield from ([0.25, 0.75, last] for last in (0, 1, 3))


SCORES = torch.tensor([[0.2, 1.5, -0.3, 0.8], [2.0, -0.5, 0.7, 0.1], [-1.0, 0.4, 0.9, -0.6], [0.6, -1.4, 1.1, 0.3]])
FUTURE = torch.ones(4, 4).triu(diagonal=1) > 0
FAR_PAST = torch.ones(4, 4).tril(diagonal=-2) > 0
KEEP = torch.tensor([[1, 1, 0, 1], [0, 1, 1, 0], [1, 1, 0, 1], [0, 1, 1, 0]]) > 0


def weights(scores: Tensor, hidden: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)


class Order(Exercise, number="7.3", where="section 7.3", asks="a tensor of shape (num_tokens, num_tokens)"):
    cases = {
        "three tokens": (SCORES[:3, :3], FUTURE[:3, :3], KEEP[:3, :3], 0.5),
        "four tokens, the far past hidden too": (2 * SCORES.T, FUTURE | FAR_PAST, KEEP.T, 0.2),
    }

    def right(attn_scores, hidden, keep, p):
        return dropped(weights(attn_scores, hidden), keep, p)

    def scores_dropped_first(attn_scores, hidden, keep, p):
        """the scores are dropped, not the weights: a score of 0 still gets a weight, so nothing is switched off"""
        return weights(dropped(attn_scores, keep, p), hidden)

    def scores_dropped_unscaled(attn_scores, hidden, keep, p):
        """the scores are dropped, not the weights: a score of 0 still gets a weight; and nothing is divided by 1 − p"""
        return weights(attn_scores * keep, hidden)

    def masked_scores_dropped(attn_scores, hidden, keep, p):
        """the masked scores are dropped, not the weights: a score of 0 gets a weight, even where −∞ was"""
        return torch.softmax(dropped(attn_scores.masked_fill(hidden, -torch.inf), keep, p), dim=-1)

    def rows_normalised_again(attn_scores, hidden, keep, p):
        """the rows sum to 1 again: after dropout they do so only on average"""
        return F.normalize(dropped(weights(attn_scores, hidden), keep, p), p=1.0, dim=-1)

    def not_scaled(attn_scores, hidden, keep, p):
        """what is kept is unchanged: divide it by 1 − p"""
        return weights(attn_scores, hidden) * keep

    def divided_by_p(attn_scores, hidden, keep, p):
        """what is kept is divided by p: divide it by 1 − p"""
        return weights(attn_scores, hidden) * keep / p

    def multiplied(attn_scores, hidden, keep, p):
        """what is kept is multiplied by 1 − p: divide it by 1 − p"""
        return weights(attn_scores, hidden) * keep * (1 - p)

    def no_dropout(attn_scores, hidden, keep, p):
        """these are the weights before dropout: nothing is dropped yet"""
        return weights(attn_scores, hidden)

    def sampled_again(attn_scores, hidden, keep, p):
        """what is dropped is chosen at random: here `keep` says which entries are kept"""
        return F.dropout(weights(attn_scores, hidden), p)

    def keep_inverted(attn_scores, hidden, keep, p):
        """what should be kept is dropped: `keep` is True where a weight is kept"""
        return dropped(weights(attn_scores, hidden), ~keep, p)

    def no_mask(attn_scores, hidden, keep, p):
        """nothing is hidden: fill the hidden scores with −∞ before softmax"""
        return dropped(torch.softmax(attn_scores, dim=-1), keep, p)

    def only_the_future_hidden(attn_scores, hidden, keep, p):
        """only the future is hidden: `hidden` may be True elsewhere too"""
        return dropped(weights(attn_scores, torch.ones_like(hidden).triu(diagonal=1)), keep, p)

    def hidden_inverted(attn_scores, hidden, keep, p):
        """hidden and visible are swapped: `hidden` is True where a score should be hidden"""
        return dropped(weights(attn_scores, ~hidden), keep, p)

    def hidden_inverted_in_a_product(attn_scores, hidden, keep, p):
        """some row has all its scores hidden, which makes nan: `hidden` is True where a score should be hidden"""
        return weights(attn_scores, ~hidden) * keep / (1 - p)

    def mask_after_softmax(attn_scores, hidden, keep, p):
        """the mask comes after softmax: what is hidden is still in the denominator"""
        return dropped(torch.softmax(attn_scores, dim=-1).masked_fill(hidden, 0.0), keep, p)

    def dropped_before_softmax(attn_scores, hidden, keep, p):
        """what is dropped is hidden before softmax, so the other weights of its row grow: drop after softmax"""
        return weights(attn_scores, hidden | ~keep) / (1 - p)

    def weights_minus_infinity(attn_scores, hidden, keep, p):
        """the mask comes after softmax: fill the hidden scores with −∞, not the weights"""
        return dropped(torch.softmax(attn_scores, dim=-1).masked_fill(hidden, -torch.inf), keep, p)

    def hidden_scores_0(attn_scores, hidden, keep, p):
        """hidden scores are 0 or nearly so, and softmax gives such a score a weight too: use −∞"""
        return dropped(torch.softmax(attn_scores.masked_fill(hidden, 0.0), dim=-1), keep, p)

    def no_softmax(attn_scores, hidden, keep, p):
        """these are still scores: softmax should make them weights before any is dropped"""
        return dropped(attn_scores.masked_fill(hidden, -torch.inf), keep, p)

    def softmax_over_the_queries(attn_scores, hidden, keep, p):
        """before dropout the columns sum to 1: softmax should run along each row, over the keys"""
        return dropped(torch.softmax(attn_scores.masked_fill(hidden, -torch.inf), dim=0), keep, p)


class Tokens(Exercise, number="7.4", where="sections 7.1 and 7.2", asks="a module that drops whole tokens"):
    cases = {
        "p = 0.6": (0.6, torch.linspace(-2, 2, 3_600).view(20, 30, 6)),  # none is 0
        "p = 0.25": (0.25, torch.linspace(-3, 3, 2_400).view(30, 16, 5)),
    }

    def call(answer, p, x):
        outputs = trained(answer(p), x)  # (runs, batch_size, num_tokens, emb_dim)
        tokens = (outputs == 0).all(dim=-1)
        whole = torch.equal(tokens, (outputs == 0).any(dim=-1))
        demand(whole, "tokens lose some of their entries: drop all of a token or nothing")
        demand((tokens != tokens[:, :, :1]).any(), "whole texts are dropped or kept: make one decision per token")
        differ = (tokens != tokens[:, :1]).any()
        demand(differ, "the same positions are dropped in every text: each text needs its own decisions")
        demand_dropout(outputs, x, p, tokens, "tokens")

    class right(nn.Dropout):
        def forward(self, x):
            return x * super().forward(torch.ones_like(x[..., :1]))

    class single_entries(nn.Dropout):
        """tokens lose some of their entries: drop all of a token or nothing"""

    class same_positions(nn.Dropout):
        """the same positions are dropped in every text: each text needs its own decisions"""

        def forward(self, x):
            return x * super().forward(torch.ones_like(x[:1, :, :1]))

    class always_on(nn.Dropout):
        """two runs in eval mode return different outputs"""

        def forward(self, x):
            return x * F.dropout(torch.ones_like(x[..., :1]), self.p)


class Curves(Exercise, number="7.5", where="section 7.4", asks="a list of an epoch and True or False"):
    def right():
        return [2, True]

    def the_last():
        """the last model overfits: its held-out loss was lower earlier"""
        yield from ([5, True], [-1, True])

    def overfitting_missed():
        """the training loss says only how well the model knows its training text: read the other line"""
        yield from ([5, False], [-1, False])

    def too_late():
        """at that epoch the held-out loss is higher than before: did you count the epochs from 0?"""
        yield from ([3, True], [4, True])

    def too_early():
        """after that epoch the held-out loss goes on falling"""
        yield from ([0, True], [1, True])

    def no_overfitting():
        """the training loss falls while the held-out loss rises: that is overfitting"""
        yield from ([epoch, False] for epoch in range(5))

    def a_loss():
        """the first item is a loss: it should be the number of an epoch"""
        losses = (2.6, 1.6, 1.3, 0.8, 2.7, 2.3, 2.2)
        yield from ([loss, last] for loss in losses for last in (True, False))

    def no_such_epoch():
        """there is no epoch 6: the first of the six is epoch 0"""
        yield from ([6, True], [6, False])
