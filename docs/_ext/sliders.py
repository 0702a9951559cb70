"""Sliders that move on the page: their frames are drawn at build, so that they need no kernel and no other host."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path

import course
from cells import data_for_script, framed, script_where
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

HERE = Path(__file__).resolve().parent
KEPT = HERE.parent / "_build" / "frames"
STILL = "Sliders need JavaScript, on this page and in JupyterLab. This picture shows one of the positions."


def folder_of(lesson: course.Lesson) -> Path:
    """Return where a lesson's frames are kept; its name changes with everything that they are drawn from."""
    drawing = [HERE / "record_sliders.py", HERE / "cells.py", *sorted((course.ROOT / "utils").rglob("*.py"))]
    come_from = [lesson.path, *drawing, *sorted((course.ROOT / "data").iterdir())]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in come_from)).hexdigest()[:16]
    return KEPT / f"{lesson.path.stem}-{digest}"


def draw_frames(app: Sphinx) -> None:
    """Draw the frames that are not there yet, a process per core."""
    missing = [lesson for lesson in course.read_lessons() if lesson.has_slider and not folder_of(lesson).exists()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for problem in pool.map(draw, missing):
            if problem:
                raise ExtensionError(problem)


def draw(lesson: course.Lesson) -> str | None:
    """Draw the frames of one lesson; return what went wrong, or None."""
    folder, path = folder_of(lesson), os.pathsep.join([str(HERE), str(course.ROOT)])
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, HERE / "record_sliders.py", lesson.path, part],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return f"the sliders of {lesson.path.name} cannot be drawn:\n{done.stderr}"
    part.rename(folder)  # only now, so that a build that was stopped leaves no half of it
    return None


class Sliders(SphinxTransform):
    """Put the first frame under each cell with a slider, and its controls, which the script shows."""

    default_priority = 430

    def apply(self, **kwargs: object) -> None:
        cells = [node for node in self.document.findall(nodes.container) if "tag_live-slider" in node["classes"]]
        for number, cell in enumerate(cells):
            lesson = course.lesson_of(self.env.docname)
            html = figure(folder_of(lesson) / str(number), f"{lesson.path.stem}/{number}")
            cell += nodes.raw("", html, format="html")


def figure(frames: Path, name: str) -> str:
    """Return a slider's figure as HTML: its first frame, its controls, and what all frames show."""
    about = json.loads((frames / "frames.json").read_text(encoding="utf-8"))
    first = 0
    for control in about["controls"]:
        first = first * len(control["labels"]) + control["start"]
    controls = "".join(map(control_html, about["controls"]))
    picture = framed((frames / f"{first}.png").read_bytes(), about["alts"][first], *about["sizes"][first])
    room = "{} / {}".format(*map(max, zip(*about["sizes"])))  # for the tallest frame: nothing below it ever moves
    words, longest = escape(about["alts"][first]), escape(max(about["alts"], key=len))
    data = data_for_script({"folder": f"frames/{name}/", "controls": about["controls"], "alts": about["alts"]})
    return (
        f'<figure class="slider" style="--room: {room}"><div class="controls" hidden>{controls}</div>{picture}'
        f'<div class="words" data-longest="{longest}"><p class="said" role="status">{words}</p></div>'
        f"<noscript><p>{STILL}</p></noscript>{data}</figure>"
    )


def control_html(control: dict) -> str:
    name, labels, start = escape(control["name"]), control["labels"], control["start"]
    if labels == ["False", "True"]:
        return f'<label><input type="checkbox"{" checked" * start} /> {name}</label>'
    scale = f'min="0" max="{len(labels) - 1}" value="{start}" aria-valuetext="{escape(labels[start])}"'
    # The range itself says its value: as part of the label, the output would be read out once more.
    room = f'style="min-width: {max(map(len, labels))}ch" aria-hidden="true"'
    return f'<label>{name} <input type="range" {scale} /> <output {room}>{escape(labels[start])}</output></label>'


def copy_frames(app: Sphinx, exception: Exception | None) -> None:
    """Put the frames where the pages find them; a document in one piece has the first ones only."""
    if exception or app.builder.name != "html":
        return
    for lesson in course.read_lessons():
        if lesson.has_slider:
            target = app.outdir / "notebooks" / "frames" / lesson.path.stem
            shutil.copytree(folder_of(lesson), target, ignore=shutil.ignore_patterns("*.json"), dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", draw_frames)
    app.add_transform(Sliders)
    app.connect("html-page-context", script_where('<figure class="slider"', "slider.js"))
    app.connect("build-finished", copy_frames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
