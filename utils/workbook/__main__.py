"""Look after a learner's own copies of the lessons, and read what is solved in them or by a class."""

import argparse
import sys
from pathlib import Path

from utils.workbook.copies import copy_lessons, find_base, open_lab, reset
from utils.workbook.progress import progress
from utils.workbook.report import report


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m utils.workbook", description=__doc__.partition("\n")[0])
    parser.add_argument("--base", metavar="FOLDER", help="where work/ is, if not in the checkout")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("lab", help="copy the lessons and open JupyterLab, which further options are for (the default)")
    commands.add_parser("copy", help="only copy the lessons, where they are not copied yet")
    shown = commands.add_parser("progress", help="what you have solved, or what a class has solved")
    shown.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="a folder of learners' notebooks")
    commands.add_parser("reset", help="copy a lesson afresh, and keep the old copy").add_argument("lesson", type=int)
    known, options = parser.parse_known_args()
    if options and known.command not in (None, "lab"):
        parser.error(f"{options[0]}: there is no such option")
    base = find_base(known.base)
    sys.stdout.reconfigure(errors="replace")  # where it is a file, Windows may have an encoding without ✓
    try:
        if known.command == "progress" and known.folder:
            print(report(known.folder.expanduser()))
        elif known.command == "progress":
            print(progress(base / "work"))
        elif known.command == "reset":
            print(reset(base, known.lesson))
        else:
            print(*copy_lessons(base), sep="\n", flush=True)
            if known.command != "copy":
                open_lab(base, options)
    except (OSError, ValueError) as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
