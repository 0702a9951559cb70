"""Print the page that the builder "book" made as a PDF, with the browser that the browser tests use.

python docs/_ext/print_book.py docs/_build/book/index.html docs/_build/text-to-attention.pdf
"""

import io
import sys
from pathlib import Path

from chrome import FLAGS, find_chrome, missing
from playwright.sync_api import sync_playwright
from pypdf import PdfReader

FILL_IN = """pages => {
    for (const link of document.querySelectorAll(".contents a")) link.dataset.page = pages[link.hash.slice(1)] ?? "";
}"""


def page_numbers(pdf: bytes) -> dict[str, int]:
    """Return the page of each anchor that a link leads to."""
    reader = PdfReader(io.BytesIO(pdf))
    at = {page.indirect_reference.idnum: number for number, page in enumerate(reader.pages, 1)}
    return {
        name.removeprefix("/"): at[destination.page.idnum] for name, destination in reader.named_destinations.items()
    }


def print_book(html: Path, pdf: Path) -> int:
    """Write the PDF, and return how many pages it has."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=FLAGS)
        page = browser.new_page()
        page.goto(html.resolve().as_uri())
        # Once to see on which pages the chapters are, then with the numbers.
        page.evaluate(FILL_IN, page_numbers(page.pdf(prefer_css_page_size=True)))
        page.pdf(path=pdf, prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
        browser.close()
    return len(PdfReader(pdf).pages)


if __name__ == "__main__":
    if lacking := missing():
        sys.exit(lacking)
    source, made = map(Path, sys.argv[1:])
    print(f"The book has {print_book(source, made)} pages: {made}")
