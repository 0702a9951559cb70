"""Make up a class: a notebook per learner and lesson, with verdicts as its checks would store them.

.venv/bin/python docs/_ext/made_up_class.py FOLDER 24 4    (24 learners, lesson 4)
"""

import json
import random
import sys
from pathlib import Path

from utils.exercises import find_exercise
from utils.workbook.report import as_text, in_words, report
from utils.workbook.saved import TASK, fresh, lesson_files
from utils.workbook.submissions import RESULTS, read_submissions

BUILD = Path(__file__).resolve().parents[1] / "_build"


def hand_in(folder: Path, learners: int, lessons: list[int], seed: int = 0) -> None:
    """Write the notebooks; no code is run, and the verdicts are drawn at random."""
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for lesson in lessons:
        path = lesson_files()[lesson]
        for learner in range(1, learners + 1):
            notebook, skill = fresh(path), draw.random()
            for index, cell in enumerate(notebook["cells"]):
                if task := TASK.search("".join(cell["source"])) if cell["cell_type"] == "markdown" else None:
                    notebook["cells"][index + 2] |= checked(task[2], draw, skill)
            name = f"learner_{learner:03}_{path.name}"
            (folder / name).write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")


def checked(number: str, draw: random.Random, skill: float) -> dict:
    """Return what a check's cell stores; of the known mistakes, the first ones are made more often."""
    exercise = find_exercise(number)
    weights = [1 / rank for rank in range(1, len(exercise.mistakes) + 1)]
    mistake = draw.choices(exercise.mistakes, weights)[0]
    wrong = f"✗ {number}: {mistake.message} (see {exercise.where})"
    right, tried = draw.random() < 0.3 + 0.6 * skill, draw.random() < 0.6 + 0.4 * skill
    line = f"✓ {number}: right" if right and tried else wrong if tried else f"… {number}: not attempted yet"
    output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": [line]}}
    return {"execution_count": 1, "outputs": [output]}


def glance(learners: int, lesson: int) -> str:
    """Return what `make progress` shows of a made-up class, as Markdown for a page of docs/."""
    folder = BUILD / "made_up_class"
    hand_in(folder, learners, [lesson])
    report(folder)  # draws the picture
    found = read_submissions(folder)
    picture = (folder / RESULTS / "class.png").relative_to(BUILD.parent).as_posix()
    return f"![{in_words(found)}]({picture})\n\n```text\n{as_text(found)}\n```"


if __name__ == "__main__":
    hand_in(Path(sys.argv[1]), int(sys.argv[2]), [int(lesson) for lesson in sys.argv[3:]])
