"""What learners might type: no right answer is refused, no wrong one accepted, and each verdict says what is true."""

import pytest
from answers import answers, built
from test_exercises import EXERCISES

from utils.exercises import check


@pytest.mark.parametrize("number", EXERCISES)
def test_each_answer_gets_its_verdict(number):
    found = []
    for table in answers().get(number, []):
        if "right" in table:
            code, expected = table["right"], None
        elif "wrong" in table:
            code, expected = table["wrong"], table.get("says", "?")
        else:
            continue
        verdict = check(number, built(code))
        if verdict.mistake != expected:
            found.append(f"{code.strip()}\n  expected {expected!r}, got {verdict.mistake!r}: {verdict.message}")
        elif len(verdict.message) > 200 or not verdict.message.isprintable():
            found.append(f"{code.strip()}\n  not one line of 200 characters: {verdict.message}")
    if found:
        pytest.fail("\n\n".join(found), pytrace=False)
