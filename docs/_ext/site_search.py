"""What the search page knows: an entry per section, exercise, term of the glossary and part of utils.

Sphinx's own search ranks whole pages and cuts its excerpts from what surrounds a text; search.js ranks these entries.
"""

import json
import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

LONGEST = 2000  # characters of a section's text


def entries(docname: str, doctree: nodes.document) -> Iterator[dict]:
    """Yield the entries of a page."""
    page = next(doctree.findall(nodes.title)).astext()
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title).astext()
        kind = "exercise" if "task" in section["classes"] else "page" if section.parent is doctree else "section"
        yield entry(docname, page, kind, title, section["ids"][0], own_text(section), defined(section))
    if docname == "docs/glossary":
        for item in doctree.findall(nodes.definition_list_item):
            term, meaning = item.children
            yield entry(docname, page, "term", term.astext(), term["ids"][0], meaning.astext(), [])
    for described in doctree.findall(addnodes.desc):
        signature, content = described.children[0], described.children[-1]
        if signature.get("ids"):
            first = next(content.findall(nodes.paragraph), nodes.paragraph())
            yield entry(docname, page, "utils", signature["ids"][0], signature["ids"][0], first.astext(), [])


def entry(docname: str, page: str, kind: str, title: str, anchor: str, text: str, defines: list[str]) -> dict:
    text = re.sub(r"\s+", " ", text).strip()[:LONGEST]
    url = f"{docname}.html" + (f"#{anchor}" if kind != "page" else "")
    return {"title": title, "kind": kind, "page": page, "url": url, "text": text, "defines": defines}


def own_text(section: nodes.section) -> str:
    """Return a section's prose, without its title, its subsections, code, outputs and formulas."""
    own = [child for child in section.children if not isinstance(child, (nodes.section, nodes.title, addnodes.desc))]
    blocks = [block for child in own for block in child.findall(nodes.paragraph)]
    return " ".join(node.astext() for block in blocks if (node := without_formulas(block)))


def without_formulas(block: nodes.paragraph) -> nodes.paragraph:
    copy = block.deepcopy()
    for formula in [*copy.findall(nodes.math)]:
        formula.parent.remove(formula)
    return copy


def defined(section: nodes.section) -> list[str]:
    """Return the terms in bold, in the section itself: it is where they are explained."""
    own = [child for child in section.children if not isinstance(child, nodes.section)]
    return [term.astext().lower() for child in own for term in child.findall(nodes.strong)]


def write_entries(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    found = [one for docname in sorted(app.env.found_docs) for one in entries(docname, app.env.get_doctree(docname))]
    script = f"const searchEntries = {json.dumps(found, ensure_ascii=False, separators=(',', ':'))};\n"
    (app.outdir / "_static" / "search_entries.js").write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
