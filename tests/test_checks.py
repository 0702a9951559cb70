"""The mechanism of utils.exercises on a lesson made up here: verdicts, kinds of difference, and nonsense."""

import copy
import functools
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
from utils.exercises import Exercise, Mistake, check

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


def checked(answer):
    """Return the verdict on an answer, after checking what holds for every verdict: one readable line, no address."""
    verdict = check(NUMBER, answer)
    assert repr(verdict) == verdict.message
    assert len(verdict.message.splitlines()) == 1, "one line"
    assert verdict.message.isprintable()
    assert len(verdict.message) < 600, "a line, not a page"
    assert NUMBER in verdict.message
    assert not re.search(r"0x[0-9a-f]{6,}", verdict.message), "an address differs from run to run"
    assert verdict.passed == (verdict.mistake is None) == verdict.message.startswith("✓")
    if not verdict.passed and verdict.mistake != "not attempted":
        assert WHERE in verdict.message
    return verdict


# A tiny exercise: twice each number, as a tensor


def twice(numbers):
    return 2 * torch.tensor(numbers)


def squares(numbers):
    return torch.tensor(numbers) ** 2


def unfinished(numbers):
    raise NotImplementedError("half done")


MISTAKES = [
    Mistake("squared", squares, "your function squares"),
    Mistake("raises", unfinished, "your function is half done"),
]
CASES = [([1, 2, 3],), ([4, 5],)]


@pytest.fixture
def doubling(lesson):
    lesson(twice, MISTAKES, cases=CASES)


@pytest.mark.usefixtures("doubling")
class TestVerdicts:
    def test_right(self):
        assert checked(lambda *numbers: torch.tensor([number + number for number in numbers[0]])).passed

    @pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
    def test_each_mistake_is_named(self, mistake):
        verdict = checked(mistake.answer)
        assert verdict.mistake == mistake.name
        assert mistake.message in verdict.message

    def test_a_mistake_is_known_by_what_it_does(self):
        assert checked(lambda numbers: torch.tensor([number * number for number in numbers])).mistake == "squared"

    def test_right_in_some_cases_only(self):
        verdict = checked(lambda numbers: twice(numbers) if len(numbers) == 3 else twice(numbers) + 1)
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
            assert checked(greedy).passed
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
        assert checked(drawing).passed
        assert random_states() == before
        assert checked(seeding).mistake == "squared"
        assert random_states() == before

    def test_the_default_device_does_not_matter(self):
        torch.set_default_device("meta")
        try:
            assert checked(twice).passed
            assert checked(squares).mistake == "squared"
        finally:
            torch.set_default_device(None)

    def test_an_interrupt_stops_the_check(self):
        """And the random states are restored, though the answer was interrupted."""

        def interrupted(numbers):
            torch.rand(3)
            raise KeyboardInterrupt

        before = random_states()
        with pytest.raises(KeyboardInterrupt):
            check(NUMBER, interrupted)
        assert random_states() == before


# Stubs


def empty(numbers): ...


def explained(numbers: list[int]) -> torch.Tensor:
    """Return twice each number."""
    # your code here
    ...


def two_variables(numbers):
    doubled, total = ..., ...
    return torch.tensor(doubled), total


def loop(numbers):
    doubled = []
    for number in ...:
        doubled.append(2 * number)
    return torch.tensor(doubled)


def helper_inside(numbers):
    def double(number):
        return number + ...

    return torch.tensor([double(number) for number in numbers])


class Callable:
    def __call__(self, numbers):
        return ... * len(numbers)


STUBS = {
    "value": ...,
    "empty function": empty,
    "explained": explained,
    "returned": lambda numbers: ...,
    "two variables": two_variables,
    "in a list": lambda numbers: [(1, ...)],
    "in a dictionary": lambda numbers: {"doubled": ...},
    "in one case": lambda numbers: twice(numbers) if len(numbers) == 3 else ...,
    "loop": loop,
    "operand": lambda numbers: torch.tensor(numbers) + ...,
    "joined": lambda numbers: "2" + ...,
    "called": lambda numbers: sorted(numbers, key=...),
    "indexed": lambda numbers: (numbers and ...)[0],
    "attribute": lambda numbers: (numbers and ...).shape,
    "length": lambda numbers: len(...),
    "key": lambda numbers: {1: 2}[...],
    "tensors": lambda numbers: torch.stack(..., dim=0),
    "tensor": lambda numbers: torch.tensor(...),
    "shape": lambda numbers: twice(numbers).view(...),
    "axis": lambda numbers: twice(numbers).sum(dim=...),
    "size": lambda numbers: nn.Linear(3, ...),
    "helper inside": helper_inside,
    "decorated": torch.no_grad()(lambda numbers: numbers + ...),
    "partial": functools.partial(lambda factor, numbers: factor * ..., 2),
    "callable object": Callable(),
}


@pytest.mark.usefixtures("doubling")
@pytest.mark.parametrize("stub", STUBS.values(), ids=STUBS)
def test_a_stub_is_not_attempted_yet(stub):
    verdict = checked(stub)
    assert verdict.mistake == "not attempted"
    assert "not attempted yet" in verdict.message


@pytest.mark.parametrize("stub", [..., [...], (1, ...), [[1, ...]], {"a": ...}], ids=repr)
def test_a_value_that_is_still_a_stub(lesson, stub):
    lesson([1, 2, 3])
    assert checked(stub).mistake == "not attempted"


class Counter:
    def __init__(self, start):
        self.value = start

    def up(self):
        self.value += 1
        return self.value


def test_a_class_that_is_still_a_stub(lesson):
    class Stub: ...

    class StubOfMethods:
        def __init__(self, start): ...

        def up(self): ...

    class HalfStub:
        def __init__(self, start):
            self.value = ...

        def up(self):
            return self.value + 1

    lesson(Counter, probe=lambda answer: answer(3).up())
    for stub in (..., Stub, StubOfMethods, HalfStub):
        assert checked(stub).mistake == "not attempted", stub


def own_words(numbers):
    raise TypeError("'ellipsis' is not a number")


def last_axis_on_a_list(numbers):
    return numbers[..., 0]


def last_axis_by_a_float(numbers):
    return torch.tensor(numbers)[..., len(numbers) / 2]


@pytest.mark.usefixtures("doubling")
class TestWhatIsNotAStub:
    @pytest.mark.parametrize(
        "answer",
        [
            lambda numbers: torch.tensor(numbers)[len(numbers) / 2],
            lambda numbers: np.array(numbers)[len(numbers) / 2],
            last_axis_by_a_float,
            last_axis_on_a_list,
            lambda numbers: {0: numbers}[..., 0],
            lambda numbers: {"a": numbers}["ellipsis"],
            lambda numbers: torch.tensor(numbers).ellipsis,
            own_words,
        ],
    )
    def test_an_error_that_has_another_cause(self, answer):
        """Even where its text has the word: a float as an index raises "… slices (`:`), ellipsis (`...`), …"."""
        assert checked(answer).mistake == "raised"

    def test_a_forgotten_return(self):
        def silent(numbers):
            twice(numbers)

        verdict = checked(silent)
        assert verdict.mistake == "nothing returned"
        assert "silent([1, 2, 3]) returns None" in verdict.message

    def test_a_short_answer(self, lesson):
        """As short as an empty function, but it does return something."""

        def unchanged(numbers):
            return numbers

        def constant(numbers):
            return 5

        lesson(unchanged, [Mistake("always 5", constant, "it is 5 for every input")], cases=[(1,), (2,)])
        assert checked(unchanged).passed
        assert checked(constant).mistake == "always 5"

    def test_all_axes(self):
        assert checked(lambda numbers: twice(numbers)[...]).passed
        assert checked(lambda numbers: squares(numbers)[..., :]).mistake == "squared"


# Nonsense: exact, one line, never a traceback


class Stranger:
    pass


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raising(error):
    def answer(numbers):
        raise error

    return answer


def endless(numbers):
    return endless(numbers)


def itself():
    items = []
    items.append(items)
    return items


def knot():
    one, other = [], []
    one.extend([other, other])
    other.extend([one, one])
    return one


class TestNonsense:
    @pytest.mark.usefixtures("doubling")
    @pytest.mark.parametrize(
        ("answer", "kind", "words"),
        [
            (None, "no function", ["None"]),
            (torch.tensor([2, 4, 6]), "no function", ["[2, 4, 6]"]),
            (lambda numbers: None, "nothing returned", ["None", "return"]),
            (lambda numbers: [2, 4, 6], "wrong type", ["[2, 4, 6], a list", "a tensor"]),
            (lambda numbers: np.array(numbers) * 2, "wrong type", ["an ndarray", "a tensor"]),
            (lambda numbers: (number for number in numbers), "wrong type", ["generator", "tensor"]),
            (lambda numbers: Stranger(), "wrong type", ["Stranger", "tensor"]),
            (lambda numbers: twice, "wrong type", ["the function twice", "tensor"]),
            (lambda numbers: nn.Linear(2, 2), "wrong type", ["a Linear", "tensor"]),
            (lambda numbers: "one\ntwo", "wrong type", ["a str", "tensor"]),
            (lambda numbers: "long " * 10_000, "wrong type", ["str", "tensor"]),
            (lambda numbers: itself(), "wrong type", ["list", "tensor"]),
            (lambda numbers: knot(), "wrong type", ["list", "tensor"]),
            (lambda numbers: twice([numbers]), "wrong shape", ["(1, 3)", "(3,)"]),
            (lambda numbers: twice(numbers).float(), "wrong dtype", ["float32", "int64"]),
            (lambda numbers: torch.tensor(numbers), "wrong value", ["[1, 2, 3]", "[2, 4, 6]"]),
            (lambda: 1, "raised", ["TypeError", "0 positional arguments"]),
            (lambda numbers: 1 / 0, "raised", ["raises ZeroDivisionError", "division by zero"]),
            (lambda numbers: {}["key"], "raised", ["KeyError", "'key'"]),
            (raising(ValueError("\n\none\rtwo\x0bthree\u2028four\x85")), "raised", ["ValueError", "one"]),
            (raising(ValueError("long " * 10_000)), "raised", ["ValueError", "long"]),
            (raising(AssertionError()), "raised", ["AssertionError"]),
            (raising(MuteError()), "raised", ["MuteError"]),
            (raising(SystemExit(1)), "raised", ["SystemExit"]),
            (raising(BaseException("cancelled")), "raised", ["BaseException", "cancelled"]),
            (endless, "raised", ["RecursionError"]),
            (Stranger, "raised", ["TypeError"]),
        ],
    )
    def test_the_exercise_asks_for_a_function(self, answer, kind, words):
        verdict = checked(answer)
        assert verdict.mistake == kind
        assert all(word in verdict.message for word in words)
        assert ":  " not in verdict.message, "a colon with nothing after it"

    @pytest.mark.parametrize(
        ("reference", "answer", "kind", "words"),
        [
            (6, None, "wrong type", ["None", "an int"]),
            (6, 7, "wrong value", ["7, which is not right"]),
            (6, 6.0, "wrong type", ["6.0, a float", "an int"]),
            (6, True, "wrong type", ["True", "bool", "int"]),
            (6, torch.tensor(6), "wrong type", ["6", "tensor", "int"]),
            (0.5, float("nan"), "wrong value", ["nan"]),
            (0.5, 10**400, "raised", ["OverflowError"]),
            (True, False, "wrong value", ["False"]),
            ("cat", "cat\n", "wrong value", [r"cat\n"]),
            ("cat", b"cat", "wrong type", ["b'cat'", "bytes", "str"]),
            ([1, 2, 3], [1, 2], "wrong length", ["2", "3"]),
            ([1, 2, 3], [1, 5, 3], "wrong value", ["5 at index 1"]),
            ([1, 2, 3], [4, 2, 5], "wrong value", ["4, 5 at indices 0, 2"]),
            ([True, False], [True, True], "wrong value", ["1 of 2 is wrong"]),
            ([True, False], [False, True], "wrong value", ["2 of 2 are wrong"]),
            ([True, False], [1, 0], "wrong value", ["True or False"]),
            ([1, 2, 3], "123", "wrong type", ["'123'", "str", "list"]),
            ([1, 2, 3], torch.tensor([1, 2, 3]), "wrong type", ["tensor", "list"]),
            ([1, 2, 3], itself(), "wrong length", ["1", "3"]),
            (torch.ones(2), torch.full((2,), torch.nan), "wrong value", ["nan"]),
            (torch.ones(2), torch.ones(2, 1), "wrong shape", ["(2, 1)", "(2,)"]),
            (torch.ones(2), torch.ones(2, dtype=torch.float64), "wrong dtype", ["float64", "float32"]),
        ],
    )
    def test_the_exercise_asks_for_a_value(self, lesson, reference, answer, kind, words):
        lesson(reference, [Mistake("far off", "far off", "you are far off")])
        verdict = checked(answer)
        assert verdict.mistake == kind
        assert all(word in verdict.message for word in words)
        assert checked("far off").mistake == "far off"


# Values of unusual kinds, which fail when they are compared, copied or printed


def fails(*_, **__):
    raise RuntimeError("not with me")


class Failing(torch.Tensor):
    __torch_function__ = classmethod(fails)


class Table:
    """As in pandas: its == returns a table, which is neither true nor false."""

    def __eq__(self, other):
        return np.array([True, False])

    __hash__ = None


def failing(method, base=object):
    """Return a maker of objects with one method that fails."""
    return lambda: type("Odd", (base,), {method: fails, "__hash__": base.__hash__})()


def inference():
    with torch.inference_mode():
        return torch.ones(3)


ODD = {
    "meta": lambda: torch.ones(3, device="meta"),
    "sparse": lambda: torch.ones(3).to_sparse(),
    "sparse rows": lambda: torch.eye(3).to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
    "quantized rows": lambda: torch.quantize_per_channel(torch.eye(3), torch.ones(3), torch.zeros(3), 0, torch.qint8),
    "complex": lambda: torch.ones(3) + 0j,
    "conjugate": lambda: (torch.ones(3) + 1j).conj(),
    "bfloat16": lambda: torch.ones(3).bfloat16(),
    "float8": lambda: torch.ones(3).to(torch.float8_e4m3fn),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(3), torch.ones(2)]),
    "inference": inference,
    "gradient": lambda: torch.ones(3, requires_grad=True),
    "not initialised": nn.UninitializedParameter,
    "failing tensor": lambda: torch.ones(3).as_subclass(Failing),
    "array of objects": lambda: np.array([torch.ones(3), None, [1]], dtype=object),
    "list of arrays": lambda: [np.ones(3), np.ones(2), np.ones(3)],
    "table": Table,
    "failing list": failing("__iter__", list),
    "failing dictionary": failing("values", dict),
    "failing float": failing("__float__", float),
    "failing str": failing("__eq__", str),
    **{method: failing(method) for method in ("__eq__", "__repr__", "__len__", "__bool__", "__iter__", "__call__")},
    **{method: failing(method) for method in ("__deepcopy__", "__getattr__", "__getattribute__")},
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_an_odd_answer_gets_a_verdict(lesson, make):
    odd = make()
    lesson(lambda n: torch.zeros(3), [Mistake("ones", lambda n: torch.ones(3), "ones")], cases=[(1,), (2,)])
    assert not checked(odd).passed
    assert not checked(lambda n: odd).passed
    assert not checked(lambda n: [odd, 1.0, 1.0]).passed
    lesson([0.0, 1.0, 1.0], [Mistake("words", ["one", 1.0, 1.0], "no words")])
    assert not checked(odd).passed
    assert not checked([odd, 1.0, 1.0]).passed
    lesson(Counter, [Mistake("five", lambda start: 5, "five")], probe=lambda answer: [answer(3), answer(4).up()])
    assert not checked(odd).passed
    assert not checked(lambda start: odd).passed


@pytest.mark.parametrize(
    ("odd", "kind", "words"),
    [
        ("meta", "wrong device", "is on the device meta, not cpu"),
        ("sparse", "wrong type", "layout torch.sparse_coo"),
        ("nested", "wrong type", "is a nested tensor"),
        ("bfloat16", "wrong dtype", "has dtype torch.bfloat16"),
        ("failing tensor", "raised", "raises RuntimeError: not with me"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_odd_is_named(lesson, odd, kind, words):
    lesson(lambda n: torch.ones(3), cases=[(1,)])
    verdict = checked(lambda n: ODD[odd]())
    assert verdict.mistake == kind
    assert words in verdict.message


# What counts as the same


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (6, np.int64(6)),
        (0.5, np.float32(0.5)),
        (0.1 + 0.2, 0.3),
        (float("nan"), float("nan")),
        (True, np.bool_(True)),
        ([[1, 2], 0.5], ([1, 2], 0.5)),
        ({"a": [1]}, {"a": (1,)}),
        (torch.tensor([0.1]), torch.tensor([0.1 + 1e-7])),
        (torch.tensor([torch.nan]), torch.tensor([torch.nan])),
        (torch.ones(3), nn.Parameter(torch.ones(3))),
        (torch.ones(3), inference()),
        (torch.ones(3), torch.ones(1).expand(3)),
        (torch.ones(3), (torch.ones(3) - 1j).conj().imag),
        ({"a": torch.ones(2)}, {"a": torch.ones(2)}),
        ({"a": np.ones(2)}, {"a": np.ones(2)}),
        (torch.zeros(0), torch.zeros(0)),
        (None, None),
    ],
    ids=repr,
)
def test_same(lesson, reference, answer):
    lesson(reference, [Mistake("far off", "far off", "you are far off")])
    assert checked(answer).passed


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (torch.tensor([163_009_536]), torch.tensor([163_009_537])),
        (torch.tensor([1.0, torch.nan]), torch.tensor([torch.nan, 1.0])),
        (torch.tensor([1.0]), torch.tensor([torch.inf])),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1, 2]), np.array([1, 2, 3])),
        ({"a": np.ones(2)}, {"a": np.zeros(2)}),
    ],
    ids=repr,
)
def test_not_the_same(lesson, reference, answer):
    lesson(reference)
    assert checked(answer).mistake == "wrong value"


# Messages that show the difference


LONG = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1)
TABLE = torch.arange(25).view(5, 5)
NUMBERS = list(range(1000, 1200))


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (torch.tensor([0.80443, 0.19557]), torch.tensor([0.80448, 0.19552]), ["0.80443", "0.80448"]),
        (torch.tensor([2e-5]), torch.tensor([5e-5]), ["2e-05", "5e-05"]),
        (torch.tensor([124_412_160]), torch.tensor([124_412_161]), ["124412160", "124412161"]),
        (torch.full((20,), 124_412_160), torch.full((20,), 124_412_161), ["124412160", "124412161"]),
        (torch.full((20,), True), torch.full((20,), False), []),
        (TABLE, TABLE.where(TABLE != 13, 99), ["99", "13", "[2, 3]"]),
        ([torch.eye(3), 1], [torch.eye(3), 2], ["index 1", "2", "1"]),
        (NUMBERS, [*NUMBERS[:100], -5, *NUMBERS[101:]], ["index 100", "-5", "1100"]),
        ("a  b\tc", "a  b\tc ", [r"'a  b\tc'", r"'a  b\tc '"]),
        ("a" * 200, "a" * 100 + "bc" + "a" * 98, ["bc", "index 100"]),
        (b"a" * 200, b"a" * 100 + b"bc" + b"a" * 98, ["bc", "index 100"]),
        (["a" * 200, "b"], ["a" * 100 + "bc" + "a" * 98, "b"], ["bc", "index 100"]),
        (LONG | {"z": 7}, LONG | {"m": 5, "z": 7}, ["'m'", "5"]),
        (LONG, {key: value for key, value in LONG.items() if key != "m"}, ["'m'"]),
    ],
    ids=repr,
)
def test_the_difference_can_be_seen(lesson, right, wrong, words):
    lesson(lambda n: right, cases=[(1,)])
    verdict = checked(lambda n: wrong)
    assert verdict.mistake == "wrong value"
    assert all(word in verdict.message for word in words)
    sides = re.search(r"(?:is|has|with) (.*?)(?: at .*)?, not (?:with )?(.*) \(see", verdict.message)
    assert sides is None or sides[1] != sides[2], "this is X, not X"


def test_a_long_list_that_is_all_wrong(lesson):
    lesson(list(range(1, 201)))
    assert checked([0] * 200).mistake == "wrong value"  # and its message is not a page: see `checked`


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
    verdict = checked(answer)
    assert verdict.mistake == kind
    assert all(word in verdict.message for word in words)


def test_results_are_kept_as_they_were_returned(lesson):
    """A list that the answer fills later is compared as it was when it was returned."""
    lesson(lambda item: [item], cases=[(1,), (2,)])

    def collecting(item, items=[]):  # noqa: B006, the mistake that is tested
        items.append(item)
        return items

    verdict = checked(collecting)
    assert not verdict.passed
    assert "(2)" in verdict.message, "the first case was right"
    assert "[1, 2]" in verdict.message


# Errors as right answers, and mistakes that raise


def test_the_right_answer_may_be_an_error(lesson):
    def strict(text):
        if not text:
            raise ValueError("the text is empty")
        return len(text)

    lesson(strict, [Mistake("no check", len, "an empty text slips through")], cases=[("cat",), ("",)])
    assert checked(strict).passed
    assert checked(len).mistake == "no check"
    verdict = checked(lambda text: len(text) or -1)
    assert verdict.mistake == "no error"
    assert "is -1, but it should raise ValueError" in verdict.message
    assert checked(lambda text: 1 / len(text) and len(text)).mistake == "raised"


def test_what_is_not_a_function_is_no_known_mistake(lesson):
    """Calling it raises TypeError, and so does a known mistake, or even the right answer."""
    lesson(len, [Mistake("adds", lambda text: text + 1, "a number is added to a text")], cases=[("cat",)])
    assert checked(lambda text: text + 1).mistake == "adds"
    assert checked("len").mistake == "no function"

    def strict(text):
        raise TypeError("text must be a string")

    lesson(strict, cases=[(5,), (None,)])
    assert checked(strict).passed
    assert checked("len").mistake == "no function"


def test_an_argument_that_is_changed(lesson):
    def in_place(x):
        return x.mul_(2)

    lesson(lambda x: 2 * x, cases=[(torch.ones(3),)], keeps_arguments=True)
    assert checked(lambda x: x.clone().mul_(2)).passed
    assert checked(in_place).mistake == "changed argument"


# Probes


def test_a_probe_looks_into_a_class(lesson):
    class OneMore(Counter):
        def up(self):
            return super().up() + 1

    class Plain(Counter):
        def up(self):
            return "many"

    lesson(
        Counter,
        [Mistake("one too many", OneMore, "you count one too many")],
        probe=lambda answer: [answer(start).up() for start in (10, 3)],
    )
    assert checked(Counter).passed
    assert checked(OneMore).mistake == "one too many"
    assert checked(Plain).mistake not in (None, "not attempted")
    for nonsense in (None, 5, "Counter", len, (n for n in "abc"), lambda start: None, itself()):
        assert checked(nonsense).mistake not in (None, "not attempted")


# Which exercise


@pytest.mark.usefixtures("doubling")
@pytest.mark.parametrize("number", ["77.2", "77", "77.1.1", "99.1", "-1.1", "one", "", ".", None, 77.1, [], "../x"])
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
