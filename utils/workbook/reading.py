"""The one reader of notebooks, for the site and for the tests: cells, headings, folded parts, tasks."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from utils.workbook.saved import TASK

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
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
        """Summary and text of each folded part."""
        return FOLD.findall(self.below[2].source) if len(self.below) == 3 else []

    @property
    def solutions(self) -> list[str]:
        """The Python blocks in the folded solution; a well-formed lesson has one."""
        text = dict(self.folds).get("Solution", "")
        return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@functools.cache
def read(path: Path) -> NotebookNode:
    """Return the notebook as it is stored: `nbformat.read` would repair what the tests look for."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


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
