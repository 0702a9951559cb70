"""Reading and running the notebooks: what the tests of lessons share."""

import contextlib
import functools
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

TASK = re.compile(r"^### (Case|Exercise) (\d+\.\w+) · \S.*$", re.MULTILINE)
FOLD = re.compile(r"<details>\s*<summary>(.*?)</summary>\n\n(.*?)</details>", re.DOTALL)


@dataclass(frozen=True)
class Task:
    """A clinic case or an exercise: a heading, and the stub, check and folded parts in the cells below it."""

    kind: str
    number: str
    place: int  # of the heading's cell
    below: list[NotebookNode]

    @property
    def name(self) -> str | None:
        """What the learner is to define: the second argument of the check."""
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
        """The blocks of Python in the folded solution: in a well-formed lesson, one."""
        text = dict(self.folds).get("Solution", "")
        return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@functools.cache
def read(path: Path) -> NotebookNode:
    """Return the notebook as it is stored: `nbformat.read` would mend what the tests look for."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


def rule(find: Callable[[Path], Iterator[tuple[NotebookNode | str, str]]]) -> Callable[[Path], None]:
    """Make a test of a function that yields what is wrong in a notebook: where (a cell, or words), and what."""

    @each_notebook
    @functools.wraps(find)
    def test(path: Path) -> None:
        places = ((place if isinstance(place, str) else label(place), what) for place, what in find(path))
        if lines := [f"{path.name}, {place}: {what}" for place, what in places]:
            pytest.fail("\n".join(lines), pytrace=False)

    return test


def label(cell: NotebookNode) -> str:
    """The cell's id, which is its place from 0, and its first line."""
    line = next((line.strip()[:60] for line in cell.source.splitlines() if line.strip()), "")
    return f"cell {cell.get('id')} “{line}”"


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def markdown_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "markdown"]


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def _blanks(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def without_fences(text: str) -> str:
    """The text with blanks in place of its code blocks, so that places stay what they were."""
    return re.sub(r"^ *(```|~~~).*?^ *\1 *$", _blanks, text, flags=re.MULTILINE | re.DOTALL)


def without_code(text: str) -> str:
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", _blanks, without_fences(text), flags=re.DOTALL)


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
        Task(match[1], match[2], place, nb.cells[place + 1 : place + 4])
        for place, cell in enumerate(nb.cells)
        if cell.cell_type == "markdown"
        for match in TASK.finditer(cell.source)
    ]


def texts(cell: NotebookNode) -> list[tuple[dict, str]]:
    """(holder, key) of each text among a code cell's outputs that nbval compares."""
    holders = [holder for output in cell.outputs for holder in (output, output.get("data", {}))]
    other = ("output_type", "name", "image/png", "image/jpeg")
    return [(holder, key) for holder in holders for key in holder if isinstance(holder[key], str) and key not in other]


@functools.cache
def run(path: Path) -> tuple[dict, dict[str, object]]:
    """Run a lesson's code once, top to bottom, and beside each stub its folded solution and check.

    Returns:
        The names the lesson has before its first stub, and for each task the verdict on its
        solution, or the error it met.
    """
    nb = read(path)
    stubs = {task.place + 1: task for task in tasks(nb)}
    taught = names = {"__name__": "__main__", "display": lambda *_, **__: None}
    verdicts = {}
    with _quiet():
        for place, cell in enumerate(nb.cells):
            if place in stubs:
                names = dict(names)  # a stub's names must not change what the lesson itself defined
            if cell.cell_type == "code" and "live-slider" not in tags(cell):
                _execute(path, cell, names)
            if place in stubs:
                verdicts[stubs[place].number] = _solve(stubs[place], dict(names))
    return taught, verdicts


def _execute(path: Path, cell: NotebookNode, names: dict) -> None:
    try:
        exec(compile(cell.source, f"{path.name}, {label(cell)}", "exec"), names)
    except Exception as error:
        if "raises-exception" not in tags(cell):
            error.add_note(f"raised by {path.name}, {label(cell)}")
            raise


def _solve(task: Task, names: dict) -> object:
    try:
        exec("\n".join(task.solutions), names)
        return eval(task.below[1].source, names)
    except Exception as error:  # reported by the test, exercise by exercise
        return error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Print and draw nothing, and leave torch's own state as it was."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        torch.random.fork_rng(devices=[]),
    ):
        try:
            yield
        finally:
            torch.set_printoptions(profile="default")
