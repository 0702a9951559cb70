"""A class's notebooks, read for the verdicts that they store; no learner's code is run."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from utils.workbook.learners import Entry, by_learner
from utils.workbook.saved import COURSE, MARKS, Saved, better, fresh, lesson_files, printable, read_saved

RESULTS = "class_progress"  # the folder, among the submissions, that what is found is written to
IGNORED = (RESULTS, "__MACOSX", ".DS_Store", ".ipynb_checkpoints", "desktop.ini", "Thumbs.db", "README.md")


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
    notes: list[str] = []
    entries = [*_entries(folder, notes)]
    if not entries:
        raise ValueError("\n".join([f"there is no lesson with exercises in {folder}", *notes]))
    verdicts, files, others = defaultdict(dict), defaultdict(list), defaultdict(set)
    for learner, (parts, lesson, saved) in by_learner(entries, printable(folder.resolve().name)):
        course = _course(lesson)
        files[learner, lesson].append(printable("/".join(parts)))
        if (saved.copied and saved.copied != course.copied) or saved.tasks.keys() != course.tasks.keys():
            others[lesson].add(learner)
        for task, line in {**dict.fromkeys(saved.tasks, MARKS[0]), **saved.verdicts}.items():
            line = MARKS[0] if line == course.verdicts.get(task) else line  # broken code is still as it was given
            verdicts[learner][task] = better(verdicts[learner].get(task), line)
    for lesson, learners in sorted(others.items()):
        notes.append(f"another version of lesson {lesson} than the course's: {', '.join(sorted(learners))}")
    for (learner, lesson), names in files.items():
        if len(names) > 1:
            listed = ", ".join(names)
            notes.append(f"several files of lesson {lesson} by {learner}, of which the best verdicts count: {listed}")
    tasks = sorted({task for found in verdicts.values() for task in found}, key=_in_course_order)
    return Submissions(tasks, dict(sorted(verdicts.items(), key=lambda item: item[0].casefold())), notes)


def _entries(folder: Path, notes: list[str]) -> Iterator[Entry]:
    """Yield the lessons among a folder's files; note what else there is."""
    for path in _files(folder, notes):
        parts = path.relative_to(folder).parts
        name = printable("/".join(parts))
        if path.suffix.lower() != ".ipynb":
            notes.append(f"not read: {name}: it is not a notebook (.ipynb)")
            continue
        try:
            saved = read_saved(path)
        except (OSError, ValueError) as error:
            notes.append(f"not read: {name}: {error}")
            continue
        if numbers := [*saved.tasks, *saved.verdicts]:
            yield Entry(parts, int(numbers[0].split(".")[0]), saved)
        elif saved.heading not in _without_tasks():
            notes.append(f"nothing to count: {name} has no exercise")


def _files(folder: Path, notes: list[str]) -> Iterator[Path]:
    next(folder.iterdir(), None)  # raises what os.walk would not
    for where, folders, names in os.walk(folder, onerror=lambda error: notes.append(f"not read: {error}")):
        inside = [Path(where, name) for name in sorted(folders + names) if not _is_ignored(name)]
        notes.extend(f"not read: {printable(str(path))}: it is a link" for path in inside if _is_linked_folder(path))
        folders[:] = [path.name for path in inside if path.is_dir()]
        yield from (path for path in inside if not path.is_dir())


def _is_ignored(name: str) -> bool:
    """Return whether a file is one that systems and JupyterLab leave behind, or one of the course's."""
    return name in IGNORED or name.startswith("._")


def _is_linked_folder(path: Path) -> bool:
    return path.is_symlink() and path.is_dir()


@cache
def _course(lesson: int) -> Saved:
    """Return the course's own lesson, with what a new copy of it says of itself."""
    if not (path := lesson_files().get(lesson)):
        return Saved("", {}, {}, "", {}, False)
    return replace(read_saved(path), copied=fresh(path)["metadata"][COURSE])


@cache
def _without_tasks() -> list[str]:
    """Return the headings of the course's lessons that have no tasks."""
    lessons = [_course(lesson) for lesson in lesson_files()]
    return [lesson.heading for lesson in lessons if not lesson.tasks]


def _in_course_order(task: str) -> tuple[int, bool, str]:
    lesson, label = task.split(".")
    return int(lesson), label[0].isdigit(), label.zfill(3)
