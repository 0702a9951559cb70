"""The book that `make book` prints, and what a browser prints of a page of the site: nothing is missing or cut."""

import io
import os
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from lessons import NOTEBOOKS, ROOT, code_cells, each_notebook, headings, read, tags, tasks
from nbformat import NotebookNode
from pypdf import PdfReader
from pypdf.generic import Destination
from site_pages import SITE, served

BOOK = Path(os.environ.get("BOOK", ROOT / "docs" / "_build" / "text-to-attention.pdf"))
PAPER = {"width": 680, "height": 990}  # A4 between the margins of print.css, in pixels
CUT = """() => [...document.querySelectorAll("article *, nav.contents *, #cover *")].filter(box => {
    const { right, width } = box.getBoundingClientRect();
    return width && right > innerWidth + 1 || getComputedStyle(box).overflowX !== "visible"
        && box.clientWidth && box.scrollWidth > box.clientWidth + 1;
}).map(box => box.outerHTML.slice(0, 200))"""
HIDDEN = """() => [...document.querySelectorAll("article details:not(.plot-code) > :not(summary)")]
    .filter(inside => !inside.checkVisibility({ contentVisibilityAuto: true }))
    .map(inside => inside.outerHTML.slice(0, 200))"""


def squeezed(text: str) -> str:
    """Return the characters of a text that every font has, without whitespace: a page wraps where it likes."""
    return re.sub(r"[^!-~]", "", unicodedata.normalize("NFKC", text))


def printed(pdf: PdfReader) -> str:
    """Return the text of all pages, without the lesson's title and the number, which come first on each."""
    texts = []
    for number, page in enumerate(pdf.pages, 1):
        lines = page.extract_text().splitlines()
        drawn = {str(number), *map(title, NOTEBOOKS)}
        texts += [line for line in lines[:2] if line.strip() not in drawn] + lines[2:]
    return squeezed("\n".join(texts))


def title(path: Path) -> str:
    return headings(read(path))[0][1]


def said(nb: NotebookNode) -> Iterator[str]:
    """Yield what a lesson's pages must contain: its code, what that prints, its verdicts, and its solutions."""
    for cell in code_cells(nb):
        if "figure" not in tags(cell):
            yield cell.source
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" not in data:
                text = output.get("text") or data.get("text/plain", "")
                if not text.endswith("not attempted yet"):  # a book cannot be worked in
                    yield text.partition(" ")[2] if "text/html" in data else text  # a verdict's mark is drawn
    for task in tasks(nb):
        yield from task.solutions


def missing(nb: NotebookNode, text: str) -> list[str]:
    return [piece for piece in said(nb) if squeezed(piece) not in text]


@pytest.fixture(scope="session")  # not by module: tests of other modules come between those of two lessons
def book() -> PdfReader:
    return PdfReader(BOOK)


@pytest.fixture(scope="session")
def text(book) -> str:
    return printed(book)


@each_notebook
def test_every_word_of_a_lesson_is_in_the_book(path, text):
    assert missing(read(path), text) == []


def test_the_outline_has_every_lesson_and_its_sections(book):
    outline = book.outline
    lessons = {
        entry.title: [section.title for section in below if isinstance(section, Destination)]
        for entry, below in pairwise(outline)
        if isinstance(entry, Destination) and isinstance(below, list)
    }
    for path in NOTEBOOKS:
        sections = [text for level, text in headings(read(path)) if level == 2]
        assert [*map(squeezed, lessons[title(path)])] == [squeezed(section.replace("·", "")) for section in sections]


def test_links_lead_to_a_page_of_the_book_or_to_the_web(book):
    inside = 0
    for page in book.pages:
        for link in (annotation.get_object() for annotation in page.get("/Annots", ())):
            if address := link.get("/A", {}).get("/URI"):
                assert address.startswith("https://"), address
            else:
                inside += 1
                assert link["/Dest"] in book.named_destinations, link["/Dest"]
    assert inside > len(NOTEBOOKS)


def test_nothing_in_the_book_is_wider_than_its_pages(chromium):
    page = chromium.new_page(viewport=PAPER)
    page.emulate_media(media="print")
    page.goto((BOOK.parent / "book" / "index.html").as_uri())
    assert page.evaluate(CUT) == []
    page.close()


def test_a_page_of_the_site_is_printed_whole(chromium):
    """Even without JavaScript nothing stays folded, nothing is cut, and no navigation is printed."""
    path = NOTEBOOKS[3]
    with served(SITE) as address:
        page = chromium.new_page(viewport=PAPER, java_script_enabled=False)
        page.goto(f"{address}/notebooks/{path.stem}.html")
        assert missing(read(path), printed(PdfReader(io.BytesIO(page.pdf())))) == []
        page.emulate_media(media="print")
        assert page.evaluate(HIDDEN) == []
        assert page.evaluate(CUT) == []
        useless = page.locator(".sidebar-drawer, .toc-drawer, .related-pages, .question-form")
        assert useless.filter(visible=True).count() == 0
        page.close()
