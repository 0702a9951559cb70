"""What a page says about itself to browsers, search engines and other sites, and where its source is."""

import io
import re
import textwrap
from html import escape

import course
import matplotlib.image
from cells import palette
from docutils import nodes
from sphinx.application import Sphinx

from utils.plots import INK, as_png, plot_route
from utils.plots.canvas import CourseFigure

CARD = (12.0, 6.3)  # inches, at 100 pixels each: the size that social networks show


def describe(app: Sphinx, pagename: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give each page its description and its card, the file that it is made from, and each lesson its notebook."""
    first = next(doctree.findall(nodes.paragraph), None) if doctree else None
    words = textwrap.shorten(first.astext(), 160, placeholder=" …") if first else "How a GPT reads text."
    title = context["title"] if doctree else app.config.project
    about = facts(title, words, app.config.html_baseurl, pagename)
    tags = [tag(name, value) for name, value in about.items()]
    description = f'<meta name="description" content="{escape(words)}" />'
    context["metatags"] = "\n".join([context.get("metatags", ""), description, *tags, ""])
    if doctree:
        context["source"] = app.env.doc2path(pagename, base=False)
    if pagename.startswith("notebooks/"):
        context["notebook"] = context["pathto"](f"_sources/{context['sourcename']}", 1)


def facts(title: str, words: str, site: str, pagename: str) -> dict[str, str]:
    """Return what other sites show of a page; its picture needs the site's address, if that is known."""
    about = {
        "og:title": re.sub(r"<.*?>", "", title),
        "og:description": words,
        "og:type": "article" if pagename.startswith("notebooks/") else "website",
        "og:site_name": course.TITLE,
        "twitter:card": "summary_large_image" if site else "summary",
    }
    card = pagename.rpartition("/")[2] if pagename.startswith("notebooks/") else "course"
    return about | ({"og:url": f"{site}{pagename}.html", "og:image": f"{site}_static/cards/{card}.png"} if site else {})


def tag(name: str, value: str) -> str:
    kind = "name" if name.startswith("twitter:") else "property"
    return f'<meta {kind}="{name}" content="{escape(value)}" />'


def describe_root(app: Sphinx, exception: Exception | None) -> None:
    """Give the first address of the site, the one that people share, the course's card: its page only leads on."""
    if exception or not app.config.html_baseurl or app.builder.name != "html":
        return
    about = facts("", "", app.config.html_baseurl, app.config.root_doc)
    tags = [tag(name, about[name]) for name in ("og:url", "og:image", "twitter:card")]
    page = app.outdir / "index.html"
    head, end, body = page.read_text(encoding="utf-8").partition("  </head>")
    if tags[0] not in head:  # in a build upon an earlier one
        page.write_text("".join([head, *(f"    {line}\n" for line in tags), end, body]), encoding="utf-8")


def draw_cards(app: Sphinx, exception: Exception | None) -> None:
    """Draw a card for the course and for each lesson: its title, and the route with its station highlighted."""
    if exception or not app.config.html_baseurl or app.builder.name != "html":
        return
    folder = app.outdir / "_static" / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    cards = {"course": (course.TITLE, ("text", "new text"))}
    cards |= {lesson.path.stem: (lesson.heading, lesson.highlighted) for lesson in course.read_lessons()}
    for name, (title, stations) in cards.items():
        figure = CourseFigure(*CARD)
        figure.text(0.06, 0.88, textwrap.fill(title, 30), size=44, weight="bold", va="top", color=INK)
        figure.text(0.06, 0.07, app.config.project, size=20, color=INK)
        route = matplotlib.image.imread(io.BytesIO(as_png(plot_route(*stations), 190)))
        figure.figimage(route, 66, 140)
        (folder / f"{name}.png").write_bytes(palette(as_png(figure, 100), 64))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", describe)
    app.connect("build-finished", describe_root)
    app.connect("build-finished", draw_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
