"""The whole course as one page, made to be printed: `sphinx-build -b singlehtml`; print_book.py makes a PDF of it."""

import base64
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import course
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.singlehtml import SingleFileHTMLBuilder

BESIDE = ("docs/where_next", "docs/glossary", "docs/notation", "docs/references", "data/README")
STYLES = ("course.css", "print.css")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<title>{title}</title>
<style>
{style}
</style>
</head>
<body class="book">
{body}
</body>
</html>
"""
COVER = """<header id="cover">
<p class="title">{title}</p>
<p>{breath}</p>
<p>{minutes}</p>
<img src="data:image/png;base64,{picture}" alt="{alt}" />
<p class="licence">Lessons and figures: CC BY 4.0. Code: Apache-2.0.</p>
</header>
"""


class Book(SingleFileHTMLBuilder):
    """Writes index.html, in which everything is: the lessons, what is beside them, and the style."""

    name = "singlehtml"  # replaces Sphinx's own, so that every extension knows it
    epilog = ""

    def init(self) -> None:
        super().init()
        self.config.html_permalinks = False
        self.secnumbers, self.fignumbers = {}, {}

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        return f"#{key(docname)}"

    def write_documents(self, docnames: set[str]) -> None:
        self.prepare_writing(docnames)
        lessons = [f"notebooks/{lesson.path.stem}" for lesson in course.read_lessons()]
        chapters = {docname: self.env.get_doctree(docname) for docname in (*lessons, *BESIDE)}
        for docname, chapter in chapters.items():
            self.env.resolve_references(chapter, docname, self)
            own_anchors(chapter, key(docname))
            follow(chapter, {key(name) for name in chapters})
        pages = [cover(), contents(chapters), *(self.chapter(*chapter) for chapter in chapters.items())]
        html = PAGE.format(title=course.TITLE, style=self.style(chapters), body="\n".join(pages))
        (Path(self.outdir) / "index.html").write_text(html, encoding="utf-8")

    def chapter(self, docname: str, chapter: nodes.document) -> str:
        chapter.settings, self.current_docname = self.docsettings, docname
        translator = self.create_translator(chapter, self)
        chapter.walkabout(translator)
        body = "".join(translator.fragment).replace("<details", "<details open").replace(' loading="lazy"', "")
        return f'<article class="{key(docname)}" style="page: {key(docname)}">\n{body}</article>'

    def style(self, chapters: dict[str, nodes.document]) -> str:
        """Return the style of the pages; each chapter's name is at the top of its own."""
        styles = [(Path(self.confdir) / "_static" / name).read_text(encoding="utf-8") for name in STYLES]
        names = [
            f'@page {key(docname)} {{ @top-left {{ content: "{title(chapter)}"; }} }}'
            for docname, chapter in chapters.items()
        ]
        return "\n".join([self.highlighter.get_stylesheet(), *styles, *names])

    def finish(self) -> None:
        """Nothing else is needed."""


def key(docname: str) -> str:
    """Return a chapter's anchor, with which the anchors in it begin; it is a name in CSS too."""
    return docname.replace("data/README", "data").rpartition("/")[2].replace("_", "-").lstrip("0123456789-")


def own_anchors(chapter: nodes.document, own: str) -> None:
    """Begin each anchor of a chapter by the chapter's own, because "exercises" is in all of them."""
    for node in chapter.findall(nodes.Element):
        node["ids"] = [f"{own}--{anchor}" for anchor in node.get("ids", ())]
        if "refid" in node:
            node["refid"] = f"{own}--{node['refid']}"
        if node.get("refuri", "").startswith("#"):
            node["refuri"] = re.sub(r"^(#.+?)#", r"\1--", node["refuri"])
    next(chapter.findall(nodes.section))["ids"].insert(0, own)


def follow(chapter: nodes.document, keys: set[str]) -> None:
    """Let links into the book lead there, and mark those out of it; a link to what is not in the book is left out."""
    for node in [*chapter.findall(nodes.reference)]:
        address = f"#{node['refid']}" if "refid" in node else node.get("refuri", "")
        if ":" in address:
            node["classes"].append("external")
        elif address[1:].partition("--")[0] not in keys:
            node.replace_self(node.children)


def title(part: nodes.Element) -> str:
    return next(part.findall(nodes.title)).astext()


def cover() -> str:
    """Return the title page: the first words of README and its picture."""
    readme = (course.ROOT / "README.md").read_text(encoding="utf-8")
    alt, path = re.search(r"^!\[(.+)\]\((.+)\)$", readme, re.MULTILINE).groups()
    core, further = course.total_minutes(course.read_lessons())
    return COVER.format(
        title=course.TITLE,
        breath=escape(readme.split("\n\n")[1].replace("*", "")),
        minutes=f"All lessons with their answers: {core} minutes, and {further} for the parts marked Going further.",
        picture=base64.b64encode((course.ROOT / path).read_bytes()).decode("ascii"),
        alt=escape(alt),
    )


def contents(chapters: dict[str, nodes.document]) -> str:
    """Return the table of contents; print_book.py fills in the page numbers."""

    def lines(chapter: nodes.document) -> Iterator[str]:
        top = next(chapter.findall(nodes.section))
        sections = [node for node in top.children if isinstance(node, nodes.section)] if "." in title(top) else []
        for section in (top, *sections):
            kind = "chapter" if section is top else "section"
            words = escape(title(section)).replace(" Going further", " <small>Going further</small>")
            yield f'<li class="{kind}"><a href="#{section["ids"][0]}"><span>{words}</span></a></li>'

    items = "\n".join(line for chapter in chapters.values() for line in lines(chapter))
    return f'<nav class="contents">\n<h1>Contents</h1>\n<ol>\n{items}\n</ol>\n</nav>'


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_builder(Book, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
