"""How far a learner is: what is solved in each lesson, and what is next."""

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from utils.workbook.copies import reset_command
from utils.workbook.saved import lesson_files, passed, read_saved


def progress(work: Path) -> str:
    """Return a table of the lessons in a learner's folder: what is solved, when each was saved, and what is next."""
    rows, tasks, notes = [], [], []
    latest, last_lesson = 0.0, 0
    for lesson, path in lesson_files().items():
        course, copy, mine = read_saved(path), work / path.name, None
        try:
            mine = read_saved(copy)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            notes.append(f"{copy}: {error}. A new copy, beside it: {reset_command(work.parent, lesson)}")
        verdicts = mine.verdicts if mine else {}
        here = [(lesson, number, in_core, passed(verdicts.get(number))) for number, in_core in course.tasks.items()]
        tasks += here
        seconds = copy.stat().st_mtime if mine and mine.worked_in else 0.0
        if seconds > latest:
            latest, last_lesson = seconds, lesson
        saved = datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M") if seconds else "–"
        rows.append((course.heading, *_solved(here), saved))
    # What the core lacks comes first, from the lesson that was saved last, and only then from those before it.
    unsolved = sorted((task for task in tasks if not task[-1]), key=lambda task: (not task[2], task[0] < last_lesson))
    number = unsolved[0][1] if unsolved else ""
    told = f"next: {'exercise' if number[-1].isdigit() else 'case'} {number}" if number else "All of them are solved."
    table = [("lesson", "solved", "core", "last saved"), *rows, ("all", *_solved(tasks), "")]
    return "\n".join([aligned(table), "", told, *notes])


def _solved(tasks: Sequence[tuple[int, str, bool, bool]]) -> tuple[str, str]:
    """Return how many of all tasks are solved, and how many of the core's."""
    every, core = [task[3] for task in tasks], [task[3] for task in tasks if task[2]]
    return f"{sum(every)} of {len(every)}" if every else "–", f"{sum(core)} of {len(core)}" if core else "–"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of texts as lines with aligned columns, in which letters may be wide or combine."""
    widths = [max(map(_width, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(text + " " * (width - _width(text)) for text, width in zip(row, widths)).rstrip() for row in rows
    )


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.category(letter) in ("Mn", "Me", "Cf") for letter in text)
