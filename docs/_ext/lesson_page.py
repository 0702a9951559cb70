"""The text of a lesson on its page: each kind of part gets a class, so that it is recognised at a glance."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from utils.workbook.saved import FURTHER

KINDS = {"Answer": "answer", "Hint": "hint", "Solution": "solution"}


class LessonText(SphinxTransform):
    """Mark facts, questions, tasks and folded parts, and drop the links that the page has anyway."""

    default_priority = 420

    def apply(self, **kwargs: object) -> None:
        for title in [*self.document.findall(nodes.title)]:
            mark_title(title)
        if self.env.docname.startswith("notebooks/"):
            facts(next(self.document.findall(nodes.table)))
            for details in [*self.document.findall(opens_details)]:
                name_kind(details)
            for paragraph in [*self.document.findall(is_question)]:
                box_question(paragraph)
            drop_navigation([*self.document.findall(nodes.paragraph)][-1])


def mark_title(title: nodes.title) -> None:
    """Make "Going further" a badge, and mark the section of a clinic case or an exercise."""
    if re.match(r"(Case|Exercise) \d", title.astext()):
        title.parent["classes"].append("task")
    last = title.children[-1]
    if last.astext().endswith(FURTHER):
        text = last.astext().removesuffix(FURTHER)
        title.replace(last, [nodes.Text(f"{text} "), nodes.inline("", FURTHER.strip(" ·"), classes=["further"])])


def facts(table: nodes.table) -> None:
    """Make the table under the title a list of facts: it has no header, though Markdown gives it one."""
    items = []
    for row in table.findall(nodes.row):
        name, value = row.children
        term = nodes.term("", name.astext())
        items.append(nodes.definition_list_item("", term, nodes.definition("", *value.children)))
    target = {"refdomain": "std", "reftype": "doc", "reftarget": "/docs/run", "refexplicit": True, "refwarn": True}
    run = addnodes.pending_xref("", nodes.inline("", "take the course to your machine"), **target)
    what = "read and predict: what the cells print is stored. To run and change them, "
    here = nodes.definition("", nodes.paragraph("", "", nodes.Text(what), run, nodes.Text(".")))
    items.append(nodes.definition_list_item("", nodes.term("", "Here"), here))
    table.replace_self(nodes.definition_list("", *items, classes=["facts"]))


def opens_details(node: nodes.Node) -> bool:
    return isinstance(node, nodes.raw) and node.astext().startswith("<details><summary>")


def name_kind(details: nodes.raw) -> None:
    """Give a folded answer, hint or solution its class."""
    kind = KINDS[re.match(r"<details><summary>(\w+)", details.astext())[1]]
    html = details.astext().replace("<details>", f'<details class="{kind}">', 1)
    details.replace_self(nodes.raw("", html, format="html"))


def is_question(node: nodes.Node) -> bool:
    """Whether a paragraph says *Predict*, as each question does."""
    marks = node.findall(nodes.emphasis) if isinstance(node, nodes.paragraph) else ()
    return any(mark.astext() == "Predict" for mark in marks)


def box_question(paragraph: nodes.paragraph) -> None:
    """Put a question and what belongs to it, up to its folded answer, into a box; the first cell asks none."""
    section = paragraph.parent
    start = section.index(paragraph)
    ends = (index for index in range(start, len(section)) if section[index].astext().strip() == "</details>")
    if end := next(ends, None):
        box = nodes.container("", *section[start : end + 1], classes=["question"])
        section[start : end + 1] = [box]


def drop_navigation(paragraph: nodes.paragraph) -> None:
    if paragraph.astext().endswith("All lessons"):
        paragraph.parent.remove(paragraph)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(LessonText)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
