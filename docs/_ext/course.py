"""What the site says about the lessons, read from the notebooks, so that nothing is written twice."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from nbformat import NotebookNode

from utils.workbook import reading
from utils.workbook.reading import NOTEBOOKS, ROOT

TITLE = "From text to attention"


@dataclass(frozen=True)
class Lesson:
    """A notebook, read for what its page, its position on the route and the glossary need."""

    path: Path

    @property
    def notebook(self) -> NotebookNode:
        return reading.read(self.path)

    @property
    def text(self) -> str:
        """All of the lesson, prose and code."""
        return "\n\n".join(cell.source for cell in self.notebook.cells)

    @property
    def first(self) -> str:
        """The first cell: title, one sentence, table."""
        return self.notebook.cells[0].source

    @property
    def number(self) -> int:
        return int(self.path.name[:2])

    @property
    def heading(self) -> str:
        """Number and title, as in "4. Simple attention"."""
        return self.first.splitlines()[0].removeprefix("# ")

    @property
    def title(self) -> str:
        return self.heading.partition(". ")[2]

    @property
    def facts(self) -> dict[str, str]:
        """The table under the title: minutes, what is needed, what one can do afterwards, shapes."""
        return dict(reading.table(self.first))

    @property
    def minutes(self) -> tuple[int, int]:
        """How long the core takes, and how long the parts marked "Going further" take (0: none is marked)."""
        core, further = re.fullmatch(
            r"(\d+)(?: \+ (\d+) for the parts marked Going further)?", self.facts["Minutes"]
        ).groups("0")
        return int(core), int(further)

    @property
    def abilities(self) -> list[str]:
        return self.facts["After this you can"].split(" · ")

    @property
    def highlighted(self) -> list[str]:
        """The station of the route that the lesson highlights, or the first and the last of several."""
        call = re.search(r'plot_route\("(.+?)"(?:, through="(.+?)")?\)', "\n".join(self.code))
        return [station for station in call.groups() if station]

    @property
    def station(self) -> str:
        return self.highlighted[0]

    @property
    def code(self) -> list[str]:
        return [cell.source for cell in reading.code_cells(self.notebook)]

    @property
    def has_slider(self) -> bool:
        return any("live-slider" in reading.tags(cell) for cell in self.notebook.cells)

    @cached_property
    def words(self) -> set[str]:
        """The anchors in the glossary of the words that the lesson lists as learned."""
        return set(re.findall(r"\]\(\.\./docs/glossary\.md#([^)]+)\)", self.text.partition("\nWords learned:")[2]))


@cache
def read_lessons() -> list[Lesson]:
    return [Lesson(path) for path in NOTEBOOKS]


def lesson_of(docname: str) -> Lesson:
    """Return the lesson of a page."""
    return next(lesson for lesson in read_lessons() if docname == f"notebooks/{lesson.path.stem}")


def by_station() -> dict[str, Lesson]:
    """Return the first lesson that highlights each station of the route."""
    return {lesson.station: lesson for lesson in reversed(read_lessons())}


def slug(heading: str) -> str:
    """Return a heading's anchor as code hosts make it: "UTF-8" has #utf-8, "token ID" #token-id."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def link(lesson: Lesson, text: str | None = None) -> str:
    """Return a link to a lesson for a page in docs/."""
    return f"[{text or lesson.heading}](../notebooks/{lesson.path.name})"


def lesson_table(lessons: Sequence[Lesson]) -> str:
    """Return a table of the lessons, with the minutes of their cores and of the rest, and what they need."""
    rows = [
        f"| {link(lesson)} | {lesson.minutes[0]} | {lesson.minutes[1] or '–'} | {for_docs(lesson.facts['You need'])} |"
        for lesson in lessons
    ]
    core, further = total_minutes(lessons)
    head = ["| lesson | core, minutes | Going further | needs |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, f"| all | {core} | {further} | |"])


def total_minutes(lessons: Sequence[Lesson]) -> tuple[int, int]:
    """Return how long the cores take together, and all that goes further."""
    cores, rests = zip(*(lesson.minutes for lesson in lessons))
    return sum(cores), sum(rests)


def minutes(lessons: Sequence[Lesson]) -> str:
    """Return how long the cores take together."""
    core, _ = total_minutes(lessons)
    return f"The cores of all {len(lessons)} lessons take {core:,} minutes, about {core / 60:.0f} hours."


def lesson_facts(lesson: Lesson) -> str:
    """Return one lesson's link, minutes and abilities."""
    core, further = lesson.minutes
    abilities = "\n".join(f"- {ability}" for ability in lesson.abilities)
    more = f" and {further} for the parts marked Going further" if further else ""
    return f"{link(lesson)}, {core} minutes{more}. Afterwards a learner can:\n\n{abilities}\n"


def readme_section(title: str) -> str:
    """Return a section of README, with its heading, as a page in docs/ has it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)[0]
    return section.replace("](docs/", "](").replace("](notebooks/", "](../notebooks/").replace("](data/", "](../data/")


def readme_lessons() -> dict[int, str]:
    """Return what README says one learns in each lesson."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| \[.+?\]\(.+?\) \| (.+?) \|", readme, re.MULTILINE)
    return {int(number): learned for number, learned in rows}


def for_docs(text: str) -> str:
    """Return a lesson's text with its links as they are seen from docs/."""
    return re.sub(r"\]\((?=[\w-]+\.ipynb)", "](../notebooks/", text)
