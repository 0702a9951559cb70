"""Reading the notebooks: what the tests of lessons share."""

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from utils.workbook.saved import FURTHER, TASK

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

FOLD = re.compile(r"<details>\s*<summary>(.*?)</summary>\n\n(.*?)</details>", re.DOTALL)


@dataclass(frozen=True)
class Task:
    """A clinic case or an exercise: a heading, and the stub, check and folded parts in the cells below it."""

    kind: str
    number: str
    index: int  # of the heading's cell
    below: list[NotebookNode]

    @property
    def name(self) -> str | None:
        """What the learner must define: the second argument of the check."""
        match = len(self.below) == 3 and re.fullmatch(rf'check\("{self.number}", (\w+)\)', self.below[1].source)
        return match[1] if match else None

    @property
    def folds(self) -> list[tuple[str, str]]:
        """Summary and text of each folded part, up to the next heading."""
        text = self.below[2].source if len(self.below) == 3 else ""
        end = re.search(r"^#{1,6} ", without_fences(text), re.MULTILINE)
        return FOLD.findall(text[: end.start()] if end else text)

    @property
    def solutions(self) -> list[str]:
        """The Python blocks in the folded solution; a well-formed lesson has one."""
        text = dict(self.folds).get("Solution", "")
        return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@functools.cache
def read(path: Path) -> NotebookNode:
    """Return the notebook as it is stored: `nbformat.read` would repair what the tests look for."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


def rule(find: Callable[[Path], Iterator[tuple[NotebookNode | str, str]]]) -> Callable[[Path], None]:
    """Make a test from a function that yields where something is wrong in a notebook (a cell or words), and what."""

    @each_notebook
    @functools.wraps(find)
    def test(path: Path) -> None:
        found = ((where if isinstance(where, str) else label(where), what) for where, what in find(path))
        if lines := [f"{path.name}, {where}: {what}" for where, what in found]:
            pytest.fail("\n".join(lines), pytrace=False)

    return test


def label(cell: NotebookNode) -> str:
    """The cell's id, which is its index from 0, and its first line."""
    line = next((line.strip()[:60] for line in cell.source.splitlines() if line.strip()), "")
    return f"cell {cell.get('id')} “{line}”"


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def markdown_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "markdown"]


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def _spaces(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def without_fences(text: str) -> str:
    """The text with its code blocks replaced by spaces, so that every other character keeps its position."""
    return re.sub(r"^ *(```|~~~).*?^ *\1 *$", _spaces, text, flags=re.MULTILINE | re.DOTALL)


def without_code(text: str) -> str:
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", _spaces, without_fences(text), flags=re.DOTALL)


def headings(nb: NotebookNode) -> list[tuple[int, str]]:
    """Level and text of each heading."""
    text = "\n\n".join(without_fences(cell.source) for cell in markdown_cells(nb))
    return [(len(marks), text.strip()) for marks, text in re.findall(r"^(#{1,6}) +(.+)$", text, re.MULTILINE)]


WORDS, LINES = 150, 8  # read per minute
PREDICTION, ONE_TASK = 1, 6  # minutes
FIGURE = 4  # as many lines as take the time that a figure is looked at


def parts(nb: NotebookNode) -> Iterator[tuple[bool, NotebookNode, str]]:
    """Yield whether a part may be left out, its cell, and its source: a Markdown cell is cut at its headings.

    What a heading that ends in "· Going further" opens lasts until the next heading of its level or above.
    """
    further = 0  # the level of the heading that opened what may be left out
    for cell in nb.cells:
        starts = [0, *(match.start() for match in re.finditer(r"^#+ ", without_fences(cell.source), re.MULTILINE))]
        for start, end in zip(starts, [*starts[1:], None]) if cell.cell_type == "markdown" else [(0, None)]:
            source = cell.source[start:end]
            heading = re.match(r"(#+) .*", source) if cell.cell_type == "markdown" else None
            if heading and (not further or len(heading[1]) <= further):
                further = len(heading[1]) if heading[0].endswith(FURTHER) else 0
            if source:
                yield further > 0, cell, source


def estimated_minutes(nb: NotebookNode) -> tuple[float, float]:
    """Estimate how long a learner takes for the core of a lesson, and for what may be left out.

    150 words and 8 lines of code are read per minute, a figure is looked at as long as four lines, a
    prediction takes a minute, and a task six, hints and solution included.
    """
    minutes = {False: 0.0, True: 0.0}
    of_tasks = {cell.id for task in tasks(nb) for cell in task.below[:2]}
    for further, cell, source in parts(nb):
        if cell.cell_type == "markdown":
            text = re.sub(r"\]\([^)]*\)", "]", FOLD.sub(lambda fold: fold[2] if fold[1] == "Answer" else "", source))
            minutes[further] += len(re.findall(r"\w[\w'’.,-]*", without_fences(text))) / WORDS
            minutes[further] += PREDICTION * len(re.findall(r"<summary>Answer", source))
            minutes[further] += ONE_TASK * len(TASK.findall(source))
        elif cell.id not in of_tasks:
            lines = len([line for line in source.splitlines() if line.strip() and not line.startswith("# figure:")])
            minutes[further] += (min(lines, FIGURE) if "plots.show(" in source else lines) / LINES
    return minutes[False], minutes[True]


def table(text: str) -> list[list[str]]:
    """Rows of the Markdown tables of a text, without the lines of dashes."""
    rows = [line.strip().strip("|") for line in text.splitlines() if line.lstrip().startswith("|")]
    return [[item.strip() for item in re.split(r"(?<!\\)\|", row)] for row in rows if row.strip("|:- ")]


def tasks(nb: NotebookNode) -> list[Task]:
    return [
        Task(match[1], match[2], index, nb.cells[index + 1 : index + 4])
        for index, cell in enumerate(nb.cells)
        if cell.cell_type == "markdown"
        for match in TASK.finditer(cell.source)
    ]


def texts(cell: NotebookNode) -> list[tuple[dict, str]]:
    """(holder, key) of each text among a code cell's outputs that nbval compares."""
    holders = [holder for output in cell.outputs for holder in (output, output.get("data", {}))]
    other = ("output_type", "name", "image/png", "image/jpeg")
    return [(holder, key) for holder in holders for key in holder if isinstance(holder[key], str) and key not in other]
