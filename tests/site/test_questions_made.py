"""Exercises answered on the page: what the page holds is what the checks say."""

import functools
import itertools
import random

import pytest
import questions

from utils.exercises import EXERCISES, check, exercises_of, find_exercise

for lesson in range(1, 13):
    exercises_of(str(lesson))
OFFERED = {number: choices for number, exercise in EXERCISES.items() if (choices := questions.choices_of(exercise))}
TRUE_OR_FALSE = [
    number for number, exercise in EXERCISES.items() if not exercise.is_called and "True or False" in exercise.asks
]
# What can only be typed: another spelling, a value of another kind, or a number below 0.
ONLY_TYPED = {
    "3.6": {"spelled otherwise"},
    "6.5": {"counted from the end", "loss for a position", "words for letters"},
    "7.5": {"a loss"},
    "9.4": {"sign"},
}


@functools.cache
def table_of(number):
    return questions.table(find_exercise(number), OFFERED[number])


def test_true_or_false_and_choices_are_offered():
    assert {*TRUE_OR_FALSE, "3.6", "6.5", "7.5", "9.4"} <= {*OFFERED}
    assert not {"10.3", "10.4"} & {*OFFERED}, "they ask about runs that a page does not show"


@pytest.mark.parametrize("number", OFFERED)
def test_every_combination_has_the_verdict_of_the_check(number):
    choices = OFFERED[number]
    combinations = [*itertools.product(*choices)]
    verdicts, codes = table_of(number)
    assert len(codes) == len(combinations)
    right = [line for line in verdicts if line.startswith("✓")]
    assert len(right) == 1
    assert codes.count(chr(ord("0") + verdicts.index(right[0]))) == 1, "one combination is right"
    sample = random.Random(0).sample(range(len(codes)), min(100, len(codes)))
    for index in sample:
        said = check(number, list(combinations[index])).message.partition(" · ")[0]
        assert verdicts[ord(codes[index]) - ord("0")] == said


@pytest.mark.parametrize("number", OFFERED)
def test_the_choices_do_not_tell_which_item_is_which(number):
    right = find_exercise(number).right()
    for (one, of_one), (other, of_other) in itertools.combinations(zip(right, OFFERED[number]), 2):
        if type(one) is type(other):
            assert of_one == of_other


@pytest.mark.parametrize("number", OFFERED)
def test_every_mistake_can_be_made(number):
    """Choices that leave mistakes out give the answer away."""
    exercise = find_exercise(number)
    verdicts, _ = table_of(number)
    said = {questions.worded(exercise, mistake.name, mistake.message).message: mistake for mistake in exercise.mistakes}
    assert {mistake.name for line, mistake in said.items() if line not in verdicts} == ONLY_TYPED.get(number, set())
