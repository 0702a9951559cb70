"""The cells of a lesson on its page: figures with their words; plot code and outputs to be predicted are folded."""

import base64
import io
import json
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import course
from course import Lesson
from docutils import nodes
from PIL import Image
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from utils.plots import ROUTE

NOT_ATTEMPTED = ": not attempted yet"
OUTPUT_FOLD = "Made your prediction? Show the output"


class Cells(SphinxTransform):
    """Give each cell of a notebook its form on the page."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for cell in [*self.document.findall(lambda node: has_class(node, "cell"))]:
            source, output = cell.children[0], cell.children[1] if len(cell.children) > 1 else None
            if "plots.plot_route(" in source.astext():
                cell.replace_self(route_strip(course.lesson_of(self.env.docname)))
                continue
            if output and NOT_ATTEMPTED in output.astext():
                cell.remove(output)  # a page cannot be worked in, and the task says what to do
            for bundle in [*cell.findall(is_mime_bundle)]:
                frame_pictures(bundle, Path(self.env.srcdir))
            for printed in output.findall(nodes.literal_block) if output else ():
                if is_table(printed.astext()):
                    printed["classes"].append("aligned")
            if "tag_figure" in cell["classes"]:
                fold([source], source.astext().splitlines()[0].removeprefix("# "), "plot-code")
            if "tag_predicted" in cell["classes"] and output:
                fold([output], OUTPUT_FOLD, "prediction")


def frame_pictures(bundle: nodes.container, root: Path) -> None:
    """Put each picture of an output into the page itself, with its alt text, in a frame that scrolls if it must."""
    words = {kind["mime_type"]: kind for kind in bundle.children}["text/plain"].astext()
    for image in [*bundle.findall(nodes.image)]:
        png = palette((root / image["uri"].lstrip("/")).read_bytes())
        width, height = (int(image[side].removesuffix("px")) for side in ("width", "height"))
        image.replace_self(nodes.raw("", framed(png, words, width, height), format="html"))


def framed(png: bytes, words: str, width: int, height: int) -> str:
    """Return a picture as HTML that holds it, in its frame; width and height are in pixels of the page."""
    address = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
    size = f'width="{width}" height="{height}" style="--natural: {width}px"'
    return f'<div class="paper"><img src="{address}" alt="{escape(words)}" {size} /></div>'


def palette(png: bytes, colours: int = 96) -> bytes:
    """Return a picture with a palette, which takes a third of the bytes."""
    reduced = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        coloured = picture.convert("RGB")
    coloured.quantize(colours, dither=Image.Dither.NONE).save(reduced, "PNG", optimize=True)
    return min(reduced.getvalue(), png, key=len)


def route_strip(lesson: Lesson) -> nodes.bullet_list:
    """Return the route that a cell draws as links to the lessons: on a narrow screen it wraps, and is still read."""
    drawn = [ROUTE.index(station) for station in lesson.highlighted]
    at = course.by_station()
    strip = nodes.bullet_list(classes=["route-strip"])
    for index, station in enumerate(ROUTE):
        mark = nodes.strong if drawn[0] <= index <= drawn[-1] else nodes.inline
        target = {"refdomain": "std", "reftype": "doc", "reftarget": f"/notebooks/{at[station].path.stem}"}
        link = addnodes.pending_xref("", nodes.inline("", station), refexplicit=True, refwarn=True, **target)
        strip += nodes.list_item("", nodes.paragraph("", "", mark("", "", link)))
    return strip


def is_table(text: str) -> bool:
    """Whether a text has columns: lines in which words are kept apart by several spaces."""
    return len(re.findall(r"\S {2,}\S.*$", text, re.MULTILINE)) > 1


def fold(parts: Sequence[nodes.Element], summary: str, kind: str) -> None:
    """Put parts of a page that follow one another into a <details> that is closed at first."""
    opening = f'<details class="{kind}"><summary>{escape(summary)}</summary>'
    start, end = (nodes.raw("", html, format="html") for html in (opening, "</details>"))
    parent = parts[0].parent
    parent.insert(parent.index(parts[-1]) + 1, end)
    parent.insert(parent.index(parts[0]), start)


def has_class(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.container) and name in node["classes"]


def is_mime_bundle(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "mime_bundle"


def data_for_script(data: dict) -> str:
    """Return data as HTML, for the script that its page loads."""
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def script_where(mark: str, script: str) -> Callable:
    """Return a handler that loads a script on the pages whose own HTML has a mark."""

    def add_script(app: Sphinx, pagename: str, template: str, context: dict, doctree: nodes.document | None) -> None:
        if doctree and any(mark in raw.astext() for raw in doctree.findall(nodes.raw)):
            app.add_js_file(script, defer="defer")

    return add_script


def drop_style(app: Sphinx, pagename: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Leave out myst-nb's style sheet, of 43 kB, since course.css styles the cells."""
    context["css_files"] = [file for file in context["css_files"] if "mystnb" not in str(file.filename)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Cells)
    app.connect("html-page-context", drop_style, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
