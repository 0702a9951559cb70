"""What a class has solved: text, tables for a spreadsheet and a picture, made from its submissions."""

import csv
from itertools import groupby
from pathlib import Path
from textwrap import fill, indent

from utils.workbook.progress import aligned
from utils.workbook.submissions import RESULTS, Submissions, read_submissions


def as_text(found: Submissions) -> str:
    """Return a table with one line per learner, what the checks told how often, and the notes."""
    lessons = {lesson: [*tasks] for lesson, tasks in groupby(found.tasks, key=lambda task: task.split(".")[0])}
    heads = [["", *(f"lesson {lesson}" for lesson in lessons), ""]]
    heads += [["learner", *("".join(task.split(".")[1] for task in tasks) for tasks in lessons.values()), "solved"]]
    rows, marked = [], found.rows()
    for (learner, lines), row in zip(found.verdicts.items(), marked):
        marks = dict(zip(found.tasks, row.replace("…", "·")))
        right = f"{row.count('✓')} of {len(lines)}"
        rows.append([learner, *("".join(map(marks.get, tasks)) for tasks in lessons.values()), right])
    told = []
    for task, mistakes in found.mistakes().items():
        column = [row[found.tasks.index(task)] for row in marked]
        told += ["", f"{task}: {column.count('✓')} right, {column.count('✗')} wrong, {column.count('…')} not attempted"]
        for message, learners in mistakes.items():
            told.append(fill(f"{len(learners)} × {message}", 96, initial_indent="  ", subsequent_indent="      "))
    notes = ["", *found.notes] if found.notes else []
    key = "✓ right  ✗ wrong  · not attempted  (no mark: no file)"
    return "\n".join([aligned(heads + rows), "", key, *told, *notes])


def in_words(found: Submissions) -> str:
    """Return what the picture shows."""
    columns = dict(zip(found.tasks, map("".join, zip(*found.rows()))))
    cells = "".join(columns.values())
    most = sorted(columns, key=lambda task: -columns[task].count("✗"))[:3]
    wrong = ", ".join(f"{task} ({columns[task].count('✗')})" for task in most if "✗" in columns[task])
    return (
        f"A map of {len(found.verdicts)} learners (rows) and tasks {found.tasks[0]} to {found.tasks[-1]} (columns): "
        f"{cells.count('✓')} of {len(cells) - cells.count(' ')} right. Most often wrong: {wrong or 'none'}."
    )


def report(folder: Path) -> str:
    """Return what a class has solved as text; write it, tables and a picture into a folder among the submissions.

    Raises:
        OSError: there is no such folder.
        ValueError: no file in it holds an exercise of the course.
    """
    found = read_submissions(folder)
    text = as_text(found)
    try:
        written = f"This text, a picture, and tables for a spreadsheet are in {_write(found, text, folder / RESULTS)}"
    except OSError as error:
        written = f"The tables and the picture could not be written: {error}"
    return f"{text}\n\n{written}"


def _write(found: Submissions, text: str, results: Path) -> Path:
    from utils.plots import as_png, plot_verdicts  # here, because they import torch

    results.mkdir(exist_ok=True)
    meanings = {"✓": "right", "✗": "wrong", "…": "not attempted", " ": ""}
    learners = [["learner", *found.tasks]]
    learners += [[name, *map(meanings.get, row)] for name, row in zip(found.verdicts, found.rows())]
    mistakes = [["task", "times", "what the check says", "learners"]]
    for task, told in found.mistakes().items():
        mistakes += [[task, len(names), message, "; ".join(names)] for message, names in told.items()]
    for name, rows in {"learners": learners, "mistakes": mistakes}.items():
        with (results / f"{name}.csv").open("w", encoding="utf-8-sig", newline="") as file:  # so that Excel reads it
            csv.writer(file).writerows([[_no_formula(str(item)) for item in row] for row in rows])
    (results / "class.png").write_bytes(as_png(plot_verdicts(found.rows(), [*found.verdicts], found.tasks)))
    page = f"![{in_words(found)}](class.png)\n\n{indent(text, '    ', bool)}\n"
    (results / "class.md").write_text(page, encoding="utf-8")
    return results


def _no_formula(item: str) -> str:
    """Return a cell that a spreadsheet does not run, whatever a file is named."""
    return f"'{item}" if item.startswith(("=", "+", "-", "@", "\t")) else item
