"""The answers of tests/answers/: what learners might type for each exercise, right and wrong, as data."""

import copy
import functools
import itertools
import math
import random
import re
import time
import tomllib

import numpy as np
import regex
import torch
import torch.nn.functional as F
from lessons import ROOT
from torch import Tensor, nn

NAMES = {
    "Tensor": Tensor, "F": F, "nn": nn, "np": np, "torch": torch, "copy": copy, "functools": functools,
    "itertools": itertools, "math": math, "random": random, "re": re, "regex": regex, "time": time,
}  # fmt: skip


@functools.cache
def answers() -> dict[str, list[dict[str, str]]]:
    """Return the tables of each exercise, with the keys right, or wrong and says, or equal and because."""
    found = {}
    for path in sorted((ROOT / "tests" / "answers").glob("lesson_*.toml")):
        found |= tomllib.loads(path.read_text(encoding="utf-8"))
    return found


def built(code: str):
    """Return what the code of an answer defines under the name `answer`."""
    names = {"__name__": "__main__", **NAMES}
    exec(compile(code, "answer", "exec"), names)
    return names["answer"]
