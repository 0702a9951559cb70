"""Exercises answered on the page: what the page holds is what the checks say."""

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


def test_true_or_false_and_choices_are_offered():
    assert {*TRUE_OR_FALSE, "3.6", "6.5", "7.5", "9.4", "10.3", "10.4"} <= {*OFFERED}


@pytest.mark.parametrize("number", OFFERED)
def test_every_combination_has_the_verdict_of_the_check(number):
    choices = OFFERED[number]
    combinations = [*itertools.product(*choices)]
    verdicts, codes = questions.table(find_exercise(number), choices)
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
