"""What the search page knows: an entry per section, exercise, term of the glossary and part of utils.

Sphinx's own search ranks whole pages and cuts its excerpts from what surrounds a text; search.js ranks these entries.
"""

import json
import re
from collections.abc import Iterator
from html import unescape

from docutils import nodes
from maths import mathml
from sphinx import addnodes
from sphinx.application import Sphinx

LONGEST = 2000  # characters of a section's text
NOT_PROSE = (nodes.section, nodes.title, nodes.raw, nodes.image, nodes.literal_block, nodes.target, addnodes.desc)
FURNITURE = {"cell_output", "facts", "letters", "route-strip"}  # what a page has beside its text
KINDS = {"Exercise": "exercise", "Case": "case"}
# How the glossary gives a term's other names.
OTHER_NAMES = re.compile(
    r"([\w-]+) for short|(?:[Ss]hort for|also called(?: an?)?|in code) (\w[\w' -]*)|\((\w+) in papers"
)


def entries(docname: str, doctree: nodes.document) -> Iterator[dict]:
    """Yield the entries of a page."""
    page = next(doctree.findall(nodes.title)).astext()
    glossary, lesson = docname == "docs/glossary", re.match(r"notebooks/(?!00)", docname)
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title).deepcopy()
        further = [badge.parent.remove(badge) for badge in [*title.findall(is_badge)]]
        url, kind = f"{docname}.html#{section['ids'][0]}", "section"
        if section.parent is doctree:
            url, kind = f"{docname}.html", "page"
            names = [f"lesson {number}" for number in re.findall(r"^notebooks/0?(\d+)", docname)]
        elif docname == "docs/index" or glossary:
            continue  # they hold links, and letters
        elif "task" in section["classes"]:
            kind = KINDS[title.astext().split()[0]]
        if kind != "page":  # the terms in bold are explained here; lesson 0 only meets them
            names = [term.astext() for term in own(section, nodes.strong) if lesson]
        inputs = (block for block in own(section, nodes.literal_block) if is_input(block) and kind != "page")
        code = " ".join(block.astext() for block in inputs)
        text = plain(nodes.container("", *(child.deepcopy() for child in section.children[1:] if is_own(child))))
        yield entry(title.astext(), kind, page, url, text, names, code) | ({"further": True} if further else {})
    for term, meaning in (item.children for item in doctree.findall(nodes.definition_list_item) if glossary):
        text = plain(meaning)
        names = [name.strip() for found in OTHER_NAMES.findall(text) for name in found if name]
        yield entry(term.astext(), "term", page, f"{docname}.html#{term['ids'][0]}", text, names)
    for described in doctree.findall(addnodes.desc):
        signature, content = described.children[0], described.children[-1]
        first = plain(next(content.findall(nodes.paragraph), nodes.paragraph()))
        for name in signature.get("ids", [])[:1] if not first.startswith("Alias for field") else ():
            names = [name.rpartition(".")[2]] if described["objtype"] in ("class", "function") else []
            yield entry(name, "utils", page, f"{docname}.html#{name}", first, names)


def entry(title: str, kind: str, page: str, url: str, text: str, names: list[str], code: str = "") -> dict:
    text = re.sub(r"\s+", " ", text).strip()
    used = {*re.findall(r"[^\W\d]\w{3,}", code)} - {*re.findall(r"\w+", text)}
    return {
        "title": title.strip(),
        "kind": kind,
        "page": page,
        "url": url,
        "text": text[:LONGEST],
        "names": [name.lower() for name in names],
        "code": " ".join(sorted(used)),
    }


def plain(node: nodes.Node) -> str:
    """Return the text of a node as it is read: without code, outputs, and what is folded until one has tried."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, (nodes.math, nodes.math_block)):
        return formula(node.astext()) + (" " if isinstance(node, nodes.math_block) else "")
    if isinstance(node, NOT_PROSE) or FURNITURE & {*node.get("classes", ())}:
        return ""
    text, folded = "", False
    for child in node.children:
        if isinstance(child, nodes.raw):
            folded = "<details" in child.astext() or (folded and "</details>" not in child.astext())
        elif not folded:
            text += plain(child)
    if text.startswith("Words learned:"):
        return ""
    if isinstance(node, (nodes.entry, nodes.list_item, nodes.term)) and re.search(r"[\w)`'\"]\s*$", text):
        text = f"{text.strip()} ·"
    return text if isinstance(node, nodes.Inline) else f"{text} "


def formula(latex: str) -> str:
    """Return a formula on one line, such as e^s_i / ∑_j e^s_j."""
    group = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
    latex = re.sub(rf"\\sqrt{group}", r"√\1", latex)
    latex = re.sub(rf"\\frac{group}{group}", r"\1 / \2", latex)
    latex = re.sub(r"(?<!\\)[_^]", r"\\text{\g<0>}", latex)
    bare = unescape(re.sub(r"<[^>]+>", "", re.sub(r"</mt[dr]>", " ", mathml(latex, display=False))))
    return re.sub(r"([=+≤·/])", r" \1 ", bare)


def own(section: nodes.section, kind: type[nodes.Node]) -> Iterator[nodes.Node]:
    """Yield the nodes of a kind in a section itself, not in its subsections."""
    return (node for child in section.children if is_own(child) for node in child.findall(kind))


def is_own(child: nodes.Node) -> bool:
    return not isinstance(child, nodes.section)


def is_badge(node: nodes.Node) -> bool:
    return isinstance(node, nodes.inline) and "further" in node["classes"]


def is_input(block: nodes.literal_block) -> bool:
    return "cell_input" in block.parent.get("classes", ())


def write_entries(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    pages = sorted(app.env.found_docs, key=lambda docname: (not docname.startswith("notebooks/"), docname))
    found = [one for docname in pages for one in entries(docname, app.env.get_doctree(docname))]
    script = f"const searchEntries = {json.dumps(found, ensure_ascii=False, separators=(',', ':'))};\n"
    (app.outdir / "_static" / "search_entries.js").write_text(script, encoding="utf-8")


def without_sphinx_search(app: Sphinx) -> None:
    """Have a search page without an index of Sphinx's."""
    app.builder.search = False
    app.config.html_additional_pages["search"] = "search.html"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", without_sphinx_search)
    app.connect("build-finished", write_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
