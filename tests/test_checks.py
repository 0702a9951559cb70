"""The mechanism of utils.exercises on a lesson made up here: verdicts, kinds of difference, and nonsense."""

import copy
import functools
import itertools
import os
import random
import re
import signal
import sys
import threading
import time
from decimal import Decimal
from fractions import Fraction
from importlib.machinery import ModuleSpec
from types import ModuleType, new_class

import numpy as np
import pytest
import torch
from colours import contrast
from states import random_states
from torch import nn

import utils.exercises
from utils.exercises import Exercise, check, demand, limits

NUMBER = "77.1"
WHERE = "section 3"
ASKS = "a good answer"


@pytest.fixture
def lesson(monkeypatch):
    """Return a function that puts one exercise into a lesson 77."""

    def put(right, mistakes=(), **options):
        name = "utils.exercises.lesson_77"
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
        typed = not options.keys() & {"cases", "call"}
        members = options | {"right": (lambda: right) if typed else right}
        for known, answer, message in mistakes:
            members[known.replace(" ", "_")] = described(answer, message, typed)
        monkeypatch.delitem(utils.exercises.EXERCISES, NUMBER, raising=False)
        new_class(
            "Made", (Exercise,), {"number": NUMBER, "where": WHERE, "asks": ASKS}, lambda body: body.update(members)
        )

    yield put
    utils.exercises.EXERCISES.pop(NUMBER, None)


def described(answer, message, typed):
    """Return a mistake as a member of an exercise: a function or class with a docstring."""
    if isinstance(answer, type):
        return type(answer.__name__, (answer,), {"__doc__": message})
    function = (lambda: answer) if typed else (lambda *arguments: answer(*arguments))
    function.__doc__ = message
    return function


def checked(answer):
    """Return the verdict on an answer, after checking what holds for every verdict: one readable line, no address."""
    verdict = check(NUMBER, answer)
    assert repr(verdict) == verdict.message
    assert len(verdict.message.splitlines()) == 1, "one line"
    assert verdict.message.isprintable()
    assert len(verdict.message) <= 200, "a line, not a page"
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
    ("squared", squares, "your function squares"),
    ("raises", unfinished, "your function is half done"),
]
CASES = [([1, 2, 3],), ([4, 5],)]


@pytest.fixture
def doubling(lesson):
    lesson(twice, MISTAKES, cases=CASES)


@pytest.mark.usefixtures("doubling")
class TestVerdicts:
    def test_right(self):
        assert checked(lambda *numbers: torch.tensor([number + number for number in numbers[0]])).passed

    @pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
    def test_each_mistake_is_named(self, mistake):
        name, answer, message = mistake
        verdict = checked(answer)
        assert verdict.mistake == name
        assert message in verdict.message

    def test_a_mistake_is_known_by_what_it_does(self):
        assert checked(lambda numbers: torch.tensor([number * number for number in numbers])).mistake == "squared"

    def test_right_in_some_cases_only(self):
        verdict = checked(lambda numbers: twice(numbers) if len(numbers) == 3 else squares(numbers))
        assert verdict.mistake == "wrong value"
        assert "[4, 5]" in verdict.message, "the case that shows it"
        assert "[16, 25]" in verdict.message
        assert "[8, 10]" in verdict.message

    def test_an_argument_that_is_changed(self):
        """Whatever else is right or wrong; and the exercise's own data stays as it is."""

        def greedy(numbers):
            result = twice(numbers)
            numbers.clear()
            return result

        cases = copy.deepcopy(CASES)
        for _ in range(2):
            verdict = checked(greedy)
            assert verdict.mistake == "changed argument"
            assert "changes its argument `numbers`" in verdict.message
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

    def test_what_an_answer_sets_does_not_outlast_it(self):
        def setting(numbers):
            torch.set_grad_enabled(False)
            torch.set_default_dtype(torch.float64)
            return twice(numbers)

        assert checked(setting).passed
        assert torch.get_default_dtype() == torch.float32
        assert torch.is_grad_enabled()

    def test_a_check_leaves_the_threads_alone(self):
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        assert checked(lambda numbers: twice(numbers) * torch.get_num_threads()).passed
        assert torch.get_num_threads() == 2
        torch.set_num_threads(threads)

    def test_what_lies_in_memory_is_never_right(self):
        assert checked(lambda numbers: torch.empty(len(numbers))).mistake == "never set"
        assert checked(lambda numbers: torch.empty_like(torch.tensor(numbers))).mistake == "never set"

    def test_what_lies_in_memory_is_not_true_by_luck(self, lesson):
        lesson(lambda n: torch.ones(n).bool(), cases=[(3,)])
        assert checked(lambda n: torch.empty(n).fill_(1).bool()).passed
        assert checked(lambda n: torch.empty(n).bool()).mistake == "never set"

    def test_the_default_device_does_not_matter(self):
        torch.set_default_device("meta")
        try:
            assert checked(twice).passed
            assert checked(squares).mistake == "squared"
        finally:
            torch.set_default_device(None)

    def test_ctrl_c_stops_what_runs(self):
        rounds = [0]

        def counting(numbers):
            while True:
                rounds[0] += 1

        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            check(NUMBER, counting)
        counted = rounds[0]
        time.sleep(0.2)
        assert rounds[0] == counted, "it is still running"

    def test_checks_in_several_threads(self):
        """And in an answer: a check changes what the process shares, and puts it back."""

        def checking(numbers):
            assert check(NUMBER, twice).passed
            return twice(numbers)

        verdicts, states = [], random_states()
        threads = [threading.Thread(target=lambda: verdicts.append(check(NUMBER, checking))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [verdict.passed for verdict in verdicts] == [True] * 4
        assert random_states() == states

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


@pytest.mark.parametrize("stub", [..., [...], (..., ...), [[...], ...], {"a": ...}], ids=repr)
def test_a_value_that_is_still_a_stub(lesson, stub):
    lesson([1, 2, 3])
    assert checked(stub).mistake == "not attempted"


@pytest.mark.parametrize(("value", "words"), [((1, ...), "1 of 2"), ([[1, ...], ...], "2 of 2")])
def test_a_value_that_is_half_filled(lesson, value, words):
    lesson([1, 2, 3])
    verdict = checked(value)
    assert verdict.mistake == "incomplete"
    assert f"there is still a `...` in {words} items" in verdict.message


def test_only_the_lessons_own_stub_is_untouched():
    """Where other lines have been written, one `...` that is left is named."""

    def scores_for(inputs, index):
        return ...

    def half_done(inputs, index):
        query = inputs[index]
        return ... @ query

    assert check("4.1", scores_for).mistake == "not attempted"

    def emptied(ids, table):
        return None

    def runs_all_the_same(inputs, index):
        query = ...
        return inputs[query] @ inputs[0]

    assert check("3.B", emptied).mistake == "nothing returned"
    assert check("4.1", half_done).mistake == check("4.1", runs_all_the_same).mistake == "incomplete"


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

    lesson(Counter, call=lambda answer: answer(3).up())
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

        lesson(unchanged, [("always 5", constant, "it is 5 for every input")], cases=[(1,), (2,)])
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
            (torch.tensor([2, 4, 6]), "no function", ["a tensor of shape (3,)"]),
            (Stranger, "no function", ["the class Stranger"]),
            (lambda numbers: None, "nothing returned", ["None", "return"]),
            (lambda numbers: (number for number in numbers), "wrong type", ["generator", "list(…)"]),
            (lambda numbers: Stranger(), "wrong type", ["Stranger", ASKS]),
            (lambda numbers: twice, "wrong type", ["the function twice", ASKS]),
            (lambda numbers: nn.Linear(2, 2), "wrong type", ["a Linear", ASKS]),
            (lambda numbers: "one\ntwo", "wrong type", [r"'one\ntwo', a string", ASKS]),
            (lambda numbers: "long " * 10_000, "wrong type", ["long", ASKS]),
            (lambda numbers: itself(), "wrong length", ["has 1 item, not 3"]),
            (lambda numbers: knot(), "wrong length", ["has 2 items, not 3"]),
            (lambda numbers: (twice(numbers), numbers), "several values", ["2 values", ASKS]),
            (lambda numbers: (twice(numbers),), "one value in a list", ["inside another list or tuple"]),
            (lambda numbers: [2, 4, 6], "wrong length", ["has 3 items, not 2"]),
            (lambda numbers: twice([numbers]), "wrong shape", ["(1, 3)", "(3,)", "entries themselves are right"]),
            (lambda numbers: twice([numbers, numbers]), "wrong shape", ["(2, 3), not (3,)"]),
            (lambda numbers: twice(numbers) / 0, "wrong value", ["[inf, inf, inf], not [2, 4, 6]"]),
            (raising(ZeroDivisionError("division by zero")), "raised", ["raises ZeroDivisionError: division by zero"]),
            (lambda numbers: {}["key"], "raised", ["KeyError: 'key'"]),
            (raising(ValueError("\n\none\rtwo\x0bthree\u2028four\x85")), "raised", ["ValueError: one"]),
            (raising(ValueError("long " * 10_000_000)), "raised", ["ValueError: long long"]),
            (lambda numbers: torch.float32, "wrong type", ["a dtype", ASKS]),
            (raising(AssertionError()), "raised", ["raises AssertionError ("]),
            (raising(MuteError()), "raised", ["raises MuteError ("]),
            (raising(SystemExit(1)), "raised", ["SystemExit"]),
            (raising(BaseException("cancelled")), "raised", ["BaseException: cancelled"]),
        ],
    )
    def test_the_exercise_asks_for_a_function(self, answer, kind, words):
        verdict = checked(answer)
        assert verdict.mistake == kind
        assert all(word in verdict.message for word in words)

    @pytest.mark.parametrize(
        ("right", "answer", "kind", "words"),
        [
            (6, None, "wrong type", ["None", ASKS]),
            (6, 7, "wrong value", ["7, which is not right"]),
            (6, True, "wrong type", ["True", ASKS]),
            (6, "6", "wrong type", ["'6', a string"]),
            (6, abs, "wrong type", ["the function abs"]),
            (0.5, float("nan"), "wrong value", ["nan"]),
            (0.5, 10**400, "wrong value", ["which is not right"]),
            (1 / 3, 0.33, "rounded", ["0.33 is close"]),
            (1 / 3, 0.334, "rounded", ["0.334 is close"]),
            (True, False, "wrong value", ["False"]),
            ("cat", "cat\n", "wrong value", [r"cat\n"]),
            ("cat", "Cat", "wrong value", ["'Cat'"]),
            ("cat", b"cat", "wrong type", ["b'cat'", "bytes"]),
            ([1, 2, 3], [1, 2], "wrong length", ["2 items", ASKS]),
            ([1, 2, 3], ["1", "2"], "wrong type", ["'1', a string, in it", ASKS]),
            ([1, 2, 3], [1, 5, 3], "wrong value", ["at index 1, counted from 0"]),
            ([1, 2, 3], [4, 2, 5], "wrong value", ["at indices 0, 2"]),
            ([1, 2, 3], [1, 2, "3"], "wrong type", ["index 2 is '3', a string: there should be a number"]),
            ([1, 1 / 3], [1, 0.33], "rounded", ["0.33 is close"]),
            ([[1, 0], [0, 1]], [[1, 0], ["0", 1]], "wrong type", ["the item at [1, 0] is '0', a string"]),
            ([[1, 0], [0, 1]], [[1], [0, 1]], "wrong length", ["the item at index 0 has 1 item"]),
            (["a", "bc"], [["a", "bc"]], "one value in a list", ["inside another list"]),
            (["a", "bc"], ["A", "bc"], "wrong value", ["1 of 2 is wrong"]),
            (["a", "bc"], ["a", "cb"], "wrong value", ["1 of 2 is wrong"]),
            ([True, False], [False, True], "wrong value", ["2 of 2 are wrong"]),
            ([True, False], [1, 0], "wrong type", ["index 0 is 1, an integer: there should be True or False"]),
            ([1, 2, 3], "123", "wrong type", ["'123'", ASKS]),
            ([1, 2, 3], itself(), "wrong type", [", in it"]),
            ([1.0, 2.0], torch.tensor([1.0, torch.nan]), "wrong value", ["index 1"]),
        ],
    )
    def test_the_exercise_asks_for_a_value(self, lesson, right, answer, kind, words):
        """A verdict on what is typed in never says what would be right, nor how long it is."""
        lesson(right, [("far off", "far off", "you are far off")])
        verdict = checked(answer)
        assert verdict.mistake == kind
        assert all(word in verdict.message for word in words)
        assert checked("far off").mistake == "far off"


# Slips that Python and torch report in their own words


class WithoutSelf:
    def __init__(start):
        start.value = 1


class WithoutSuper(nn.Module):
    def __init__(self, start):
        self.layer = nn.Linear(start, 1)


class WithoutSelfInside(nn.Module):
    def __init__(self, start):
        super().__init__()
        self_value = start  # noqa: F841
        self.value = selfvalue  # noqa: F821


def unbound(numbers):
    doubled = doubled + 1  # noqa: F821, F841


@pytest.mark.usefixtures("doubling")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda: 1, "the exercise calls your function with numbers, but it has no parameters"),
        (lambda numbers, factor: 1, "with numbers, but its parameters are numbers, factor"),
        (lambda *, numbers: 1, "with numbers, but its parameters are numbers (by name only)"),
        (lambda numbers: numberz, "NameError: the name numberz is not defined"),  # noqa: F821
        (unbound, "doubled is used before it has a value"),
        (lambda numbers: numbers.sort().copy(), "a None is used as if it were a value"),
        (lambda numbers: torch.ones(2, 3) @ torch.ones(2, 3), "shapes (2, 3) and (2, 3) cannot be multiplied"),
        (
            lambda numbers: torch.ones(2, 3) + torch.ones(2),
            "the shapes do not fit together: 3 and 2 entries along axis 1",
        ),
        (lambda numbers: torch.ones(2, 3) @ torch.ones(3, 2).long(), "convert one of them"),
        (lambda numbers: torch.ones(2) or 1, "used as one True or False"),
        (lambda numbers: float(torch.ones(2)), "a tensor of several numbers is used as one number"),
        (lambda numbers: torch.ones(2, 3).T.view(6), "reshape copies them"),
        (lambda numbers: torch.ones(6).view(4, 2), "6 numbers do not fill the shape (4, 2)"),
        (lambda numbers: torch.cat([torch.ones(2, 1), torch.ones(2)]), "does one of them lack an axis?"),
        (lambda numbers: torch.stack([torch.ones(2), torch.ones(3)]), "stack needs equal shapes, and gets (2) and (3)"),
        (lambda numbers: torch.ones(2).sum(dim=1), "there is no axis 1"),
        (lambda numbers: torch.ones(2)[0, 0], "there are more indices than the tensor has axes"),
        (endless, "it calls itself without end"),
        (lambda numbers: torch.zeros(10**13), "it asks for too much memory"),
        (lambda numbers: [0] * 10**13, "it asks for too much memory"),
    ],
)
def test_a_common_slip_gets_a_friendly_sentence(answer, words):
    verdict = checked(answer)
    assert verdict.mistake in ("raised", "wrong parameters")
    assert words in verdict.message


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (WithoutSelf, "self missing", "the method __init__ has no parameter self"),
        (WithoutSuper, "raised", "__init__ has to call super().__init__()"),
        (WithoutSelfInside, "raised", "the name selfvalue is not defined"),
        (nn.Linear(2, 2), "no class", "the class itself: pass Linear, without brackets"),
        (5, "no class", "a class itself, and your answer is 5"),
    ],
)
def test_a_slip_in_a_class(lesson, answer, kind, words):
    lesson(Counter, [("five", lambda start: 5, "five")], call=lambda answer: answer(3).up())
    verdict = checked(answer)
    assert verdict.mistake == kind
    assert words in verdict.message


def test_a_slip_that_the_code_shows(lesson):
    lesson(lambda x, y: x**2 + y, cases=[(3, 1), (5, 2)])
    assert checked(lambda x, y: x ^ 2 + y).mistake == "not a power"
    verdict = checked(lambda y, x: x**2 + y)
    assert verdict.mistake == "wrong parameters"
    assert "in another order than the exercise: x, y" in verdict.message


def test_a_slip_is_told_where_an_error_is_right(lesson):
    lesson(raising(ValueError()), cases=[(3,), (5,)])
    assert "the name ValueEror is not defined" in checked(lambda x: ValueEror).message  # noqa: F821


# What is true of all calls: patterns


@pytest.mark.parametrize(
    ("right", "answer", "kind"),
    [
        (lambda x: x.T, lambda x: x, "argument returned"),
        (lambda x: x * 2, lambda x: (x * 2).T, "transposed"),
        (lambda x: x + 1.5, lambda x: x, "argument returned"),
        (lambda x: x + 1.5, lambda x: x + 2.5, "off by a constant"),
        (lambda x: x + 1.5, lambda x: (x + 1.5) / 2, "off by a factor"),
        (lambda x: x + 1.5, lambda x: -(x + 1.5), "sign"),
        (lambda x: x > 1, lambda x: x <= 1, "inverted"),
        (lambda x: x > 1, lambda x: (x > 1).float(), "numbers for booleans"),
        (lambda x: (x, x + 1), lambda x: (x + 1, x), "swapped"),
        (lambda x: x[0].tolist(), lambda x: x[0].tolist()[::-1], "reversed"),
        (lambda x: [5, 3, 9], lambda x: [3, 5, 9], "another order"),
        (lambda x: x[0].tolist(), lambda x: x[0].tolist()[:-1], "end missing"),
        (lambda x: x[0].tolist(), lambda x: x[0].tolist()[1:], "start missing"),
        (lambda x: x[0].tolist(), lambda x: [*x[0].tolist(), 7.0], "too much at the end"),
        (lambda x: x[0].tolist(), lambda x: [7.0, *x[0].tolist()], "too much at the start"),
        (lambda x: x[0].tolist(), lambda x: [3.0, 4.0], "always the same"),
        (lambda x: x[0].tolist(), lambda x: [x[0].tolist()], "one value in a list"),
        (lambda x: x + 1.5, lambda x: x + torch.nan, "nan"),
    ],
)
def test_a_pattern_of_all_results(lesson, right, answer, kind):
    lesson(
        right, cases={"a square": (torch.tensor([[1.0, 2.0], [5.0, -3.0]]),), "a row": (torch.tensor([[4.0, 0.5]]),)}
    )
    assert checked(answer).mistake == kind


def test_a_pattern_must_hold_in_all_calls(lesson):
    lesson(lambda n: n > 2, cases=[(1,), (2,), (3,)])
    assert checked(lambda n: n > 1).mistake == "wrong value"
    assert checked(lambda n: True).mistake == "always the same"
    assert checked(lambda n: n <= 2).mistake == "inverted"
    lesson(lambda n: [n, 2, 3], cases=[(1,), (5,)])
    assert checked(lambda n: [[n], 2, [3]]).mistake == "wrong value"
    lesson(lambda x: 2 * x, cases=[(torch.tensor([1.0, 2.0]),), (torch.tensor([3.0, 5.0]),)])
    assert checked(lambda x: x + torch.tensor([1.0, 2.0])).mistake == "wrong value"


# What does not end


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(limits, "SECONDS", 0.4)
    monkeypatch.setattr(limits, "GIBIBYTES", 0.25)


def loops(numbers):
    while True:
        pass


def loops_over_errors(numbers):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


def waits(numbers):
    time.sleep(3)


def counts(numbers):
    return [number for number in itertools.count() if number < 3]


def grows(numbers):
    items = []
    while True:
        items.append([0] * 100_000)


@pytest.mark.usefixtures("doubling", "hasty")
@pytest.mark.parametrize("answer", [loops, loops_over_errors, waits, counts], ids=lambda answer: answer.__name__)
def test_an_answer_that_does_not_end(answer):
    """It is stopped; the random states are as before, and the next check works."""
    before, threads = random_states(), threading.active_count()
    verdict = checked(answer)
    assert verdict.mistake == "does not end"
    assert f"{answer.__name__}([1, 2, 3]) had not ended after" in verdict.message
    assert ("does it wait" if answer is waits else "loops never end") in verdict.message
    assert random_states() == before
    assert checked(twice).passed
    assert answer is waits or threading.active_count() == threads, "it is still running"


@pytest.mark.usefixtures("doubling", "hasty")
def test_an_answer_that_takes_more_and_more_memory(monkeypatch):
    monkeypatch.setattr(limits, "SECONDS", 20)
    verdict = checked(grows)
    assert verdict.mistake == "too much memory"
    assert "took more than 0.25 GiB of memory" in verdict.message


def test_a_printed_or_compared_answer_may_not_end_either(lesson, hasty):
    class Endless:
        def __eq__(self, other):
            while True:
                pass

        __hash__ = None

    lesson(Endless())
    assert checked(Endless()).mistake == "does not end"


# In colour


def test_html(doubling):
    """Wrapped, with its mark in white on a coloured ground, code as code, and nothing of an answer as markup."""
    right, wrong, later = (check(NUMBER, answer)._repr_html_() for answer in (twice, raising(ValueError("<b>&")), ...))
    marks = [
        re.search(r"background: (#\w+); color: (#\w+).*>(.)</span>", text).groups() for text in (right, wrong, later)
    ]
    assert [mark for *_, mark in marks] == ["✓", "✗", "…"]
    assert len({background for background, *_ in marks}) == 3
    assert all(contrast(background, text) >= 4.5 for background, text, _ in marks)
    assert "white-space: normal" in right
    assert "&lt;b&gt;&amp;" in wrong
    changed = check(NUMBER, lambda numbers: numbers.clear())._repr_html_()
    assert "<code>numbers</code>" in changed
    assert "<code>" not in check(NUMBER, lambda numbers: "a`b")._repr_html_()


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
    lesson(lambda n: torch.zeros(3), [("ones", lambda n: torch.ones(3), "ones")], cases=[(1,), (2,)])
    assert not checked(odd).passed
    assert not checked(lambda n: odd).passed
    assert not checked(lambda n: [odd, 1.0, 1.0]).passed
    lesson([0.0, 1.0, 1.0], [("words", ["one", 1.0, 1.0], "no words")])
    assert not checked(odd).passed
    assert not checked([odd, 1.0, 1.0]).passed
    lesson(Counter, [("five", lambda start: 5, "five")], call=lambda answer: [answer(3), answer(4).up()])
    assert not checked(odd).passed
    assert not checked(lambda start: odd).passed


@pytest.mark.parametrize(
    ("odd", "kind", "words"),
    [
        ("meta", "wrong type", "a tensor on the device meta"),
        ("sparse", "wrong type", "a tensor of layout sparse_coo"),
        ("nested", "wrong type", "a nested tensor"),
        ("bfloat16", "wrong type", "a tensor of dtype bfloat16: use float32 or float64"),
        ("complex", "wrong type", "a tensor of dtype complex64"),
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


ALIKE = [
    (6, np.int64(6)),
    (6, 6.0),
    (6, Fraction(6)),
    (6, torch.tensor(6)),
    (0.5, np.float32(0.5)),
    (0.5, Fraction(1, 2)),
    (0.5, Decimal("0.5")),
    (0.5, torch.tensor(0.5, dtype=torch.float64)),
    (2.0, 2),
    (0.1 + 0.2, 0.3),
    (float("nan"), float("nan")),
    (True, np.bool_(True)),
    (True, torch.tensor(True)),
    ("cat", np.str_("cat")),
    ([1, 2, 3], (1, 2, 3)),
    ([1, 2, 3], range(1, 4)),
    ([1, 2, 3], np.array([1, 2, 3])),
    ([1, 2, 3], torch.tensor([1.0, 2.0, 3.0])),
    ([1, 2, 3], [torch.tensor(1), np.float64(2), Fraction(3)]),
    ([[1, 2], 0.5], (np.array([1, 2]), 0.5)),
    (torch.eye(2), [[1, 0], [0, 1]]),
    (torch.eye(2), np.eye(2)),
    (torch.ones(2), torch.ones(2, dtype=torch.float64)),
    (torch.ones(2, dtype=torch.float64), torch.ones(2)),
    (torch.ones(2, dtype=torch.bool), [True, True]),
    ({"a": [1]}, {"a": (1,)}),
    (torch.tensor([0.1]), torch.tensor([0.1 + 1e-7])),
    (torch.tensor([torch.nan]), torch.tensor([torch.nan])),
    (torch.ones(3), nn.Parameter(torch.ones(3))),
    (torch.ones(3), inference()),
    (torch.ones(3), torch.ones(1).expand(3)),
    (torch.ones(3), (torch.ones(3) - 1j).conj().imag),
    ({"a": torch.ones(2)}, {"a": np.ones(2)}),
    (torch.zeros(0), []),
    (None, None),
]
DIFFERENT = [
    (1, True),
    (True, 1),
    ([0, 1], [False, True]),
    (torch.ones(2), torch.ones(2, dtype=torch.bool)),
    (torch.ones(2), torch.ones(2).bfloat16()),
    (torch.tensor([163_009_536]), torch.tensor([163_009_537])),
    (163_009_536, 163_009_537),
    (torch.tensor([1.0, torch.nan]), torch.tensor([torch.nan, 1.0])),
    (torch.tensor([1.0]), torch.tensor([torch.inf])),
    (0.5, float("nan")),
    ("12", [1, 2]),
    ([1, 2], {1, 2}),
    ([1, 2], [[1, 2]]),
    (np.array([1, 2]), np.array([1, 2, 3])),
    ({"a": np.ones(2)}, {"a": np.zeros(2)}),
    ({"a": 1}, {"b": 1}),
]


@pytest.mark.parametrize(("right", "answer"), ALIKE, ids=map(str, range(len(ALIKE))))
def test_alike(lesson, right, answer):
    lesson(right, [("far off", "far off", "you are far off")])
    assert checked(answer).passed
    lesson(lambda n: right, cases=[(1,)])
    assert checked(lambda n: answer).passed


@pytest.mark.parametrize(("right", "answer"), DIFFERENT, ids=map(str, range(len(DIFFERENT))))
def test_different(lesson, right, answer):
    lesson(right)
    assert not checked(answer).passed
    lesson(lambda n: right, cases=[(1,)])
    assert not checked(lambda n: answer).passed


@pytest.mark.parametrize(
    ("right", "answer", "words"),
    [
        (torch.ones(2), torch.ones(2).double(), "dtype float64"),
        (torch.ones(2), np.ones(2, dtype=np.float32), "an array of shape (2,)"),
        (6, 6.0, "6.0"),
        ([1, 2], [1, 2.0], "2.0"),
    ],
)
def test_an_exercise_about_the_type(lesson, right, answer, words):
    lesson(lambda n: right, cases=[(1,)], exact=True)
    assert checked(lambda n: copy.copy(right)).passed
    verdict = checked(lambda n: answer)
    assert verdict.mistake == "wrong type"
    assert words in verdict.message


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        (1 / 3, 0.333),
        (2 / 3, 0.667),
        (2 / 3, 0.666),
        (0.14248, 0.1425),
        (0.25, 0.2501),
        (6, 6.0000001),
        (9.0149, 9.01),
        (-1 / 3, -0.333),
        ("B", "b"),
    ],
)
def test_what_is_typed_in_need_not_be_exact(lesson, right, answer):
    lesson([right])
    assert checked([answer]).passed
    lesson(lambda n: right, cases=[(1,)])
    assert not checked(lambda n: answer).passed


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
        (torch.arange(20) * 2, torch.arange(20) ** 2, ["returns 1 at [1], not 2"]),
        (TABLE, TABLE.where(TABLE != 13, 99), ["99", "13", "[2, 3]"]),
        ([torch.eye(3), 1], [torch.eye(3), 2], ["returns 2 at [1], not 1"]),
        (NUMBERS, [*NUMBERS[:100], -5, *NUMBERS[101:]], ["returns -5 at [100], not 1100"]),
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
    sides = re.search(r"(?:returns|with) (.*?)(?: at .*)?, not (?:with )?(.*) \(see", verdict.message)
    assert sides is None or sides[1] != sides[2], "this is X, not X"


def test_a_long_list_that_is_all_wrong(lesson):
    lesson(list(range(1, 201)))
    assert checked([0] * 200).mistake == "wrong value"  # and its message is not a page: see `checked`


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            lambda n: (torch.zeros(n, n), torch.ones(n, n)),
            "wrong type",
            ["1.0, a tensor without axes at [1][0, 0]", "where there should be True or False"],
        ),
        (lambda n: (torch.zeros(n, n), torch.ones(n, 2, dtype=torch.bool)), "wrong shape", ["(5, 2) at [1]", "(5, 5)"]),
        (lambda n: (torch.zeros(n, n), None), "wrong type", ["None at [1]", "a tensor of shape (5, 5)"]),
        (lambda n: torch.zeros(n, n), "one value", ["one value", ASKS]),
        (lambda n: [torch.zeros(n, n)], "end missing", ["the end is missing"]),
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
    assert "collecting(2): it ends right" in verdict.message, "the first case was right"


# Errors as right answers, and mistakes that raise


def test_the_right_answer_may_be_an_error(lesson):
    def strict(text):
        if not text:
            raise ValueError("the text is empty")
        return len(text)

    lesson(strict, [("no check", len, "an empty text slips through")], cases=[("cat",), ("",)])
    assert checked(strict).passed
    assert checked(len).mistake == "no check"
    verdict = checked(lambda text: len(text) or -1)
    assert verdict.mistake == "no error"
    assert "returns -1, but it should raise ValueError" in verdict.message

    class TooShortError(ValueError):
        pass

    def returning(text):
        return ValueError("the text is empty") if not text else len(text)

    assert checked(lambda text: len(text) if text else raising(TooShortError())(text)).passed
    verdict = checked(returning)
    assert verdict.mistake == "returned error"
    assert "raise it, do not return it" in verdict.message
    verdict = checked(lambda text: 1 / len(text) and len(text))
    assert verdict.mistake == "another error"
    assert "raises ZeroDivisionError, but it should raise ValueError" in verdict.message


def test_what_is_not_a_function_is_no_known_mistake(lesson):
    """Calling it raises TypeError, and so does a known mistake, or even the right answer."""
    lesson(len, [("adds", lambda text: text + 1, "a number is added to a text")], cases=[("cat",)])
    assert checked(lambda text: text + 1).mistake == "adds"
    assert checked("len").mistake == "no function"

    def strict(text):
        raise TypeError("text must be a string")

    lesson(strict, cases=[(5,), (None,)])
    assert checked(strict).passed
    assert checked("len").mistake == "no function"


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        (lambda x: x.mul_(2), torch.ones(3)),
        (lambda x: x.mul_(1 + 1e-7), torch.ones(3)),
        (lambda x: x.append(1), [1, 2]),
        (lambda x: x[0].append(1), [[1], 2]),
        (lambda x: x.pop("a"), {"a": 1}),
        (lambda x: x.__setitem__(0, 5), np.ones(3)),
        (lambda x: x.train(), nn.Dropout().eval()),
        (lambda x: nn.init.zeros_(x.weight), nn.Linear(2, 2)),
    ],
)
def test_every_change_of_an_argument_is_noticed(lesson, change, argument):
    def changing(x):
        change(x)
        return 1

    lesson(lambda x: 1, cases=[(argument,)])
    assert checked(lambda x: 1).passed
    assert checked(changing).mistake == "changed argument"
    lesson(lambda x: 1, cases=[(argument,)], may_change=True)
    assert checked(changing).passed


def test_errors_are_told_apart_by_their_whole_text(lesson):
    mistakes = [("three axes", raising(RuntimeError("the tensor has the wrong shape: 3 axes")), "three axes")]
    lesson(lambda n: 1, mistakes, cases=[(1,)])
    assert checked(raising(RuntimeError("the tensor has the wrong shape: 3 axes"))).mistake == "three axes"
    assert checked(raising(RuntimeError("the tensor has the wrong shape: 4 axes"))).mistake == "raised"


def test_a_mistake_is_known_by_the_cases_that_tell_it_apart(lesson):
    """Not by what happens at the edges, unless it shows nowhere else."""

    def total(numbers):
        return sum(numbers) if numbers else 0

    mistakes = [
        ("largest", lambda numbers: max(numbers), "that is the largest"),
        ("empty is one", lambda numbers: sum(numbers) if numbers else 1, "an empty list sums to 0"),
    ]
    lesson(total, mistakes, cases=[([1, 2, 4],), ([5, -1],)], edges=[([],)])
    assert checked(total).passed
    assert checked(max).mistake == "largest"
    assert checked(lambda numbers: max(numbers, default=7)).mistake == "largest"
    assert checked(lambda numbers: sum(numbers) if numbers else 1).mistake == "empty is one"
    assert checked(lambda numbers: sum(numbers) if numbers else 2).mistake == "wrong value"
    assert not checked(lambda numbers: sum(numbers) if numbers else None).passed


def test_a_mistake_with_several_spellings(lesson):
    def in_either_order():
        """those are not the ones"""
        yield ["maps", "books"]
        yield ["books", "maps"]

    lesson(["bread", "rolls"])
    exercise = utils.exercises.find_exercise(NUMBER)
    exercise.mistakes = [utils.exercises.Mistake("others", in_either_order, in_either_order.__doc__)]
    assert checked(["maps", "books"]).mistake == checked(["books", "maps"]).mistake == "others"


def test_a_verdict_is_never_long(lesson):
    lesson(lambda x, y: x, cases=[(["a" * 90] * 3, torch.ones(20))])
    for answer in (lambda x, y: ["b" * 90] * 3, raising(ValueError("long " * 90)), lambda x: x):
        assert len(checked(answer).message) <= 200


def test_long_arguments_are_named(lesson):
    lesson(lambda x: x + 1, cases={"a long row": (torch.arange(30),)})
    assert "for a long row, " in checked(lambda x: x**2).message


# What is done with an answer


def test_an_exercise_on_a_class(lesson):
    class OneMore(Counter):
        def up(self):
            return super().up() + 1

    class Plain(Counter):
        def up(self):
            return "many"

    lesson(
        Counter,
        [("one too many", OneMore, "you count one too many")],
        call=lambda answer: [answer(start).up() for start in (10, 3)],
    )
    assert checked(Counter).passed
    assert checked(OneMore).mistake == "one too many"
    assert checked(Plain).mistake not in (None, "not attempted")
    for nonsense in (None, 5, "Counter", len, (n for n in "abc"), lambda start: None, itself()):
        assert checked(nonsense).mistake not in (None, "not attempted")


def test_a_demand(lesson):
    def call(answer):
        demand(answer() > 0, "it is not positive")
        demand(answer() < 10, "it is too large")

    lesson(lambda: 5, call=call)
    assert checked(lambda: 5).passed
    assert "it is too large" in checked(lambda: 50).message
    assert checked(lambda: -5).mistake == "complaint"
    assert "it is not positive" in checked(lambda: float("nan")).message


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
    (tmp_path / "lesson_78.py").write_text(content + "\n", encoding="utf-8")
    monkeypatch.setattr(utils.exercises, "__path__", [*utils.exercises.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "utils.exercises.lesson_78", raising=False)
    with pytest.raises(error, match=r"no_such_package_at_all|vocabulary is damaged"):
        check("78.1", 5)
