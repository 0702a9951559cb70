"""The glossary on its page: a compact list under letters; its file has a heading per term, for anchors everywhere."""

import re
from itertools import groupby

import course
from course import Lesson
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


def with_all_lessons(glossary: str, lessons: list[Lesson]) -> str:
    """Return the glossary with links to all lessons that list a term as learned, where it links the first.

    Raises:
        ValueError: a term does not link the first lesson that lists it.
    """

    def linked(section: str) -> str:
        term = section.partition("\n")[0]
        teach = [lesson for lesson in lessons if course.slug(term) in lesson.words]  # lesson 0 teaches none
        named = re.search(r"\(\[Lesson \d+\]\(\.\./notebooks/(.+?)\)\)\s*$", section)
        if not named or named[1] not in [lesson.path.name for lesson in teach[:1]]:
            listed = ", ".join(lesson.heading for lesson in teach) or "none"
            raise ValueError(
                f"glossary: {term!r} must end with a link to (Lesson n), the first lesson that lists it as learned; "
                f"these do: {listed}"
            )
        links = ", ".join(course.link(lesson, f"Lesson {lesson.number}") for lesson in teach)
        return f"{section[: named.start()]}({links})\n\n"

    head, *sections = re.split(r"^## ", glossary, flags=re.MULTILINE)
    return head + "".join(f"## {linked(section)}" for section in sections)


class Letters(SphinxTransform):
    """Make a list of definitions under each letter of the sections of the glossary, and a row of letters above."""

    default_priority = 450

    def apply(self, **kwargs: object) -> None:
        if self.env.docname != "docs/glossary":
            return
        page = next(self.document.findall(nodes.section))
        terms = [child for child in page.children if isinstance(child, nodes.section)]
        self.env.metadata[self.env.docname]["hide-toc"] = "true"  # the row of letters is one
        row = nodes.paragraph(classes=["letters"])
        page[page.index(terms[0]) :] = [row]
        for letter, group in groupby(terms, key=lambda term: term.next_node(nodes.title).astext()[0].upper()):
            anchor = f"letter-{letter.lower()}"
            row += nodes.reference("", letter, refid=anchor)
            page += nodes.section(
                "", nodes.title("", letter), nodes.definition_list("", *map(entry, group)), ids=[anchor]
            )


def entry(term: nodes.section) -> nodes.definition_list_item:
    """Return a term, with its anchors, and what it means."""
    title, *meaning = term.children
    ids = [
        *term["ids"],
        *(anchor for target in meaning if isinstance(target, nodes.target) for anchor in target["ids"]),
    ]
    meaning = [part for part in meaning if not isinstance(part, nodes.target)]
    return nodes.definition_list_item("", nodes.term("", *title.children, ids=ids), nodes.definition("", *meaning))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Letters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
