"""Training a model, and measuring its loss, in one process or in several; `python -m utils.training` does it."""

from utils.training.checkpoints import Checkpoints
from utils.training.history import History
from utils.training.loop import train
from utils.training.loss import evaluate
from utils.training.processes import DistributedLoader, make_distributed_loader, torchrun
from utils.training.schedule import learning_rate, parameter_groups

__all__ = [
    "Checkpoints",
    "DistributedLoader",
    "History",
    "evaluate",
    "learning_rate",
    "make_distributed_loader",
    "parameter_groups",
    "torchrun",
    "train",
]
