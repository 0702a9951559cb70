"""How an answer comes to its verdict: is it finished, right, a known mistake, and if not, how does it differ?"""

import inspect
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from utils.exercises import differences, patterns, slips, stubs
from utils.exercises.outcomes import EMPTY, EmptyFilled, attempt, expected_of, kept, known_of
from utils.exercises.shown import described, shown
from utils.exercises.values import Raised, kind_of, same

if TYPE_CHECKING:
    from utils.exercises import Exercise, Mistake


class Diagnosis:
    """One answer on its way to a verdict."""

    def __init__(self, exercise: "type[Exercise]", answer: Any) -> None:
        self.exercise, self.answer = exercise, answer
        self.current = "your answer"  # what is running, for an answer that does not end

    def prepare(self) -> None:
        """Compute what the answer is compared with, which must not count as its time."""
        with torch.device("cpu"), EmptyFilled():
            expected_of(self.exercise)
            known_of(self.exercise)

    def verdict(self) -> tuple[str | None, str]:
        """Return the name of the mistake, None if the answer is right, and what to tell the learner."""
        exercise, answer = self.exercise, self.answer
        if found := self.not_begun() or self.gap_in(answer) or self.wrong_sort():
            return found
        with torch.device("cpu"), EmptyFilled():  # the exercises' data is there, whatever the default device
            got = self.outcomes()
            if found := next(filter(None, map(self.gap_in, got)), None):
                return found
            expected = expected_of(exercise)
            if all(map(self.same, got, expected)):
                return self.by_luck(expected) or (None, "")
            if found := self.unfit():
                return found
            if known := self.known_mistake(got, expected):
                return known.name, known.message
            return self.explain(got, expected)

    def same(self, got: Any, expected: Any, digits: int = differences.DIGITS) -> bool:
        digits = None if self.exercise.is_called else digits
        return same(got, expected, exact=self.exercise.exact, digits=digits)

    def wrong_sort(self) -> tuple[str, str] | None:
        """Say so if a value comes instead of a function or class."""
        answer, wanted = self.answer, "class" if isinstance(self.exercise.right, type) else "function"
        if not self.exercise.is_called:
            return None
        if wanted == "class" and isinstance(answer, torch.nn.Module):
            name = type(answer).__name__
            return "no class", f"the exercise asks for the class itself: pass {name}, without brackets after it"
        if not callable(answer):
            return f"no {wanted}", f"the exercise asks for a {wanted} itself, and your answer is {described(answer)}"
        return None

    def outcomes(self) -> list:
        if not self.exercise.is_called:
            return [kept(self.answer)]
        found = []
        for label, case in self.exercise.all_cases:
            self.current = self.call_text(label, case)
            found.append(attempt(self.exercise, self.answer, case))
        self.current = "your answer"
        return found

    def not_begun(self) -> tuple[str, str] | None:
        """Say so if the answer is still what the lesson gives."""
        sort = isinstance(self.exercise.right, type) or not isinstance(self.answer, type)
        empty = self.exercise.is_called and sort and stubs.is_untouched(self.answer, self.exercise.number)
        return ("not attempted", "") if empty or self.answer is ... else None

    def gap_in(self, got: Any) -> tuple[str, str] | None:
        """Say so if a `...` of the stub is left, in a value or as the cause of an error."""
        open_items, all_items = stubs.gaps(got)
        if not open_items and not (isinstance(got, Raised) and stubs.fails_on_a_gap(got.text or "", self.answer)):
            return None
        if not self.exercise.is_called:
            untouched = all(item is ... for item in stubs.leaves(got))
            left = f"there is still a `...` in {open_items} of {all_items} items"
        else:
            untouched = stubs.is_as_given(self.answer, self.exercise.number)
            left = "there is still a `...` in your code"
        return ("not attempted", "") if untouched else ("incomplete", left)

    def unfit(self) -> tuple[str, str] | None:
        """Say so if the answer cannot be right as it is written: a gap is left, or the parameters are others."""
        if name := stubs.empty_method(self.answer):
            return "incomplete", f"the method {name} is still empty"
        if stubs.assigns_a_gap(self.answer):
            return "incomplete", "there is still a `...` in your code"
        if not (names := self.exercise.parameters):
            return None
        arguments = names if self.exercise.call else self.exercise.all_cases[0][1]
        sentence = slips.parameters(self.answer, arguments, names)
        return ("wrong parameters", sentence) if sentence else None

    def by_luck(self, expected: Sequence) -> tuple[str, str] | None:
        """Say so if a right answer is right only by what torch.empty holds: nan counts as True, for example."""
        if not slips.uses(self.answer, *EMPTY):
            return None
        with EmptyFilled(with_zero=True):
            right = all(map(self.same, self.outcomes(), expected))
        return None if right else ("never set", "entries of torch.empty are used that were never set")

    def known_mistake(self, got: Sequence, expected: Sequence) -> "Mistake | None":
        """Return the mistake with these outcomes in all calls, or in all but the edges if it shows without them."""
        main = len(self.exercise.cases)
        for count in dict.fromkeys([len(got), main or 1]):
            for known, outcomes in known_of(self.exercise):
                triples = list(zip(got[:count], outcomes, expected))
                shows = any(not self.same(theirs, right) for _, theirs, right in triples)
                if shows and all(itertools.starmap(self.agree, triples)):
                    return known
        return None

    def agree(self, got: Any, known: Any, right: Any) -> bool:
        """Return whether an answer does the same as a mistake in a call; two right errors may differ in their text."""
        return self.same(got, known, digits=2) or (self.same(got, right) and self.same(known, right))

    def explain(self, got: Sequence, expected: Sequence) -> tuple[str, str]:
        """Return the kind of difference and a sentence on it."""
        exercise = self.exercise
        if not exercise.is_called:
            return differences.for_a_value(got[0], expected[0], exercise.asks)
        if isinstance(self.answer, type) and not (isinstance(exercise.right, type) or exercise.call):
            return "no function", f"the exercise asks for a function, and your answer is {described(self.answer)}"
        if isinstance(exercise.right, type) and inspect.isfunction(self.answer) and isinstance(got[0], Raised):
            return "no class", f"the exercise asks for a class, and your answer is {shown(self.answer)}"
        cases = exercise.all_cases
        index = next(index for index, pair in enumerate(zip(got, expected)) if not self.same(*pair))
        label, case = cases[index]
        call = self.call_text(label, case)
        if isinstance(got[index], Raised):
            return self.explain_error(call, got[index], expected[index])
        where = call.rstrip(",")
        if kind_of(expected[index]) == "number" and slips.uses(self.answer, "^"):
            return "not a power", f"{where}: ^ is not a power in Python, write **"
        if slips.uses(self.answer, *EMPTY) and patterns.has_unset(got[index]):
            return "never set", f"{where}: entries of torch.empty are used that were never set"
        skipped = ("error", "changed", "Complained", "NoneType")
        if not any(kind_of(item) in skipped for item in [*got, *expected]):
            given = {} if exercise.call else dict(zip(exercise.parameters, zip(*(case for _, case in cases))))
            if found := patterns.pattern(where, got, expected, given):
                return found
        return differences.difference(call, got[index], expected[index], exercise.asks, exercise.exact)

    def explain_error(self, call: str, got: Raised, expected: Any) -> tuple[str, str]:
        """Return the kind of slip that an error shows, and a sentence on it."""
        if issubclass(got.kind, TypeError) and (method := slips.without_self(self.answer)):
            return (
                "self missing",
                f"the method {method} has no parameter self: it is the first parameter of every method",
            )
        if sentence := slips.slip(got):
            return "raised", f"{call} raises {sentence}"
        if isinstance(expected, Raised):
            return "another error", f"{call} raises {got.kind.__name__}, but it should raise {expected.kind.__name__}"
        return "raised", f"{call} raises {slips.spelled(got)}"

    def call_text(self, label: str | None, case: tuple) -> str:
        """Return a call as it is named in messages: by its case, or with its arguments where the case has no name."""
        if self.exercise.call:
            return f"your answer, for {label}," if label else "your answer"
        name = getattr(self.answer, "__name__", "")
        name = name if isinstance(name, str) and name.isidentifier() and len(name) < 40 else "your function"
        return f"for {label}, {name}(…)" if label else f"{name}({', '.join(map(shown, case))})"
