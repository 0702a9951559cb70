"""The exercises of lesson 7, dropout."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.exercises import Exercise, Mistake

# 7.A  A module that drops nothing in eval mode. The outcome is a list of complaints.


def _mode_complaints(answer: type) -> list[str]:
    module, x = answer(), torch.ones(4_000)
    trained = [module.train()(x.clone()) for _ in range(2)]
    judged = [module.eval()(x.clone()) for _ in range(2)]
    found = {
        "two runs in eval mode differ": not torch.equal(*judged),
        "in eval mode the output is not the input": not torch.equal(judged[0], x),
        "in training mode nothing is dropped": torch.equal(trained[0], x),
        "two runs in training mode drop the same entries": torch.equal(*trained),
        "p is 0.5, so in training mode ones become 0 or 2; yours become something else": not set(trained[0].tolist())
        <= {0.0, 2.0},
    }
    return [complaint for complaint, is_true in found.items() if is_true]


class _Quiet(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, p=0.5, training=self.training)


class _Always(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, p=0.5)


class _Never(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, p=0.5, training=False)


class _TurnedRound(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, p=0.5, training=not self.training)


class _NewEachTime(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.Dropout(0.5)(x)


_QUIET = Exercise(
    reference=_Quiet,
    probe=_mode_complaints,
    mistakes=[
        Mistake("always on", _Always, "in eval mode the module returns a different output each time"),
        Mistake("always off", _Never, "now nothing is dropped in training mode either"),
        Mistake("inverted", _TurnedRound, "it drops in eval mode and not in training mode: that is inverted"),
    ],
    where="section 7.2",
)

# 7.B  Evaluate without dropout, and leave the mode unchanged.


def _judge_complaints(answer: object) -> list[str]:
    x, found = torch.ones(200), {}
    for was_training in (True, False):
        model = nn.Sequential(nn.Dropout(0.5), nn.Identity()).train(was_training)
        output = answer(model, x)
        mode = "training" if was_training else "eval"
        found |= {
            f"nothing is returned for a model in {mode} mode": output is None,
            f"dropout was on while a model in {mode} mode was evaluated": output is not None
            and not torch.equal(output, x),
            f"a model in {mode} mode is left in another mode": model.training != was_training,
            f"a part of a model in {mode} mode is left in another mode": model[0].training != was_training,
        }
    return [complaint for complaint, is_true in found.items() if is_true]


def _judge(model: nn.Module, x: Tensor) -> Tensor:
    was_training = model.training
    output = model.eval()(x)
    model.train(was_training)
    return output


def _left_in_eval(model: nn.Module, x: Tensor) -> Tensor:
    return model.eval()(x)


def _always_train(model: nn.Module, x: Tensor) -> Tensor:
    output = model.eval()(x)
    model.train()
    return output


_JUDGE = Exercise(
    reference=_judge,
    probe=_judge_complaints,
    mistakes=[
        Mistake("left in eval", _left_in_eval, "a model that was in training mode no longer has dropout afterwards"),
        Mistake(
            "always back to training",
            _always_train,
            "a model that was in eval mode is left in training mode: restore the mode it had",
        ),
        Mistake(
            "no eval",
            lambda model, x: model(x),
            "dropout is on during evaluation: call eval() first, which reaches all modules inside",
        ),
    ],
    where="section 7.4",
)

# 7.1  One line: dropout with a given mask.

_X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
_KEEP = torch.tensor([[True, False, True], [True, True, False]])


def _drop(x: Tensor, keep: Tensor, p: float) -> Tensor:
    return torch.where(keep, x / (1 - p), 0.0)


_BY_HAND = Exercise(
    keeps_arguments=True,
    reference=_drop,
    cases=[(_X, _KEEP, 0.2), (_X, ~_KEEP, 0.75), (_X, torch.ones_like(_KEEP), 0.0)],
    mistakes=[
        Mistake("not scaled", lambda x, keep, p: x * keep, "what is kept is unchanged: divide it by 1 − p"),
        Mistake(
            "divided by p",
            lambda x, keep, p: x * keep / p,
            "you divide by p, which fails for p = 0: divide what is kept by 1 − p",
        ),
        Mistake(
            "scaled down",
            lambda x, keep, p: x * keep * (1 - p),
            "what is kept became smaller: divide it by 1 − p instead of multiplying",
        ),
        Mistake(
            "mask inverted",
            lambda x, keep, p: _drop(x, ~keep, p),
            "you dropped what should be kept: keep is True where an entry is kept",
        ),
    ],
    where="section 7.1",
)

# 7.2  Values by hand: threes, p = 0.25.

_VALUES = Exercise(
    reference=[0.0, 4.0, 3.0],
    mistakes=[
        Mistake("not scaled", [0.0, 3.0, 3.0], "what is kept is divided by 1 − p, so it is no longer 3"),
        Mistake("divided by p", [0.0, 12.0, 3.0], "you divided by p: divide by 1 − p"),
        Mistake("multiplied", [0.0, 2.25, 3.0], "you multiplied by 1 − p: divide by it"),
        Mistake("scaled in eval too", [0.0, 4.0, 4.0], "in eval mode dropout changes nothing at all"),
        Mistake(
            "scaled down in eval",
            [0.0, 4.0, 2.25],
            "in eval mode there is nothing to do: the scaling in training already makes up for it",
        ),
    ],
    where="sections 7.1 and 7.2",
)

# 7.3  Mask, softmax, dropout.

_SCORES = torch.tensor([[0.2, 1.5, -0.3], [2.0, 0.0, 0.7], [-1.0, 0.4, 0.9]])
_HIDDEN = torch.ones(3, 3).triu(diagonal=1).bool()
_KEEP_3 = torch.tensor([[True, True, False], [False, True, True], [True, True, False]])


def _weights(scores: Tensor, hidden: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)


_ORDER = Exercise(
    keeps_arguments=True,
    reference=lambda scores, hidden, keep, p: _drop(_weights(scores, hidden), keep, p),
    cases=[(_SCORES, _HIDDEN, _KEEP_3, 0.5), (2 * _SCORES.T, _HIDDEN, ~_KEEP_3 | torch.eye(3).bool(), 0.1)],
    mistakes=[
        Mistake(
            "on the scores",
            lambda scores, hidden, keep, p: _weights(_drop(scores, keep, p), hidden),
            "you dropped scores: a score of 0 still gets a weight, so nothing is switched off",
        ),
        Mistake(
            "rows normalised again",
            lambda scores, hidden, keep, p: F.normalize(_drop(_weights(scores, hidden), keep, p), p=1.0, dim=-1),
            "you made the rows sum to 1 again: after dropout they do so only on average",
        ),
        Mistake(
            "not scaled",
            lambda scores, hidden, keep, p: _weights(scores, hidden) * keep,
            "what is kept is unchanged: divide it by 1 − p",
        ),
        Mistake(
            "no mask",
            lambda scores, hidden, keep, p: _drop(torch.softmax(scores, dim=-1), keep, p),
            "the future is visible: hide it before softmax",
        ),
        Mistake(
            "hidden by dropping",
            lambda scores, hidden, keep, p: _weights(scores, hidden | ~keep) / (1 - p),
            "you hid the dropped entries before softmax, so the others take their weight: that is masking, not dropout",
        ),
        Mistake(
            "mask after softmax",
            lambda scores, hidden, keep, p: _drop(torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0), keep, p),
            "the mask comes after softmax: the future is still in the denominator",
        ),
    ],
    where="section 7.3",
)

# 7.4  Whole tokens. The outcome is a list of complaints.


def _token_complaints(answer: type) -> list[str]:
    module, x = answer(0.25), torch.rand(40, 50, 6) + 1
    judged, trained = module.eval()(x.clone()), module.train()(x.clone())
    if trained is None or judged is None:
        return ["forward returns None: the return is missing"]
    if trained.shape != x.shape:
        return [f"the shape changes from {tuple(x.shape)} to {tuple(trained.shape)}"]
    gone = trained == 0
    whole, share = gone.all(dim=-1), gone.float().mean().item()
    kept = trained[~gone] / x[~gone]
    found = {
        "tokens are dropped in eval mode as well: check self.training": bool((judged == 0).any()),
        "in eval mode the output is not the input: scale only in training mode": not torch.equal(judged, x),
        "in training mode nothing is dropped": share == 0,
        "tokens lose some of their entries: drop all of a token or nothing": not torch.equal(whole, gone.any(dim=-1)),
        "whole texts are dropped: make one decision per token": bool(whole.float().mean(1).std() > 0.3),
        "the same positions are dropped in every text: each text needs its own decisions": bool(
            (whole == whole[:1]).all()
        ),
        "the fraction of dropped tokens is not p": abs(share - 0.25) > 0.1,
        "every text loses the same number of tokens: each token needs its own random decision": whole.sum(1)
        .unique()
        .numel()
        == 1,
        "what is kept is not divided by 1 − p": kept.numel() > 0
        and not torch.allclose(kept, torch.full_like(kept, 4 / 3), atol=1e-3),
    }
    return [complaint for complaint, is_true in found.items() if is_true][:1]


class _TokenDropout(nn.Module):
    """Right, and a base class for the mistakes, which make other decisions."""

    scale = True

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def decisions(self, x: Tensor) -> Tensor:
        return x[..., :1]

    def active(self) -> bool:
        return self.training

    def forward(self, x: Tensor) -> Tensor:
        factor = F.dropout(torch.ones_like(self.decisions(x)), self.p, training=self.active())
        return x * (factor if self.scale or not self.active() else (factor > 0).float())


class _Entries(_TokenDropout):
    def decisions(self, x: Tensor) -> Tensor:
        return x


class _Features(_TokenDropout):
    def decisions(self, x: Tensor) -> Tensor:
        return x[:, :1]


class _Places(_TokenDropout):
    def decisions(self, x: Tensor) -> Tensor:
        return x[:1, :, :1]


class _AlwaysOn(_TokenDropout):
    def active(self) -> bool:
        return True


class _NotScaled(_TokenDropout):
    scale = False


_TOKENS = Exercise(
    reference=_TokenDropout,
    probe=_token_complaints,
    mistakes=[
        Mistake("single entries", _Entries, "single entries are dropped: make one decision for a whole token"),
        Mistake(
            "same positions", _Places, "the same positions are dropped in every text: each text needs its own decisions"
        ),
        Mistake("always on", _AlwaysOn, "tokens are dropped in eval mode as well: check self.training"),
        Mistake("not scaled", _NotScaled, "what is kept is unchanged: divide it by 1 − p"),
    ],
    where="sections 7.1 and 7.2",
)

# 7.5  Read the curves.

_CURVES = Exercise(
    reference=[2, True],
    mistakes=[
        Mistake(
            "the last", [5, True], "you keep the last model although it overfits: its held-out loss was lower earlier"
        ),
        Mistake(
            "training loss believed",
            [5, False],
            "the training loss only shows how well the model knows its training text",
        ),
        Mistake("counted from 1", [3, True], "right, but counted from 1: the epochs are 0 to 5"),
        Mistake("no overfitting", [2, False], "the lines drift apart and the held-out loss rises: that is overfitting"),
        Mistake(
            "the first", [0, True], "the lines are closest there, but both losses are high: held-out loss falls further"
        ),
    ],
    where="section 7.4",
)

EXERCISES = {
    "7.A": _QUIET,
    "7.B": _JUDGE,
    "7.1": _BY_HAND,
    "7.2": _VALUES,
    "7.3": _ORDER,
    "7.4": _TOKENS,
    "7.5": _CURVES,
}
