"""Draw what the sliders of a lesson show, at each of their positions; sliders.py runs this, one process per lesson.

python docs/_ext/record_sliders.py NOTEBOOK FOLDER
"""

import contextlib
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import ipywidgets
import torch
from cells import palette
from matplotlib.figure import Figure
from nbformat import NotebookNode

from utils import plots
from utils.workbook.reading import read, tags

DPI = 120  # frames are many: a little less than other figures have


def record(notebook: Path, folder: Path) -> None:
    """Run the code of a lesson up to its last slider, and write each slider's frames with their words to a folder."""
    left = sum("live-slider" in tags(cell) for cell in read(notebook).cells)
    shown: list[tuple[Figure, str]] = []
    sliders: list[tuple[Callable, dict]] = []
    cells = executed(
        notebook,
        lambda fig, alt: shown.append((fig, alt)),
        lambda **controls: lambda function: sliders.append((function, controls)) or function,
    )
    while len(sliders) < left:
        cell, _ = next(cells)
        if "live-slider" in tags(cell):
            draw(*sliders[-1], shown, folder / str(len(sliders) - 1))


def executed(notebook: Path, show: Callable, interact: Callable) -> Iterator[tuple[NotebookNode, dict]]:
    """Run the code cells of a lesson in order, and yield each with the names defined so far; what they print is lost.

    Until the last one, or until the iterator is closed, `show` and `interact` are called in place of the course's
    and ipywidgets' own.
    """
    names: dict = {"__name__": "__main__"}
    with patch.object(plots, "show", show), patch.object(ipywidgets, "interact", interact):
        for index, cell in enumerate(read(notebook).cells):
            if cell.cell_type == "code":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(cell.source, f"{notebook.name}, cell {index}", "exec"), names)
                yield cell, names


def draw(function: Callable, controls: dict, shown: list[tuple[Figure, str]], folder: Path) -> None:
    """Write the frames of one slider, in the order of its positions, and frames.json, which describes them."""
    folder.mkdir(parents=True)
    choices = {name: positions(control) for name, control in controls.items()}
    alts, sizes = [], []
    for number, values in enumerate(itertools.product(*choices.values())):
        torch.manual_seed(0)  # so that the same site is built again
        shown.clear()
        function(**dict(zip(choices, values)))
        if len(shown) != 1:
            where = function.__code__.co_filename
            raise ValueError(f"{where}: the slider shows {len(shown)} figures at {values}, and must show one")
        [(figure, alt)] = shown
        (folder / f"{number}.png").write_bytes(palette(plots.as_png(figure, DPI), colours=64))
        alts.append(alt)
        sizes.append([round(96 * inches) for inches in figure.get_size_inches()])
    described = [
        {
            "name": controls[name].description or name,
            "labels": labels(choice),
            "start": choice.index(start_of(controls[name])),
        }
        for name, choice in choices.items()
    ]
    description = {"controls": described, "alts": alts, "sizes": sizes}
    (folder / "frames.json").write_text(json.dumps(description, ensure_ascii=False), encoding="utf-8")


def start_of(control: ipywidgets.Widget) -> object:
    return round(control.value, 6) if isinstance(control.value, float) else control.value


def labels(choice: list) -> list[str]:
    """Return how a control's values are written: floating-point numbers with equally many decimal places."""
    if not isinstance(choice[0], float):
        return [str(value) for value in choice]
    places = max(len(f"{value:g}".partition(".")[2]) for value in choice)
    return [f"{value:.{places}f}" for value in choice]


def positions(control: ipywidgets.Widget) -> list:
    """Return the values that a control can have, in order."""
    match control:
        case ipywidgets.Checkbox():
            return [False, True]
        case ipywidgets.SelectionSlider():
            return list(control.options)
        case ipywidgets.IntSlider():
            return list(range(control.min, control.max + 1, control.step))
        case ipywidgets.FloatSlider():
            steps = round((control.max - control.min) / control.step)
            return [round(control.min + step * control.step, 6) for step in range(steps + 1)]
    raise TypeError(f"no frames are known for a {type(control).__name__}")


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]))
