"""What a page says about itself to browsers, search engines and other sites, and where its source is."""

from html import escape
from textwrap import shorten

from docutils import nodes
from sphinx.application import Sphinx


def describe(app: Sphinx, pagename: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give each page its first sentences as its description, and each lesson the address of its notebook."""
    first = next(doctree.findall(nodes.paragraph), None) if doctree else None
    if first:
        words = escape(shorten(first.astext(), 160, placeholder=" …"))
        context["metatags"] += f'<meta name="description" content="{words}" />\n'
    if doctree:
        context["source"] = app.env.doc2path(pagename, base=False)
    if pagename.startswith("notebooks/"):
        context["notebook"] = context["pathto"](f"_sources/{context['sourcename']}", 1)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
