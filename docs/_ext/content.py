"""The parts of pages that are made from the lessons and from the code, so that nothing is written twice.

The files in docs/ are read as they are, too: no directive is in them, and each part goes where a heading says.
"""

import re
from collections.abc import Callable

import api
import course
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
        text = after(text, "One text, eleven stations", landing.route)
        text = after(text, "The lessons", lambda: landing.cards(lessons))
        source[0] = text + TOCTREE.replace("NOTEBOOKS", notebooks)
    elif docname == "docs/run":
        parts = [course.readme_section(title) for title in ("Start", "Your own copies", "A text of your own")]
        source[0] = "\n\n".join([text.partition("\n")[0], *parts])
    elif docname == "docs/for_teachers":
        source[0] = for_teachers(text, lessons)
    elif docname == "docs/api":
        source[0] = text.partition("\n- ")[0] + "\n" + api.sections(lessons)
    elif docname.startswith("docs/"):
        source[0] = text


def for_teachers(text: str, lessons: list[Lesson]) -> str:
    text = after(text, "Time", lambda: f"{course.lesson_table(lessons)}\n\n{course.minutes(lessons)}")
    for lesson in lessons[1:]:
        text = after(text, f"Lesson {lesson.number}", lambda lesson=lesson: course.lesson_facts(lesson))
    text = after(text, "An example", lambda: made_up_class.glance(12, 4))
    return after(text, "To change a lesson", lambda: course.readme_section("To change a lesson").partition("\n")[2])


def after(text: str, heading: str, make: Callable[[], str]) -> str:
    """Return a text with a part put under a heading; ValueError if there is no such heading."""
    parts = re.split(rf"^(#+ {re.escape(heading)}\n)", text, flags=re.MULTILINE)
    if len(parts) != 3:
        raise ValueError(f"there are {len(parts) // 2} headings {heading!r}, not one")
    return f"{parts[0]}{parts[1]}\n{make()}\n{parts[2]}"


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
