"""What the tests of lessons share; utils/workbook/reading.py reads the notebooks, for the tests as for the site."""

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode

from utils.workbook.reading import (
    FOLD,
    NOTEBOOKS,
    ROOT,
    Task,
    code_cells,
    headings,
    markdown_cells,
    read,
    table,
    tags,
    tasks,
    without_code,
    without_fences,
)
from utils.workbook.saved import FURTHER, TASK

__all__ = [
    "FOLD",
    "FURTHER",
    "NOTEBOOKS",
    "ROOT",
    "TASK",
    "Task",
    "code_cells",
    "headings",
    "markdown_cells",
    "read",
    "table",
    "tags",
    "tasks",
    "without_code",
    "without_fences",
]

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


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


WORDS, LINES = 150, 8  # read per minute
PREDICTION, ONE_TASK = 1, 6  # minutes
FIGURE = 4  # as many lines as take the time that a figure is looked at


def parts(nb: NotebookNode) -> Iterator[tuple[bool, NotebookNode, str]]:
    """Yield whether a cell may be left out, the cell, and its source.

    What a heading that ends in "· Going further" opens lasts until the next heading of its level or above.
    """
    further = 0  # the level of the heading that opened what may be left out
    for cell in nb.cells:
        heading = re.match(r"(#+) .*", cell.source) if cell.cell_type == "markdown" else None
        if heading and (not further or len(heading[1]) <= further):
            further = len(heading[1]) if heading[0].endswith(FURTHER) else 0
        yield further > 0, cell, cell.source


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


def texts(cell: NotebookNode) -> list[tuple[dict, str]]:
    """(holder, key) of each text among a code cell's outputs that nbval compares."""
    holders = [holder for output in cell.outputs for holder in (output, output.get("data", {}))]
    other = ("output_type", "name", "image/png", "image/jpeg")
    return [(holder, key) for holder in holders for key in holder if isinstance(holder[key], str) and key not in other]
