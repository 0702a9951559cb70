"""The page of utils: each module's contents from its docstrings, and the lesson that it is first met in."""

import re
from pathlib import Path

import course
from course import Lesson
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

TOOLS = ("arguments", "files", "progress_bar")  # which no lesson teaches


def modules() -> list[str]:
    """Return the names of the modules that a learner imports from; a package stands for its modules."""
    package = course.ROOT / "utils"
    found = [path.stem for path in package.glob("*.py")] + [path.parent.name for path in package.glob("*/__init__.py")]
    return [f"{package.name}.{name}" for name in sorted({*found} - {"__init__", *TOOLS})]


def file_of(module: str) -> Path:
    """Return a module's file in the repository."""
    path = course.ROOT / module.replace(".", "/")
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(course.ROOT)


def first_met_in(module: str, lessons: list[Lesson]) -> Lesson | None:
    """Return the first lesson that names a module; lesson 0, which only shows the route, does not count."""
    users = (lesson for lesson in lessons if lesson.number and re.search(rf"\b{re.escape(module)}\b", lesson.text))
    return next(users, None)


def sections(lessons: list[Lesson]) -> str:
    """Return a section for each module, to be filled from its docstrings."""
    return "\n\n".join(section(module, first_met_in(module, lessons)) for module in modules())


def section(module: str, lesson: Lesson | None) -> str:
    met = f"First met in {course.link(lesson)}.\n\n" if lesson else ""
    return f"## {module}\n\n{met}```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n```"


class FieldDashes(SphinxTransform):
    """Replace the hyphens that Sphinx puts after an argument's name by a dash, as smartquotes would if it were on."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for text in [*self.document.findall(nodes.Text)]:
            if " -- " in text and not isinstance(text.parent, (nodes.literal, nodes.literal_block)):
                text.parent.replace(text, nodes.Text(text.replace(" -- ", " – ")))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(FieldDashes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
