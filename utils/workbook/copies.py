"""The learner's own copies of the lessons: made where there are none, opened, made afresh; never overwritten."""

import json
import os
import shutil
from datetime import date
from itertools import chain, count
from pathlib import Path

from utils.workbook.saved import COURSE, LESSONS, fresh, lesson_files, read_saved

ROOT = LESSONS.parent
SHOWN = ("docs", "data", "utils")  # what lessons and README link to, and the code that they teach


def find_base(chosen: str | None = None) -> Path:
    """Return the folder that holds work/: the chosen one, or the checkout, or one in the learner's home.

    The last is for a checkout that cannot be written to: several learners may share it.
    """
    if chosen:
        return Path(chosen).expanduser().resolve()
    work = ROOT / "work"
    return ROOT if os.access(work if work.exists() else ROOT, os.W_OK) else Path.home() / "text-to-attention"


def copy_lessons(base: Path) -> list[str]:
    """Copy the lessons into work/, without outputs, where they are not there yet; nothing in it is overwritten.

    Returns:
        What the learner should know: where the copies are, and which lessons have changed since they were copied.
    """
    work, changed = base / "work", []
    work.mkdir(parents=True, exist_ok=True)
    for number, lesson in lesson_files().items():
        notebook = fresh(lesson)
        put(work / lesson.name, as_json(notebook))
        try:
            copied = read_saved(work / lesson.name).copied
        except (OSError, ValueError):  # `make progress` names it
            continue
        if copied and copied != notebook["metadata"][COURSE]:
            changed.append(number)
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("](notebooks/", "](")
    for name in SHOWN:
        readme = readme.replace(f"]({name}/", f"](../{name}/")
        if base != ROOT:
            _show(base / name, ROOT / name)
    put(work / "README.md", readme)
    told = [f"Your own copies of the lessons are in {work}"]
    if changed:
        told.append(
            f"Lessons changed since you copied them: {', '.join(map(str, changed))}. To take a new one, and keep yours "
            f"under another name: {reset_command(base, changed[0])}"
        )
    return told


def as_json(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def reset_command(base: Path, number: int) -> str:
    """Return what a learner types to take a lesson afresh, with make and without."""
    make, python = ("", "") if base == find_base() else (f' BASE="{base}"', f' --base "{base}"')
    return f"make reset LESSON={number}{make} (or python -m utils.workbook{python} reset {number})"


def put(path: Path, text: str, kept: Path | None = None) -> None:
    """Write a file if there is none of that name, or after what is there has been renamed to `kept`.

    An interrupt, or a full disk, leaves a whole file or none; never is one overwritten.
    """
    if kept is None and os.path.lexists(path):
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        if kept:
            path.rename(kept)
        try:
            os.link(part, path)
        except FileExistsError:  # another process was faster
            pass
        except OSError:  # a file system without links
            part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def _show(link: Path, folder: Path) -> None:
    """Let one of the course's folders be seen beside work/."""
    if link.is_symlink() and not link.exists():
        link.unlink(missing_ok=True)  # it led to where the checkout was
    if link.exists():
        return
    try:
        link.symlink_to(folder)
    except FileExistsError:  # another process was faster
        pass
    except OSError:  # Windows, where not everyone may make one
        part = link.with_name(f".{link.name}.{os.getpid()}")
        shutil.copytree(folder, part, ignore=shutil.ignore_patterns("_build", "__pycache__"))
        part.rename(link)


def reset(base: Path, number: int) -> str:
    """Copy a lesson afresh; the copy that was there is kept under a name with today's date.

    Raises:
        ValueError: there is no lesson with that number.
    """
    if number not in (lessons := lesson_files()):
        raise ValueError(f"there is no lesson {number}: the lessons are {min(lessons)} to {max(lessons)}")
    copy, told = base / "work" / lessons[number].name, f"Lesson {number} has been copied again."
    if os.path.lexists(copy):
        dated = f"{copy.stem}_{date.today()}"
        names = chain([dated], (f"{dated}_{again}" for again in count(2)))
        kept = next(path for name in names if not os.path.lexists(path := copy.with_name(f"{name}.ipynb")))
        put(copy, as_json(fresh(lessons[number])), kept)
        told += f" What you had is kept as {kept.name}. If the lesson is open, reload it and restart its kernel."
    copy_lessons(base)
    return told


def open_lab(base: Path, options: list[str]) -> None:
    """Open JupyterLab at the copy that was saved last, or at lesson 0; it shows the folder that holds work/."""
    from jupyterlab.labapp import LabApp

    copies = [base / "work" / lesson.name for lesson in lesson_files().values()]
    opened = max(filter(is_begun, copies), key=lambda copy: copy.stat().st_mtime, default=copies[0])
    # JupyterLab refuses to run as root until it is told to; in a container there is often no other user.
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    LabApp.launch_instance([f"--ServerApp.root_dir={base}", *root, *options, str(opened)])


def is_begun(copy: Path) -> bool:
    """Return whether a copy was worked in; one that cannot be read is not opened."""
    try:
        return read_saved(copy).worked_in
    except (OSError, ValueError):
        return False
