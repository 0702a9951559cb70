"""What a lesson builds and utils has too must be the same thing: compared result by result."""

import ast
import importlib
import pkgutil
from dataclasses import replace

import pytest
import torch
from lessons import NOTEBOOKS, code_cells, read, run, tasks

import utils
from utils.gpt import GPTConfig, GPTModel
from utils.tokenizer import get_tokenizer

TEXTS = [
    "Every effort moves you",
    "",
    " two  blanks",
    "Hello,\r\n\tworld!\n\n",
    "∩ Zoë 猫 🐈",
    "<|endoftext|>",
    "x" * 99,
]
ROWS = [["Every effort moves you", "Every day holds a"], ["one"], ["cat", "cat", " cat"]]
UNEQUAL = [*ROWS, ["Hello,", "Hello"], ["a", "Every effort moves you", "two  blanks"]]
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
]  # N, context_length, stride


def same(a, b):
    """Whether results agree: in type, shape, dtype and value."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def on(*inputs):
    """A comparison of two functions on these inputs; a tuple holds several arguments."""

    def compare(lesson, ours):
        for arguments in inputs:
            arguments = arguments if isinstance(arguments, tuple) else (arguments,)
            assert same(lesson(*arguments), ours(*arguments)), f"they differ on {arguments}"

    return compare


def windows(lesson, ours):
    for num_tokens, context_length, stride in WINDOWS:
        a, b = (make(torch.arange(num_tokens), context_length, stride) for make in (lesson, ours))
        assert len(a) == len(b)
        assert all(same(tuple(a[i]), tuple(b[i])) for i in range(len(b))), (num_tokens, context_length, stride)


def loaders(lesson, ours):
    for num_tokens, context_length, stride in WINDOWS[:4]:
        for shuffle, drop_last, seed in ((False, False, 0), (False, True, 0), (True, False, 0), (True, True, 7)):
            options = {"context_length": context_length, "stride": stride, "batch_size": 2, "seed": seed}
            options |= {"shuffle": shuffle, "drop_last": drop_last}
            a, b = (make(torch.arange(num_tokens), **options) for make in (lesson, ours))
            for epoch in range(2):
                assert same(list(map(tuple, a)), list(map(tuple, b))), f"epoch {epoch} differs with {options}"


def modules(*arguments, inputs):
    """Make a module of each kind, copy the weights of ours into the lesson's, and compare what comes out."""

    def compare(lesson, ours):
        for args in arguments:
            a, b = lesson(*args), ours(*args)
            a.load_state_dict(b.state_dict())
            for x in inputs(args):
                # Not bit for bit: with another number of batch axes torch may take another route.
                assert torch.allclose(a(x), b(x), atol=1e-6), f"{args} with {tuple(x.shape)}"
                if hasattr(b, "attention_weights"):
                    assert torch.allclose(a.attention_weights(x), b.attention_weights(x), atol=1e-6)

    return compare


def writers(lesson, ours):
    model = GPTModel(SIZES).eval()
    for options in ({}, {"temperature": 1.0, "top_k": 1}):
        for num_tokens, new in ((1, 0), (3, 4), (4, 9)):  # the last goes beyond the context length
            ids = torch.randint(0, 50, (2, num_tokens))
            assert torch.equal(lesson(model, ids, new, **options), ours(model, ids, new, **options))


def some_ids(arguments):
    return [torch.tensor([[1, 2, 3], [3, 3, 0]]), torch.tensor([[6]])]


def vectors(arguments):
    return [torch.randn(5, arguments[0]), torch.randn(2, 3, arguments[0]), torch.randn(4, 1, arguments[0])]


SIZES = GPTConfig(vocab_size=50, context_length=6, emb_dim=8, n_heads=2, n_layers=2, drop_rate=0.0, qkv_bias=False)
UNTIED = replace(SIZES, n_layers=3, qkv_bias=True, tie_weights=False)

COMPARE = {
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
    "generate": writers,
}


def public_names():
    """Name -> function or class that a module of utils defines."""
    found = {}
    for info in pkgutil.iter_modules(utils.__path__):
        if not info.ispkg:
            module = importlib.import_module(f"utils.{info.name}")
            own = {
                name: item for name, item in vars(module).items() if getattr(item, "__module__", "") == module.__name__
            }
            found |= {name: item for name, item in own.items() if callable(item) and not name.startswith("_")}
    return found


def taught():
    """(notebook, name) of each function and class that a lesson defines, exercises apart, and utils too."""
    public = public_names()
    for path in NOTEBOOKS:
        stubs = [id(task.below[0]) for task in tasks(read(path))]
        for cell in code_cells(read(path)):
            for node in ast.parse(cell.source).body if id(cell) not in stubs else ():
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in public:
                    yield path, node.name


TAUGHT = sorted(set(taught()))


@pytest.mark.parametrize(("path", "name"), TAUGHT, ids=[f"{path.stem}-{name}" for path, name in TAUGHT])
def test_lesson_and_utils_agree(path, name):
    assert name in COMPARE, f"write a comparison for {name}: {path.name} defines it, and utils too"
    names, _ = run(path)
    COMPARE[name](names[name], public_names()[name])


def test_no_comparison_is_idle():
    idle = COMPARE.keys() - {name for _, name in TAUGHT}
    assert not idle, f"no lesson defines {sorted(idle)}"
