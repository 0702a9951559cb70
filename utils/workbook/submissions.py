"""A class's notebooks, read for the verdicts that they store; no learner's code is run.

A folder of submissions holds a file per learner and lesson, such as `blue_04_simple_attention.ipynb`, or a folder per
learner.
"""

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from utils.workbook.saved import COURSE, MARKS, Saved, better, fresh, lesson_files, read_saved

RESULTS = "class_progress"  # the folder, among the submissions, that what is found is written to
COPY = re.compile(r"[ _-]*(Copy\d*|\(\d+\)|\d{4}-\d\d-\d\d(_\d+)?)$", re.IGNORECASE)  # what is added to a copy's name


@dataclass(frozen=True)
class Submissions:
    """What a folder of submissions holds.

    Attributes:
        tasks: the numbers of all cases and exercises of the lessons that were handed in, in the course's order.
        verdicts: for each learner, for each task in their files, the line of its best verdict.
        notes: what was not read, or not as a matter of course.
    """

    tasks: list[str]
    verdicts: dict[str, dict[str, str]]
    notes: list[str]

    def rows(self) -> list[str]:
        """Return one mark per task for each learner: ✓ right, ✗ wrong, … not attempted, a space for no file."""
        return ["".join(found.get(task, " ")[0] for task in self.tasks) for found in self.verdicts.values()]

    def mistakes(self) -> dict[str, dict[str, list[str]]]:
        """Return for each task what its check told whom, beginning with what it told most."""
        told = defaultdict(lambda: defaultdict(list))
        for learner, found in self.verdicts.items():
            for task, line in found.items():
                if line[0] == "✗":
                    told[task][re.sub(r"^✗ \S+: | \(see section[^()]*\)$", "", line)].append(learner)
        return {
            task: dict(sorted(told[task].items(), key=lambda item: -len(item[1])))
            for task in self.tasks
            if task in told
        }


def read_submissions(folder: Path) -> Submissions:
    """Read all notebooks in a folder.

    Raises:
        OSError: there is no such folder.
        ValueError: no file in it holds an exercise of the course.
    """
    base, notes = folder, []
    while len(inside := [entry for entry in base.iterdir() if not _is_hidden(entry)]) == 1 and inside[0].is_dir():
        base = inside[0]  # a folder around all, as in an unpacked archive
    verdicts: dict[str, dict[str, str]] = defaultdict(dict)
    files, others = defaultdict(list), defaultdict(set)
    for path in _files(base, notes):
        name = str(path.relative_to(base))
        try:
            saved = read_saved(path)
        except (OSError, ValueError) as error:
            notes.append(f"not read: {_printable(name)}: {error}")
            continue
        if not (shown := {**dict.fromkeys(saved.tasks, MARKS[0]), **saved.verdicts}):
            notes.append(f"nothing to count: {_printable(name)} has no exercise")
            continue
        learner = _learner(path.relative_to(base), saved, base.name)
        lesson = int(next(iter(shown)).split(".")[0])
        course = _course(lesson)
        files[learner, lesson].append(name)
        if (saved.copied and saved.copied != course.copied) or saved.tasks.keys() != course.tasks.keys():
            others[lesson].add(learner)
        for task, line in shown.items():
            line = MARKS[0] if line == course.verdicts.get(task) else line  # broken code is still as it was given
            verdicts[learner][task] = better(verdicts[learner].get(task), line)
    if not verdicts:
        raise ValueError("\n".join([f"there is no lesson with exercises in {folder}", *notes]))
    for lesson, learners in sorted(others.items()):
        notes.append(f"another version of lesson {lesson} than the course's: {', '.join(sorted(learners))}")
    for (learner, lesson), names in files.items():
        if len(names) > 1:
            listed = ", ".join(map(_printable, names))
            notes.append(f"several files of lesson {lesson} by {learner}, of which the best verdicts count: {listed}")
    tasks = sorted({task for found in verdicts.values() for task in found}, key=_in_course_order)
    return Submissions(tasks, dict(sorted(verdicts.items(), key=lambda item: item[0].casefold())), notes)


def _is_hidden(path: Path) -> bool:
    """Return whether a file is one that systems and JupyterLab leave behind, or one of ours."""
    return path.name.startswith(".") or path.name in ("__MACOSX", RESULTS, "desktop.ini", "Thumbs.db")


def _files(base: Path, notes: list[str]) -> Iterator[Path]:
    """Yield the notebooks; note what else there is."""
    for where, folders, names in os.walk(base, onerror=lambda error: notes.append(f"not read: {error}")):
        folders[:] = sorted(name for name in folders if not _is_hidden(Path(name)))
        for path in sorted(Path(where, name) for name in names if not _is_hidden(Path(name))):
            if path.suffix.lower() == ".ipynb":
                yield path
            else:
                notes.append(f"not read: {_printable(str(path.relative_to(base)))}: it is not a notebook (.ipynb)")


def _learner(path: Path, saved: Saved, whole: str) -> str:
    """Return whose file it is: the folder's name, or what its own name adds to the lesson's."""
    if len(path.parts) > 1:
        return _printable(path.parts[0])
    name = path.stem
    for stem in [saved.copied.get("lesson", ""), *(lesson.stem for lesson in lesson_files().values())]:
        name = re.sub(re.escape(stem), "", name, flags=re.IGNORECASE)
    return _printable(COPY.sub("", name).strip(" _-.")) or whole


def _printable(name: str) -> str:
    """Return a name on one line, its letters composed, so that it is the same from every system."""
    composed = unicodedata.normalize("NFC", name)
    return "".join("�" if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") else letter for letter in composed)


@cache
def _course(lesson: int) -> Saved:
    """Return the course's own lesson, with what a new copy of it says of itself."""
    if not (path := lesson_files().get(lesson)):
        return Saved("", {}, {}, "", {}, False)
    return replace(read_saved(path), copied=fresh(path)["metadata"][COURSE])


def _in_course_order(task: str) -> tuple[int, bool, str]:
    lesson, label = task.split(".")
    return int(lesson), label[0].isdigit(), label.zfill(3)
