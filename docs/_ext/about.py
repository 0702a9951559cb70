"""What a page says about itself to browsers, search engines and other sites, and where its source is."""

import io
import textwrap
from html import escape

import course
import matplotlib.image
import numpy as np
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

from utils.plots import INK, PAPER, plot_route
from utils.plots.canvas import CourseFigure

CARD = (12.0, 6.3)  # inches, at 100 pixels each: the size that social networks show


def describe(app: Sphinx, pagename: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give each page its first sentences as its description, its card, and each lesson the address of its notebook."""
    first = next(doctree.findall(nodes.paragraph), None) if doctree else None
    words = textwrap.shorten(first.astext(), 160, placeholder=" …") if first else "How a GPT reads text."
    title = next(doctree.findall(nodes.title)).astext() if doctree else context.get("title", "")
    about = {
        "og:title": title.replace(" Going further", ""),
        "og:description": words,
        "og:type": "article" if doctree else "website",
        "og:site_name": app.config.project,
        "twitter:card": "summary_large_image",
    }
    if context.get("pageurl"):
        about |= {
            "og:url": context["pageurl"],
            "og:image": f"{app.config.html_baseurl}_static/cards/{card_of(pagename)}.png",
        }
    tags = [f'<meta property="{name}" content="{escape(value)}" />' for name, value in about.items()]
    context["metatags"] = context.get("metatags", "") + "\n".join(
        [f'<meta name="description" content="{escape(words)}" />', *tags, ""]
    )
    if doctree:
        context["source"] = app.env.doc2path(pagename, base=False)
    if pagename.startswith("notebooks/"):
        context["notebook"] = context["pathto"](f"_sources/{context['sourcename']}", 1)


def card_of(pagename: str) -> str:
    return pagename.rpartition("/")[2] if pagename.startswith("notebooks/") else "course"


def draw_cards(app: Sphinx, exception: Exception | None) -> None:
    """Draw a card for the course and for each lesson: its title, and the route with its station highlighted."""
    if exception or not app.config.html_baseurl or app.builder.name != "html":
        return
    folder = app.outdir / "_static" / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    cards = {"course": ("From text to attention", ("text", "new text"))}
    cards |= {lesson.path.stem: (lesson.heading, lesson.highlighted) for lesson in course.read_lessons()}
    for name, (title, stations) in cards.items():
        figure = CourseFigure(*CARD)
        figure.text(0.06, 0.88, textwrap.fill(title, 30), size=44, weight="bold", va="top", color=INK)
        figure.text(0.06, 0.07, app.config.project, size=20, color=INK)
        figure.figimage(pixels(plot_route(*stations)), 66, 140)
        figure.savefig(folder / f"{name}.png", dpi=100)
        Image.open(folder / f"{name}.png").convert("RGB").quantize(64).save(folder / f"{name}.png", optimize=True)


def pixels(figure: CourseFigure) -> np.ndarray:
    """Return a figure as an array of pixels, twice as large as on a page."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=190, facecolor=PAPER)
    return matplotlib.image.imread(io.BytesIO(png.getvalue()))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", describe)
    app.connect("build-finished", draw_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
