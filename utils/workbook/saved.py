"""Notebook files as data: the course's lessons, copies of them, and the verdicts that saved copies store."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import bidirectional, category, normalize

LESSONS = Path(__file__).resolve().parents[2] / "notebooks"
COURSE = "text_to_attention"  # the key, in a copy's metadata, of the lesson and the version it was copied from
FURTHER = " · Going further"
NUMBER = r"([0-9]{1,2}\.(?:[A-Z]|[0-9]{1,2}))"
TASK = re.compile(rf"^### (Case|Exercise) {NUMBER} · \S.*$", re.MULTILINE)
VERDICT = re.compile(rf"^([…✗✓]) {NUMBER}: .*$", re.MULTILINE)
MARKS = "…✗✓"  # from worst to best


def lesson_files() -> dict[int, Path]:
    """Return the course's own notebooks by their numbers."""
    return {int(path.name[:2]): path for path in sorted(LESSONS.glob("[0-9][0-9]_*.ipynb"))}


def fresh(lesson: Path) -> dict:
    """Return a lesson as a learner begins it: without outputs, so that a prediction is one."""
    notebook = json.loads(lesson.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = [line.replace("](../README.md)", "](README.md)") for line in cell["source"]]
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    notebook["metadata"][COURSE] = {"lesson": lesson.stem, "version": version_of(notebook)}
    return notebook


@dataclass(frozen=True)
class Saved:
    """What a notebook file says.

    Attributes:
        heading: its title, as in "4. Simple attention"; empty if it does not start with one.
        tasks: for the number of each of its cases and exercises, whether it belongs to the core.
        verdicts: for the number of each task that was checked, the line of its best verdict.
        version: a short hash of the sources of all cells.
        copied: the lesson and the version that it is a copy of, where it says so.
        worked_in: whether a cell has been run, or changed since it was copied.
    """

    heading: str
    tasks: dict[str, bool]
    verdicts: dict[str, str]
    version: str
    copied: dict[str, str]
    worked_in: bool


def read_saved(path: Path) -> Saved:
    """Read a notebook file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a notebook, or one of an old format.
    """
    try:
        notebook = json.loads(path.read_bytes())
        cells = [(cell["cell_type"], _text(cell.get("source"))) for cell in notebook["cells"]]
        prose = "\n\n".join(source for kind, source in cells if kind == "markdown")
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        copied = ((notebook.get("metadata") or {}).get(COURSE) or {}).items()
        return Saved(
            heading=prose.partition("\n")[0].removeprefix("# ") if prose.startswith("# ") else "",
            tasks={match[2]: not match[0].endswith(FURTHER) for match in TASK.finditer(prose)},
            verdicts=_best(line for cell in code for output in cell.get("outputs") or [] for line in _verdicts(output)),
            version=(version := version_of(notebook)),
            copied=(copied := {str(key): str(value) for key, value in copied}),
            worked_in=copied.get("version") != version or any(cell.get("execution_count") for cell in code),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is not a notebook, or a damaged one") from None


def version_of(notebook: dict) -> str:
    """Return a short hash of the sources of a notebook's cells."""
    sources = [[cell["cell_type"], _text(cell.get("source"))] for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:12]


def _text(value: str | list[str] | None) -> str:
    return value if isinstance(value, str) else "".join(value or [])


def _verdicts(output: dict) -> Iterator[re.Match]:
    """Yield the verdicts that an output shows, whether a cell ends with one check or several, or prints them."""
    text = _text(output.get("text") or (output.get("data") or {}).get("text/plain"))
    if VERDICT.match(text[1:]):  # several checks in one line are shown as a tuple
        text = re.sub(rf", (?=[…✗✓] {NUMBER}: )", "\n", text[1:-1])
    return VERDICT.finditer(text)


def _best(verdicts: Iterator[re.Match]) -> dict[str, str]:
    best: dict[str, str] = {}
    for verdict in verdicts:
        best[verdict[2]] = better(best.get(verdict[2]), printable(verdict[0][:300]))
    return best


def printable(text: str) -> str:
    """Return a text from a file or its name as one line that any terminal shows, its letters composed.

    Letters of all scripts stay; what moves the cursor, reverses a line, or is not a character becomes �.
    """
    reversing = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return "".join(
        "�" if category(letter) in ("Cc", "Cs", "Zl", "Zp") or bidirectional(letter) in reversing else letter
        for letter in normalize("NFC", text)
    )


def better(one: str | None, other: str) -> str:
    """Return the better of two verdicts; of two that are equally good, the second."""
    return one if one and MARKS.index(one[0]) > MARKS.index(other[0]) else other


def passed(verdict: str | None) -> bool:
    return bool(verdict) and verdict[0] == MARKS[-1]


def stored_verdicts(lesson: int, folder: Path) -> dict[str, str]:
    """Return the verdicts that are stored in a folder's copy of a lesson; none if there is no such copy to read."""
    try:
        return read_saved(folder / lesson_files()[lesson].name).verdicts
    except (KeyError, OSError, ValueError):  # the notebook may have another name, or be saved at this very moment
        return {}
