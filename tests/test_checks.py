"""The mechanism of utils.exercises on a lesson made up here: verdicts, kinds of difference, and nonsense."""

import copy
import random
import re
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
import torch
from states import random_states
from torch import nn

import utils.exercises
from utils.exercises import Exercise, Mistake, Verdict, check

NUMBER = "77.1"
WHERE = "section 3"


@pytest.fixture
def lesson(monkeypatch):
    """Return a function that puts one exercise into a lesson 77."""

    def put(reference, mistakes=(), **options):
        name = "utils.exercises.lesson_77"
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.EXERCISES = {NUMBER: Exercise(reference, mistakes, WHERE, **options)}
        monkeypatch.setitem(sys.modules, name, module)

    return put


def judged(answer):
    """Check an answer, and what holds of every verdict: one readable line and no address in it."""
    verdict = check(NUMBER, answer)
    assert isinstance(verdict, Verdict)
    assert repr(verdict) == verdict.message
    assert len(verdict.message.splitlines()) == 1, "one line"
    assert verdict.message.isprintable()
    assert len(verdict.message) < 600, "a line, not a page"
    assert NUMBER in verdict.message
    assert not re.search(r"0x[0-9a-f]{6,}", verdict.message), "an address is different in each run"
    assert verdict.passed == (verdict.mistake is None)
    if not verdict.passed and verdict.mistake != "not attempted":
        assert WHERE in verdict.message
    return verdict


# A tiny exercise: twice each number, as a tensor


def twice(numbers):
    return 2 * torch.tensor(numbers)


def squares(numbers):
    return torch.tensor(numbers) ** 2


def halves(numbers):
    return torch.tensor(numbers) / 2


def unfinished(numbers):
    raise NotImplementedError("half done")


MISTAKES = [
    Mistake("squared", squares, "your function squares"),
    Mistake("halved", halves, "your function halves"),
    Mistake("raises", unfinished, "your function is half done"),
]
CASES = [([1, 2, 3],), ([4, 5],)]


@pytest.fixture
def doubling(lesson):
    lesson(twice, MISTAKES, cases=CASES)


@pytest.mark.usefixtures("doubling")
class TestVerdicts:
    @pytest.mark.parametrize(
        "answer",
        [
            twice,
            lambda numbers: torch.tensor([number + number for number in numbers]),
            lambda *numbers: 2 * torch.tensor(*numbers),
            lambda numbers, factor=2: factor * torch.tensor(numbers),
        ],
    )
    def test_right(self, answer):
        verdict = judged(answer)
        assert verdict.passed is True
        assert verdict.mistake is None
        assert verdict.message.startswith("✓")

    @pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
    def test_each_mistake_is_named(self, mistake):
        verdict = judged(mistake.answer)
        assert verdict.passed is False
        assert verdict.mistake == mistake.name
        assert mistake.message in verdict.message

    def test_a_mistake_is_known_by_what_it_does(self):
        assert judged(lambda numbers: torch.tensor([number * number for number in numbers])).mistake == "squared"

    def test_right_in_some_cases_only(self):
        verdict = judged(lambda numbers: twice(numbers) if len(numbers) == 3 else twice(numbers) + 1)
        assert verdict.mistake == "wrong value"
        assert "[4, 5]" in verdict.message, "the case that shows it"
        assert "[9, 11]" in verdict.message
        assert "[8, 10]" in verdict.message

    def test_an_answer_may_write_into_its_arguments(self):
        def greedy(numbers):
            result = twice(numbers)
            numbers.clear()
            return result

        cases = copy.deepcopy(CASES)
        for _ in range(2):
            assert judged(greedy).passed
        assert judged(squares).mistake == "squared"
        assert judged(lambda numbers: twice(numbers) + 1).mistake == "wrong value"
        assert cases == CASES

    def test_random_states_are_left_alone(self):
        def drawing(numbers):
            random.random()
            np.random.rand()
            torch.rand(3)
            return twice(numbers)

        def seeding(numbers):
            random.seed(1)
            np.random.seed(1)
            torch.manual_seed(1)
            return squares(numbers)

        before = random_states()
        assert judged(drawing).passed
        assert random_states() == before
        assert judged(seeding).mistake == "squared"
        assert random_states() == before

    def test_a_verdict_of_one_answer_does_not_hang_on_the_last(self):
        verdicts = [judged(answer).mistake for answer in (squares, twice, halves, None, twice, squares)]
        assert verdicts == ["squared", None, "halved", "no function", None, "squared"]


# Stubs


def empty_stub(numbers): ...


def told_stub(numbers):
    """Return twice each number."""
    ...


def typed_stub(numbers: list[int]) -> torch.Tensor:
    """Return twice each number."""
    # your code here
    ...


def returning_stub(numbers):
    return ...


def variable_stub(numbers):
    doubled = ...
    return doubled


def adding_stub(numbers):
    return torch.tensor(numbers) + ...


def calling_stub(numbers):
    return torch.stack(..., dim=0)


def shape_stub(numbers):
    return twice(numbers).view(...)


def axis_stub(numbers):
    return twice(numbers).sum(dim=...)


def looping_stub(numbers):
    doubled = []
    for number in ...:
        doubled.append(2 * number)
    return torch.tensor(doubled)


def list_stub(numbers):
    return [..., ...]


def nested_stub(numbers):
    return [(1, ...)]


def dictionary_stub(numbers):
    return {"doubled": ...}


def half_stub(numbers):
    return twice(numbers) if len(numbers) == 3 else ...


def keyword_stub(numbers):
    return sorted(numbers, key=...)


def attribute_stub(numbers):
    return torch.tensor(numbers).matmul(...)


STUBS = [value for name, value in list(globals().items()) if name.endswith("_stub")]


def untouched(verdict):
    return not verdict.passed and verdict.mistake == "not attempted" and "not attempted yet" in verdict.message


@pytest.mark.usefixtures("doubling")
@pytest.mark.parametrize("stub", [..., *STUBS], ids=lambda stub: getattr(stub, "__name__", "..."))
def test_an_untouched_stub_is_not_attempted_yet(stub):
    assert untouched(judged(stub))


@pytest.mark.parametrize(
    "stub",
    [..., [...], (1, ...), [[1, ...]], {"a": ...}, [1, 2, ...]],
    ids=["...", "list", "tuple", "deep", "dict", "last"],
)
@pytest.mark.parametrize("reference", [6, [1, 2, 3], {"a": 1}, torch.tensor([1])], ids=lambda r: type(r).__name__)
def test_a_value_that_is_still_a_stub(lesson, stub, reference):
    lesson(reference)
    assert untouched(judged(stub))


def test_a_class_that_is_still_a_stub(lesson):
    class Counter:
        def __init__(self, start):
            self.value = start

        def up(self):
            self.value += 1
            return self.value

    class Stub: ...

    class StubOfMethods:
        def __init__(self, start): ...

        def up(self): ...

    class HalfStub:
        def __init__(self, start):
            self.value = ...

        def up(self):
            return self.value + 1

    lesson(Counter, [Mistake("raises", 5, "no class at all")], probe=lambda answer: answer(3).up())
    assert judged(Counter).passed
    for stub in (..., Stub, StubOfMethods, HalfStub):
        assert untouched(judged(stub)), stub


@pytest.mark.usefixtures("doubling")
class TestWhatIsNoStub:
    def test_a_forgotten_return(self):
        def silent(numbers):
            twice(numbers)

        verdict = judged(silent)
        assert verdict.mistake != "not attempted"
        assert not verdict.passed
        assert "None" in verdict.message

    def test_a_short_answer(self, lesson):
        """As short as an empty function, but it does return something."""

        def unchanged(numbers):
            return numbers

        def constant(numbers):
            return 5

        assert judged(unchanged).mistake == "wrong type"
        assert judged(constant).mistake == "wrong type"
        lesson(unchanged, [Mistake("always 5", constant, "it is 5 for every input")], cases=[(1,), (2,)])
        assert judged(unchanged).passed
        assert judged(constant).mistake == "always 5"

    def test_all_axes(self):
        assert judged(lambda numbers: twice(numbers)[...]).passed
        assert judged(lambda numbers: squares(numbers)[..., :]).mistake == "squared"


# Nonsense: exact, one line, never a traceback


class Stranger:
    pass


class Mute:
    def __repr__(self):
        raise RuntimeError("no words")


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raising(error):
    def answer(numbers):
        raise error

    return answer


def itself():
    endless = []
    endless.append(endless)
    return endless


def knot():
    one, other = [], []
    one.append(other)
    other.append(one)
    return one


class TestNonsense:
    @pytest.mark.usefixtures("doubling")
    @pytest.mark.parametrize(
        ("answer", "kind", "words"),
        [
            (None, "no function", ["None"]),
            (6, "no function", ["6"]),
            ("twice", "no function", ["'twice'"]),
            ([2, 4, 6], "no function", ["[2, 4, 6]"]),
            (torch.tensor([2, 4, 6]), "no function", ["[2, 4, 6]"]),
            (lambda numbers: None, "nothing returned", ["None", "return"]),
            (lambda numbers: [2, 4, 6], "wrong type", ["[2, 4, 6]", "list", "tensor"]),
            (lambda numbers: np.array(numbers) * 2, "wrong type", ["ndarray", "tensor"]),
            (lambda numbers: (number for number in numbers), "wrong type", ["generator", "tensor"]),
            (lambda numbers: Stranger(), "wrong type", ["Stranger", "tensor"]),
            (lambda numbers: Stranger, "wrong type", ["Stranger", "tensor"]),
            (lambda numbers: twice, "wrong type", ["twice", "function", "tensor"]),
            (lambda numbers: nn.Linear(2, 2), "wrong type", ["Linear", "tensor"]),
            (lambda numbers: (twice(numbers), 1), "wrong type", ["tuple", "tensor"]),
            (lambda numbers: Mute(), "wrong type", ["Mute", "tensor"]),
            (lambda numbers: "one\ntwo", "wrong type", ["str", "tensor"]),
            (lambda numbers: "long " * 10_000, "wrong type", ["str", "tensor"]),
            (lambda numbers: itself(), "wrong type", ["list", "tensor"]),
            (lambda numbers: knot(), "wrong type", ["list", "tensor"]),
            (lambda numbers: twice([numbers]), "wrong shape", ["(1, 3)", "(3,)"]),
            (lambda numbers: twice(numbers)[:2], "wrong shape", ["(2,)", "(3,)"]),
            (lambda numbers: twice(numbers).float(), "wrong dtype", ["float32", "int64"]),
            (lambda numbers: torch.full((len(numbers),), torch.nan), "wrong dtype", ["float32", "int64"]),
            (lambda numbers: torch.ones(9, 9), "wrong shape", ["(9, 9)", "(3,)"]),
            (lambda numbers: torch.tensor(numbers), "wrong value", ["[1, 2, 3]", "[2, 4, 6]"]),
            (lambda: 1, "raised", ["TypeError", "0 positional arguments"]),
            (lambda numbers, factor: 1, "raised", ["TypeError", "factor"]),
            (lambda numbers: numbers["one"], "raised", ["TypeError"]),
            (lambda numbers: 1 / 0, "raised", ["ZeroDivisionError", "division by zero"]),
            (lambda numbers: {}["key"], "raised", ["KeyError", "'key'"]),
            (raising(ValueError("one\ntwo\n\nthree")), "raised", ["ValueError", "one"]),
            (raising(ValueError("one\rtwo\x0bthree\u2028four\x85")), "raised", ["ValueError", "one"]),
            (raising(ValueError("\n\none")), "raised", ["ValueError", "one"]),
            (raising(ValueError("long " * 10_000)), "raised", ["ValueError", "long"]),
            (raising(AssertionError()), "raised", ["AssertionError"]),
            (raising(StopIteration()), "raised", ["StopIteration"]),
            (raising(MuteError()), "raised", ["MuteError"]),
            (raising(SystemExit(1)), "raised", ["SystemExit"]),
            (Stranger, "raised", ["TypeError"]),
            (nn.Linear, "raised", ["TypeError"]),
        ],
    )
    def test_function_asked_for(self, answer, kind, words):
        verdict = judged(answer)
        assert not verdict.passed
        assert verdict.mistake == kind
        assert all(word in verdict.message for word in words)
        assert ":  " not in verdict.message, "a colon with nothing after it"

    @pytest.mark.usefixtures("doubling")
    def test_endless_recursion(self):
        def deep(numbers):
            return deep(numbers)

        assert judged(deep).mistake == "raised"

    @pytest.mark.usefixtures("doubling")
    def test_a_tensor_of_another_make(self):
        assert not judged(lambda numbers: twice(numbers).to_sparse()).passed

    @pytest.mark.usefixtures("doubling")
    def test_an_interrupt_stops_the_check(self):
        """And the random states are as they were, though the answer was stopped in its middle."""

        def drawing(numbers):
            random.random()
            np.random.rand()
            torch.rand(3)
            raise KeyboardInterrupt

        before = random_states()
        with pytest.raises(KeyboardInterrupt):
            check(NUMBER, drawing)
        assert random_states() == before

    @pytest.mark.parametrize(
        ("reference", "answer", "kind", "words"),
        [
            (6, None, "wrong type", ["None", "int"]),
            (6, 7, "wrong value", ["7"]),
            (6, 6.0, "wrong type", ["6.0", "float", "int"]),
            (6, True, "wrong type", ["True", "bool", "int"]),
            (6, "6", "wrong type", ["'6'", "str", "int"]),
            (6, torch.tensor(6), "wrong type", ["6", "tensor", "int"]),
            (6, np.array(6), "wrong type", ["6", "ndarray", "int"]),
            (6, twice, "wrong type", ["twice", "function", "int"]),
            (6, Stranger(), "wrong type", ["Stranger", "int"]),
            (6, (n for n in "6"), "wrong type", ["generator", "int"]),
            (0.5, float("nan"), "wrong value", ["nan"]),
            (0.5, float("inf"), "wrong value", ["inf"]),
            (True, False, "wrong value", ["False"]),
            ("cat", "cat\n", "wrong value", [r"cat\n"]),
            ("cat", b"cat", "wrong type", ["b'cat'", "bytes", "str"]),
            ([1, 2, 3], [1, 2], "wrong length", ["2", "3"]),
            ([1, 2, 3], [], "wrong length", ["0", "3"]),
            ([1, 2, 3], [1, 5, 3], "wrong value", ["1"]),
            ([1, 2, 3], "123", "wrong type", ["'123'", "str", "list"]),
            ([1, 2, 3], torch.tensor([1, 2, 3]), "wrong type", ["tensor", "list"]),
            ([1, 2, 3], itself(), "wrong length", ["1", "3"]),
            ({"a": 1}, {"a": 2}, "wrong value", ["2"]),
            ({"a": 1}, {"b": 1}, "wrong value", ["b"]),
            (torch.ones(2), torch.full((2,), torch.nan), "wrong value", ["nan"]),
            (torch.ones(2), torch.ones(2, 1), "wrong shape", ["(2, 1)", "(2,)"]),
            (torch.ones(2), torch.ones(2, dtype=torch.float64), "wrong dtype", ["float64", "float32"]),
            (torch.ones(2), np.ones(2), "wrong type", ["ndarray", "tensor"]),
            (torch.ones(2), [1.0, 1.0], "wrong type", ["list", "tensor"]),
            (torch.tensor([True]), torch.tensor([False]), "wrong value", ["False"]),
        ],
    )
    def test_value_asked_for(self, lesson, reference, answer, kind, words):
        lesson(reference, [Mistake("far off", "far off", "you are far off")])
        verdict = judged(answer)
        assert not verdict.passed
        assert verdict.mistake == kind
        assert all(word in verdict.message for word in words)
        assert judged(reference).passed
        assert judged("far off").mistake == "far off"


# What counts as the same


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (6, np.int64(6)),
        (0.5, np.float32(0.5)),
        (0.1 + 0.2, 0.3),
        (float("nan"), float("nan")),
        (True, np.bool_(True)),
        ([1, 2], (1, 2)),
        ([[1, 2], 0.5], ([1, 2], 0.5)),
        ({"a": [1]}, {"a": (1,)}),
        (torch.tensor([0.1]), torch.tensor([0.1 + 1e-7])),
        (torch.tensor([torch.nan]), torch.tensor([torch.nan])),
        (torch.tensor([True]), torch.tensor([True])),
        (torch.ones(2), nn.Parameter(torch.ones(2))),
        ((torch.ones(2), torch.tensor([True])), [torch.ones(2), torch.tensor([True])]),
        ({"a": torch.ones(2)}, {"a": torch.ones(2)}),
        (np.array([1, 2]), np.array([1, 2])),
        ({"a": np.ones(2)}, {"a": np.ones(2)}),
        (torch.zeros(0), torch.zeros(0)),
        (None, None),
    ],
    ids=repr,
)
def test_same(lesson, reference, answer):
    lesson(reference, [Mistake("far off", "far off", "you are far off")])
    assert judged(answer).passed


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (124_412_160, 124_412_161),
        (torch.tensor([163_009_536]), torch.tensor([163_009_537])),
        (torch.tensor([50_256]), torch.tensor([50_255])),
        (0.80443, 0.73106),
        (torch.tensor([0.80443, 0.19557]), torch.tensor([0.73106, 0.26894])),
        (torch.tensor([1.0, torch.nan]), torch.tensor([torch.nan, 1.0])),
        (torch.tensor([1.0]), torch.tensor([torch.inf])),
        ([1, 2], [2, 1]),
        ((torch.ones(2), 1), (torch.ones(2), 2)),
        ({"a": 1}, {"a": 1, "b": 2}),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1, 2]), np.array([1, 2, 3])),
        ({"a": np.ones(2)}, {"a": np.zeros(2)}),
        ("cat", "Cat"),
    ],
    ids=repr,
)
def test_not_the_same(lesson, reference, answer):
    lesson(reference)
    assert judged(answer).mistake in ("wrong value", "wrong length", "wrong shape")


# Messages that show the difference


def test_blanks_are_shown_as_they_are(lesson):
    lesson(str.strip, cases=[("a  b\tc ",)])
    verdict = judged(lambda text: text)
    assert verdict.mistake == "wrong value"
    assert r"'a  b\tc '" in verdict.message
    assert r"'a  b\tc'" in verdict.message


def test_a_table_of_numbers_is_one_line(lesson):
    lesson(lambda n: [torch.eye(n), 1], cases=[(2,)])
    assert judged(lambda n: [torch.eye(n), 2]).mistake == "wrong value"
    lesson({"table": torch.eye(3)})
    assert judged({"table": torch.ones(3, 3)}).mistake == "wrong value"


def test_one_wrong_number_in_a_large_tensor(lesson):
    lesson(lambda n: torch.arange(n * n).view(n, n), cases=[(5,)])

    def answer(n):
        table = torch.arange(n * n).view(n, n)
        table[2, 3] = 99
        return table

    message = judged(answer).message
    assert "99" in message
    assert "13" in message


def test_one_wrong_item_in_a_long_list(lesson):
    lesson(lambda n: list(range(1000, 1000 + n)), cases=[(200,)])
    message = judged(lambda n: [*range(1000, 1100), -5, *range(1101, 1000 + n)]).message
    assert "-5" in message
    assert "1100" in message


LONG = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1)


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (torch.tensor([0.80443, 0.19557]), torch.tensor([0.80448, 0.19552]), ["0.80443", "0.80448"]),
        (torch.tensor([2e-5]), torch.tensor([5e-5]), ["2e-05", "5e-05"]),
        (torch.tensor([124_412_160]), torch.tensor([124_412_161]), ["124412160", "124412161"]),
        (torch.full((20,), 124_412_160), torch.full((20,), 124_412_161), ["124412160", "124412161"]),
        (torch.full((20,), True), torch.full((20,), False), []),
        ("a" * 200, "a" * 100 + "bc" + "a" * 98, ["bc"]),
        (LONG | {"z": 7}, LONG | {"m": 5, "z": 7}, ["'m'", "5"]),
        (LONG, {key: value for key, value in LONG.items() if key != "m"}, ["'m'"]),
    ],
    ids=["float", "tiny", "int", "many int", "bool", "string", "dictionary", "key"],
)
def test_the_difference_can_be_seen(lesson, right, wrong, words):
    lesson(lambda n: right, cases=[(1,)])
    verdict = judged(lambda n: wrong)
    assert verdict.mistake == "wrong value"
    assert all(word in verdict.message for word in words)
    sides = re.search(r"(?:is|has|holds) (.*?)(?: at .*)?, not (.*) \(see", verdict.message)
    assert sides is None or sides[1] != sides[2], "this is X, not X"


def test_a_long_list_that_is_all_wrong(lesson):
    lesson(list(range(1, 201)))
    assert judged([0] * 200).mistake == "wrong value"  # and its message is no page: see `judged`


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (lambda n: (torch.zeros(n, n), torch.ones(n, n)), "wrong dtype", ["float32", "bool"]),
        (lambda n: (torch.zeros(n, n), torch.ones(n, 2, dtype=torch.bool)), "wrong shape", ["(5, 2)", "(5, 5)"]),
        (lambda n: (torch.zeros(n, n), None), "wrong type", ["None", "tensor"]),
        (lambda n: (torch.zeros(n, n),), "wrong length", ["1", "2"]),
    ],
)
def test_a_difference_inside_a_pair(lesson, answer, kind, words):
    lesson(lambda n: (torch.zeros(n, n), torch.ones(n, n, dtype=torch.bool)), cases=[(5,)])
    verdict = judged(answer)
    assert verdict.mistake == kind
    assert all(word in verdict.message for word in words)


def test_results_are_kept_as_they_were_returned(lesson):
    """A list that the answer goes on to fill later is judged by what it held when it was returned."""
    lesson(lambda item: [item], cases=[(1,), (2,)])

    def collecting(item, items=[]):  # noqa: B006, the mistake that is judged
        items.append(item)
        return items

    verdict = judged(collecting)
    assert not verdict.passed
    assert "(2)" in verdict.message, "the first case was right"
    assert "[1, 2]" in verdict.message


# Errors as right answers, and mistakes that raise


def test_an_error_may_be_what_is_asked_for(lesson):
    def strict(text):
        if not text:
            raise ValueError("the text is empty")
        return len(text)

    lesson(strict, [Mistake("no check", len, "an empty text slips through")], cases=[("cat",), ("",)])
    assert judged(strict).passed
    assert judged(len).mistake == "no check"
    verdict = judged(lambda text: len(text) or -1)
    assert verdict.mistake == "no error"
    assert "ValueError" in verdict.message
    assert "-1" in verdict.message

    def other(text):
        return 1 / len(text) and len(text)

    verdict = judged(other)
    assert not verdict.passed
    assert "ZeroDivisionError" in verdict.message


@pytest.mark.parametrize("answer", [None, 5, "len", [3]], ids=repr)
def test_what_is_no_function_is_no_known_mistake(lesson, answer):
    """To call it gives a TypeError, and so does a known mistake; the answer is still no function."""
    lesson(len, [Mistake("adds", lambda text: text + 1, "a number is added to a text")], cases=[("cat",)])
    assert judged(lambda text: text + 1).mistake == "adds"
    assert judged(answer).mistake == "no function"


@pytest.mark.parametrize("answer", [None, 5, "len", [3]], ids=repr)
def test_what_is_no_function_never_passes(lesson, answer):
    def strict(text):
        raise TypeError("text must be a string")

    lesson(strict, cases=[(5,), (None,)])
    assert judged(strict).passed
    assert judged(answer).mistake == "no function"


# Probes


def test_a_probe_looks_into_a_class(lesson):
    class Windows:
        def __init__(self, size):
            self.size = size

        def count(self, num_tokens):
            return max(0, num_tokens - self.size)

    class OneMore(Windows):
        def count(self, num_tokens):
            return super().count(num_tokens) + 1

    class Plain(Windows):
        def count(self, num_tokens):
            return "many"

    lesson(
        Windows,
        [Mistake("one too many", OneMore, "the last window has no target")],
        probe=lambda answer: [answer(4).count(n) for n in (10, 3)],
    )
    assert judged(Windows).passed
    verdict = judged(OneMore)
    assert verdict.mistake == "one too many"
    assert "the last window has no target" in verdict.message
    assert not judged(Plain).passed
    for nonsense in (None, 5, "Windows", len, (n for n in "abc"), lambda size: None, itself()):
        verdict = judged(nonsense)
        assert not verdict.passed
        assert verdict.mistake != "not attempted"


# Which exercise


@pytest.mark.usefixtures("doubling")
@pytest.mark.parametrize(
    "number", ["77.2", "77", "77.1.1", "77.", "99.1", "0.1", "-1.1", "one", "", ".", " ", None, 77.1, 77, [], "../x"]
)
def test_an_unknown_number_is_named(number):
    with pytest.raises(ValueError, match=re.escape(repr(number))):
        check(number, twice)


@pytest.mark.usefixtures("doubling")
def test_the_lessons_numbers_are_listed():
    with pytest.raises(ValueError, match=r"77\.9.*77\.1"):
        check("77.9", twice)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("import no_such_package_at_all", ModuleNotFoundError),
        ("raise ValueError('the vocabulary is damaged')", ValueError),
    ],
)
def test_a_lesson_that_cannot_be_imported_says_why(tmp_path, monkeypatch, content, error):
    """A broken lesson is not the same as no lesson."""
    (tmp_path / "lesson_78.py").write_text(content + "\nEXERCISES = {}\n", encoding="utf-8")
    monkeypatch.setattr(utils.exercises, "__path__", [*utils.exercises.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "utils.exercises.lesson_78", raising=False)
    with pytest.raises(error, match=r"no_such_package_at_all|vocabulary is damaged"):
        check("78.1", 5)
