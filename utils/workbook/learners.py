"""Whose file is it? In a folder of submissions, names of files and folders tell.

It holds a file per learner and lesson, such as `blue_04_simple_attention.ipynb`, or a folder per learner. What several
learners handed in may be in a folder of its own, per lesson, say.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from utils.workbook.saved import Saved, lesson_files, printable

# What learning platforms, browsers, JupyterLab and `make reset` add to a name.
ADDED = (
    r"_\d+_assignsubmission_\w*",
    r"(_LATE)?_\d+_\d+_?(-\d+)?$",
    r"\bCopy of\b|\bipynb\b",
    r"[ _-]*(Copy\d*|\(\d+\)|\d{4}-\d\d-\d\d(_\d+)?)$",
)


class Entry(NamedTuple):
    """A file that was handed in: the parts of its path, the number of the lesson, and what it says."""

    parts: Sequence[str]
    lesson: int
    saved: Saved


def by_learner(entries: Sequence[Entry], around: str) -> Iterator[tuple[str, Entry]]:
    """Yield each file with its learner: what its name adds to the lesson's, or the name of the folder it is in."""
    folders = defaultdict(list)
    for entry in entries:
        if len(entry.parts) == 1:
            yield _name(entry) or around, entry
        else:
            folders[entry.parts[0]].append(entry._replace(parts=entry.parts[1:]))
    for folder, inside in folders.items():
        name = _cleaned(folder) or around
        found = by_learner(inside, name) if _are_of_several(inside) else ((name, entry) for entry in inside)
        yield from ((learner, entry._replace(parts=(folder, *entry.parts))) for learner, entry in found)


def _are_of_several(entries: Sequence[Entry]) -> bool:
    """Return whether a folder holds the same lesson of several learners, rather than several lessons of one."""
    names, folders = defaultdict(set), defaultdict(list)
    for entry in entries:
        first, *rest = entry.parts
        if rest:
            folders[first].append(entry._replace(parts=rest))
        names[entry.lesson].add(first if rest else _name(entry))
    return any(len(found - {""}) > 1 for found in names.values()) or any(map(_are_of_several, folders.values()))


def _name(entry: Entry) -> str:
    """Return what a file's name adds to that of its lesson."""
    stem = Path(entry.parts[-1]).stem
    for lesson in [entry.saved.copied.get("lesson", ""), *(path.stem for path in lesson_files().values())]:
        stem = re.sub(re.escape(lesson), "", stem, flags=re.IGNORECASE)
    return _cleaned(stem)


def _cleaned(name: str) -> str:
    for added in ADDED:
        name = re.sub(added, "", name.strip(" _-."), flags=re.IGNORECASE)
    return printable(name.strip(" _-."))
