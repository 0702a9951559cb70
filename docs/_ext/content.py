"""The parts of pages that are made from the lessons and from the code, so that nothing is written twice.

The files in docs/ are read as they are, too: no directive is in them, and each part goes where a heading says.
"""

import re
from collections.abc import Callable

import api
import course
import glossary
import landing
import made_up_class
from course import Lesson
from sphinx.application import Sphinx

TOCTREE = """
```{toctree}
:caption: Lessons
:hidden:

../notebooks/00_the_whole_route
NOTEBOOKS
where_next
```

```{toctree}
:caption: Alongside the lessons
:hidden:

run
glossary
notation
references
for_teachers
api
../data/README
```
"""


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    lessons = course.read_lessons()
    text = (
        source[0]
        .replace("](../README.md#lessons)", "](index.md#the-lessons)")
        .replace("](../README.md)", "](index.md)")
    )
    if docname.startswith("notebooks/"):
        source[0] = for_site(source[0])
    elif docname == "docs/index":
        notebooks = "\n".join(f"../notebooks/{lesson.path.stem}" for lesson in lessons[1:])
        text = at_end(text, "One text, eleven stations", landing.route)
        text = at_end(text, "The lessons", lambda: landing.cards(lessons))
        source[0] = text + TOCTREE.replace("NOTEBOOKS", notebooks)
    elif docname == "docs/glossary":
        source[0] = glossary.with_all_lessons(text, lessons)
    elif docname == "docs/run":
        parts = [get_the_course(app.config.html_context["repository"])]
        parts += [course.readme_section(title) for title in ("Start", "Your own copies", "A text of your own")]
        source[0] = "\n\n".join([text.partition("\n")[0], *parts])
    elif docname == "docs/for_teachers":
        source[0] = for_teachers(text, lessons)
    elif docname == "docs/api":
        source[0] = text.partition("\n- ")[0] + "\n" + api.sections(lessons)
    elif docname.startswith("docs/"):
        source[0] = text


def get_the_course(repository: str) -> str:
    """Return how to get the course's folder, if the address of its repository is known."""
    if not repository:
        return ""
    return f"## Get the course\n\n```\ngit clone {repository}\ncd {repository.rpartition('/')[2]}\n```"


def for_teachers(text: str, lessons: list[Lesson]) -> str:
    text = after(text, "Time", lambda: f"{course.lesson_table(lessons)}\n\n{course.minutes(lessons)}")
    for lesson in lessons[1:]:
        text = after(text, f"Lesson {lesson.number}", lambda lesson=lesson: course.lesson_facts(lesson))
    text = after(text, "An example", lambda: made_up_class.glance(12, 4))
    return after(text, "To change a lesson", lambda: course.readme_section("To change a lesson").partition("\n")[2])


def after(text: str, heading: str, make: Callable[[], str]) -> str:
    """Return a text with a part put directly under a heading; ValueError if there is no such heading."""
    head, line, section = in_three(text, heading)
    return f"{head}{line}\n{make()}\n{section}"


def at_end(text: str, heading: str, make: Callable[[], str]) -> str:
    """Return a text with a part put at the end of what is under a heading; ValueError if there is no such heading."""
    head, line, section = in_three(text, heading)
    own, mark, rest = section.partition("\n## ")
    return f"{head}{line}{own}\n\n{make()}\n{mark}{rest}"


def in_three(text: str, heading: str) -> list[str]:
    """Return what comes before a heading, its line, and what comes after."""
    parts = re.split(rf"^(#+ {re.escape(heading)}\n)", text, flags=re.MULTILINE)
    if len(parts) != 3:
        raise ValueError(f"there are {len(parts) // 2} headings {heading!r}, not one")
    return parts


def for_site(notebook: str) -> str:
    """Return a notebook's source with links as the site has them.

    The landing page replaces README, and the anchors of headings, in which JupyterLab keeps capitals
    and punctuation, are those of the site.
    """
    text = notebook.replace("](../README.md)", "](../docs/index.md)")
    return re.sub(r"(\]\([\w/.-]*\.ipynb#)([^)]+)\)", lambda match: f"{match[1]}{course.slug(match[2])})", text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
