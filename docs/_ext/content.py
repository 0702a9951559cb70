"""The parts of pages that are made from the lessons and from the code, so that nothing is written twice."""

from functools import partial

import course
import made_up_class
import pages
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from utils.plots import AXIS_COLOURS, ROUTE


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    lessons = course.read_lessons()
    if docname.startswith("notebooks/"):
        source[0] = pages.for_site(source[0])
        return
    if docname == "docs/glossary":
        source[0] = pages.with_backlinks(source[0], lessons)
    elif docname.startswith("docs/"):
        source[0] = pages.with_lesson_links(source[0], lessons)
    makers = {
        "route": partial(course.route, lessons, ROUTE, AXIS_COLOURS["num_tokens"]),
        "lesson-table": partial(course.lesson_table, lessons),
        "lesson": partial(course.lesson_facts, lessons),
        "minutes": partial(course.minutes, lessons),
        "api": partial(course.api, course.modules()),
        "class": made_up_class.glance,
    }
    source[0] = pages.fill(source[0], makers)


def mark_code(app: Sphinx, what: str, name: str, thing: object, options: dict, lines: list[str]) -> None:
    lines[:] = pages.docstring("\n".join(lines)).splitlines()


class FieldDashes(SphinxTransform):
    """Replace the hyphens that Sphinx puts after an argument's name by a dash, as smartquotes would if it were on."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for text in [*self.document.findall(nodes.Text)]:
            if text.astext() == " -- ":
                text.parent.replace(text, nodes.Text(" – "))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", mark_code, priority=400)  # before napoleon, at 500
    app.add_transform(FieldDashes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
