"""How something that both a lesson and utils define is compared: name -> what differs, sentence by sentence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import torch

from utils.gpt import GPTConfig, GPTModel
from utils.tokenizer import get_tokenizer

Comparison = Callable[[object, object], Iterator[str]]  # of the lesson's and ours

TEXTS = [
    "Every effort moves you",
    "",
    " two  spaces",
    "Hello,\r\n\tworld!\n\n",
    "∩ Zoë 猫 🐈",
    "<|endoftext|>",
    "x" * 99,
]
ROWS = [["Every effort moves you", "Every day holds a"], ["one"], ["cat", "cat", " cat"]]
UNEQUAL = [*ROWS, ["Hello,", "Hello"], ["a", "Every effort moves you", "two  spaces"]]
IDS = [[], [24861], [50256], list(range(300)), *map(get_tokenizer().encode_ordinary, TEXTS[2:])]
WORDS = ["cat", " moves", "∩", "猫", "aaaaaaa", " 1234567", "\n\n", "a"]
WINDOWS = [
    (10, 4, 1),
    (10, 4, 2),
    (10, 4, 4),
    (10, 4, 5),
    (5, 4, 1),
    (5, 1, 3),
    (50, 7, 20),
]  # num_tokens, context_length, stride

SIZES = GPTConfig(vocab_size=50, context_length=6, emb_dim=8, n_heads=2, n_layers=2, drop_rate=0.0, qkv_bias=False)
UNTIED = replace(SIZES, n_layers=3, qkv_bias=True, tie_weights=False)


def same(a: object, b: object) -> bool:
    """Whether results agree: in type, shape, dtype and value."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def on(*inputs) -> Comparison:
    """Compare two functions on these inputs; a tuple holds several arguments."""

    def compare(lesson, ours):
        for arguments in inputs:
            arguments = arguments if isinstance(arguments, tuple) else (arguments,)
            if not same(lesson(*arguments), ours(*arguments)):
                yield f"they differ on {arguments}"

    return compare


def windows(lesson, ours):
    for num_tokens, context_length, stride in WINDOWS:
        a, b = (make(torch.arange(num_tokens), context_length, stride) for make in (lesson, ours))
        if len(a) != len(b) or not all(same(tuple(a[i]), tuple(b[i])) for i in range(len(b))):
            yield f"they differ on {num_tokens} tokens, context_length {context_length}, stride {stride}"


def loaders(lesson, ours):
    for num_tokens, context_length, stride in WINDOWS[:4]:
        for shuffle, drop_last, seed in ((False, False, 0), (False, True, 0), (True, False, 0), (True, True, 7)):
            options = {"context_length": context_length, "stride": stride, "batch_size": 2, "seed": seed}
            options |= {"shuffle": shuffle, "drop_last": drop_last}
            a, b = (make(torch.arange(num_tokens), **options) for make in (lesson, ours))
            for epoch in range(2):
                if not same(list(map(tuple, a)), list(map(tuple, b))):
                    yield f"epoch {epoch} differs with {options}"


def modules(*arguments: tuple, inputs: Callable[[tuple], list[torch.Tensor]]) -> Comparison:
    """Make a module of each kind, copy the weights of ours into the lesson's, and compare the outputs."""

    def compare(lesson, ours):
        for args in arguments:
            a, b = lesson(*args), ours(*args)
            a.load_state_dict(b.state_dict())
            for x, method in product(inputs(args), ("forward", "attention_weights")):
                # Not bit for bit: with another number of batch axes torch may take another route.
                if hasattr(b, method) and not torch.allclose(getattr(a, method)(x), getattr(b, method)(x), atol=1e-6):
                    yield f"{method} differs: made with {args}, called with {tuple(x.shape)}"

    return compare


def generators(lesson, ours):
    """Two loops that generate: the same tokens from the same random state, and without dropout in every mode."""
    model = GPTModel(replace(UNTIED, drop_rate=0.5))
    choices = [
        {},
        {"top_k": 3},
        *({"temperature": t, "top_k": k} for t, k in product((0.05, 1.0, 3.0), (None, 1, 5, 50))),
    ]
    lengths = ((1, 1, 0), (2, 3, 4), (3, 4, 9))  # rows, tokens, new tokens: the last goes past the context length
    for (rows, num_tokens, new), options in product(lengths, choices):
        ids, results = torch.randint(0, 50, (rows, num_tokens)), {}
        for mode, (whose, generate) in product(("eval", "train"), (("the lesson's", lesson), ("ours", ours))):
            model.train(mode == "train")
            torch.manual_seed(1)
            results[f"{whose} in {mode} mode"] = generate(model, ids, new, **options)
            if any(module.training != (mode == "train") for module in model.modules()):
                yield f"{whose} does not leave the model in {mode} mode"
        first, *others = results
        for other in others:
            if not torch.equal(results[first], results[other]):
                yield f"{first} and {other} differ on {rows} x {num_tokens} tokens, {new} new ones, {options}"
    for whose, generate in (("the lesson's", lesson), ("ours", ours)):
        if torch.equal(*(generate(model, ids, 9, temperature=1.0) for _ in range(2))):
            yield f"{whose} samples the same tokens twice: it does not go on in torch's random state"


def some_ids(arguments: tuple) -> list[torch.Tensor]:
    return [torch.tensor([[1, 2, 3], [3, 3, 0]]), torch.tensor([[6]])]


def vectors(arguments: tuple) -> list[torch.Tensor]:
    return [torch.randn(5, arguments[0]), torch.randn(2, 3, arguments[0]), torch.randn(4, 1, arguments[0])]


COMPARE: dict[str, Comparison] = {
    "text_to_ids": on(*TEXTS, *((text, True) for text in TEXTS)),
    "ids_to_text": on(*IDS, *map(torch.tensor, IDS)),
    "token_texts": on(*IDS),
    "texts_to_batch": on(*ROWS),
    "pad_texts": on(*UNEQUAL, *((texts, 0) for texts in UNEQUAL)),
    "bpe_merge_steps": on(*WORDS),
    "TokenWindows": windows,
    "make_loader": loaders,
    "TokenAndPositionEmbedding": modules(
        (50, 8, 6), (7, 3, 4), inputs=lambda _: [torch.tensor([[1, 2, 3], [3, 3, 0]]), torch.tensor([6, 5, 0, 1])]
    ),
    "simple_attention": on(*vectors((3,))),
    "SelfAttention": modules((3, 2), (8, 8), (4, 6, True), inputs=vectors),
    "CausalAttention": modules((3, 2, 8, 0.0), (4, 6, 5, 0.0, True), inputs=vectors),
    "StackedHeads": modules((3, 4, 8, 0.0, 2), (6, 6, 5, 0.0, 3, True), inputs=vectors),
    "MultiHeadAttention": modules((3, 4, 8, 0.0, 2), (6, 6, 5, 0.0, 3, True), inputs=vectors),
    "FeedForward": modules((3,), (8,), inputs=vectors),
    "TransformerBlock": modules((SIZES,), (UNTIED,), inputs=lambda _: vectors((8,))),
    "GPTModel": modules((SIZES,), (UNTIED,), inputs=some_ids),
    "generate": generators,
}


def first_difference(name: str, lesson: object, ours: object) -> str | None:
    """Say where the lesson's function or class and ours differ; None where they are the same."""
    if name not in COMPARE:
        return "the lesson defines it, and utils too: write a comparison for it in tests/comparisons.py"
    torch.manual_seed(0)
    return next(COMPARE[name](lesson, ours), None)
