"""Exercises whose answer is a choice, answered on the page with the verdicts of the checks themselves.

At build, every combination of choices is given to the exercise's diagnosis; the page holds
the verdicts, a character each.
"""

import itertools
import math
import re
from html import escape
from typing import Any

from cells import data_for_script, fold, has_class, script_where
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from utils.exercises import Exercise, find_exercise, worded
from utils.exercises.diagnosis import Diagnosis

MOST, COMBINATIONS = 12, 40_000  # choices for an item, and for all: more would be a search
NEED_A_KERNEL = {"10.3", "10.4"}  # only who runs what is asked about can see it
COUNTED = re.compile(r"list of (an|two|three|four|five|six)\b")  # else the form would tell how many items there are


class Questions(SphinxTransform):
    """Put a form under the check of each exercise that can be answered by choosing."""

    default_priority = 425

    def apply(self, **kwargs: object) -> None:
        for cell in [*self.document.findall(lambda node: has_class(node, "cell"))]:
            call = re.fullmatch(r'check\("(.+?)", \w+\)', cell.children[0].astext())
            if call and (choices := choices_of(exercise := find_exercise(call[1]))):
                words, sections = labels(cell.parent, len(choices)), targets(self.document, exercise.where)
                html = form(exercise, choices, words, sections)
                cell.parent.insert(cell.parent.index(cell) + 1, nodes.raw("", html, format="html"))
                stub = cell.parent[cell.parent.index(cell) - 1]
                fold([stub, cell], "In JupyterLab", "in-lab")


def spellings(answer: Any) -> list:
    """Return the answers that a mistake stands for: a generator yields several."""
    made = answer()
    return list(made) if hasattr(made, "__next__") else [made]


def choices_of(exercise: type[Exercise]) -> list[list] | None:
    """Return what can be chosen for each item of an answer; None if the answer is not a list of choices.

    All items of one kind have the same choices, so that these do not tell which item is which.
    """
    if exercise.number in NEED_A_KERNEL or exercise.is_called or isinstance(exercise.right, type):
        return None
    if not isinstance(right := exercise.right(), list):
        return None
    if not COUNTED.search(exercise.asks) or not all(isinstance(item, (bool, int, float, str)) for item in right):
        return None
    known = [answer for mistake in exercise.mistakes for answer in spellings(mistake.answer)]
    known = [answer for answer in known if isinstance(answer, (list, tuple)) and len(answer) == len(right)]
    pool = [*right, *itertools.chain.from_iterable(known)]
    choices = [of_kind(item, right, pool) for item in right]
    few = max(map(len, choices)) <= MOST and math.prod(map(len, choices)) <= COMBINATIONS
    return choices if few else None


def of_kind(item: Any, right: list, pool: list) -> list:
    """Return the choices for an item: what the right answer and the mistakes have of its kind."""
    if isinstance(item, bool):
        return [True, False]
    if isinstance(item, str):
        letters = all(len(other) == 1 for other in right if isinstance(other, str))
        form = r"[A-Z]" if letters else r"[a-z_0-9]+"
        return sorted({other for other in pool if isinstance(other, str) and re.fullmatch(form, other)})
    numbers = [other for other in pool if isinstance(other, (int, float)) and not isinstance(other, bool)]
    # Three digits are what a check asks for; a number below 0 would be seen to be wrong.
    numbers = {float(f"{number:.3g}") for number in numbers if number >= 0}
    if all(isinstance(other, int) for other in right if not isinstance(other, (bool, str))):
        numbers = {number for number in numbers if number == int(number)}
        return list(range(int(min(numbers)), int(max(numbers)) + 1))
    return sorted(numbers)


def labels(section: nodes.section, count: int) -> list[str]:
    """Return the words beside each item, as the task has them, or its number."""
    for before, found in itertools.pairwise(section.children):
        if isinstance(found, nodes.bullet_list) and "list of" in before.astext() and len(found) == count:
            return [item.astext().rstrip(".;") for item in found]
    text = "\n".join(node.astext() for node in section.children if isinstance(node, nodes.paragraph))
    if len(parts := re.findall(r"(\([a-z]\) .+?)(?=[,.:;]\s+\([a-z]\)|\.?$)", text, re.MULTILINE)) == count:
        return parts
    if (asked := re.search(r"list of .+?: (.+?)\.$", text, re.MULTILINE)) and len(
        parts := re.split(", (?:and )?", asked[1])
    ) == count:
        return parts
    if (first := re.search(r"list of \w+: (.+), and \w+ times True or False", text)) and (
        asked := re.search(rf": ([^:,\n]+(?:, [^:,\n]+){{{count - 2}}})\.$", text, re.MULTILINE)
    ):
        return [first[1], *asked[1].split(", ")]
    if (last := re.search(r"\bA to ([B-Z])\b", text)) and ord(last[1]) - ord("A") + 1 == count:
        return [chr(ord("A") + index) for index in range(count)]
    kind = re.search(r"list of \w+ (\w+)s\b", text)
    return [f"{kind[1] if kind else 'item'} {index + 1}" for index in range(count)]


def targets(document: nodes.document, where: str) -> dict[str, str]:
    """Return the addresses, on the page, of the sections to which an exercise's verdicts send the reader."""
    return {
        number: f"#{section['ids'][0]}"
        for section in document.findall(nodes.section)
        for number in re.findall(r"\d+\.\d+", where)
        if section.next_node(nodes.title).astext().startswith(f"{number} ")
    }


def table(exercise: type[Exercise], choices: list[list]) -> tuple[list[str], str]:
    """Return the verdicts, and for each combination of choices a character: the verdict's index, counted from "0"."""
    lines: dict[str, int] = {}
    codes = []
    for answer in itertools.product(*choices):
        line = worded(exercise, *Diagnosis(exercise, list(answer)).verdict()).message
        codes.append(chr(ord("0") + lines.setdefault(line, len(lines))))
    return list(lines), "".join(codes)


def form(exercise: type[Exercise], choices: list[list], words: list[str], sections: dict[str, str]) -> str:
    """Return the form as HTML; the script shows it."""
    verdicts, codes = table(exercise, choices)
    items = "".join(item(f"q{exercise.number}-{index}", *pair) for index, pair in enumerate(zip(words, choices)))
    data = data_for_script({"number": exercise.number, "verdicts": verdicts, "codes": codes, "sections": sections})
    return (
        f'<form class="question-form" aria-label="Exercise {exercise.number}" hidden>'
        f'<p>Answer here:</p>{items}<button type="submit">Check</button><div role="status"></div>'
        f"{data}</form>"
    )


def item(name: str, words: str, choices: list) -> str:
    """Return one item: two choices are buttons side by side, more are a list that opens."""
    shown = [f"{choice:g}" if isinstance(choice, float) else str(choice) for choice in choices]
    if len(choices) == 2:
        buttons = "".join(
            f'<label><input type="radio" name="{name}" value="{index}" /> {escape(text)}</label>'
            for index, text in enumerate(shown)
        )
        return f'<fieldset data-choices="2"><legend>{escape(words)}</legend>{buttons}</fieldset>'
    options = "".join(f'<option value="{index}">{escape(text)}</option>' for index, text in enumerate(shown))
    return (
        f'<fieldset data-choices="{len(choices)}"><legend>{escape(words)}</legend>'
        f'<select name="{name}" aria-label="{escape(words)}"><option value="">choose</option>{options}</select>'
        "</fieldset>"
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Questions)
    app.connect("html-page-context", script_where('<form class="question-form"', "questions.js"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
