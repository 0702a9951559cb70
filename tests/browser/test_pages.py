"""Every page of the built site in a real browser: narrow and wide, light and dark, without a network."""

from itertools import pairwise

import pytest
from folds import expect_to_unfold_and_fold
from lessons import NOTEBOOKS, code_cells, markdown_cells, read
from playwright.sync_api import expect
from site_pages import SCHEMES, SITE, WIDTHS, Shown, pages, served

PAGES = pages()
CONTENT = ".bd-article-container"
# Text that a reader sees as text: neither code nor the source that is kept with a formula.
PROSE = """root => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (!node.parentElement.closest("pre, code, script, style, .katex")) found.push(node.data);
    }
    return found.join(" ");
}"""


@pytest.fixture(scope="session")
def address():
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def context(chromium):
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture(scope="module", params=PAGES)
def shown(context, address, request):
    shown = Shown(context, address, request.param)
    yield shown
    shown.page.close()


def notebook_of(shown):
    """The lesson of a page, or None for the pages beside the lessons."""
    return next((read(path) for path in NOTEBOOKS if shown.name == f"notebooks/{path.stem}.html"), None)


def test_the_site_is_built_with_all_lessons():
    missing = {f"notebooks/{path.stem}.html" for path in NOTEBOOKS} - {*PAGES}
    assert not missing, f"{SITE} lacks {sorted(missing)}: build the site first"


def test_all_is_loaded_from_the_site_itself(shown):
    assert shown.complaints == []


def test_page_fits_and_has_no_barriers(shown):
    shown.unfold(True)
    for width in WIDTHS:
        for scheme in SCHEMES:
            shown.at(width, scheme)
            sizes = shown.page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
            assert sizes[0] <= sizes[1], f"at {width} px the page scrolls sideways: {sizes}"
            # Barriers come from colours or layout: two of the four views show every colour and every layout.
            if (width == WIDTHS[0]) == (scheme == SCHEMES[0]):
                assert shown.barriers() == [], f"at {width} px, {scheme}"
    shown.unfold(False)


def test_pictures_are_shown_and_have_words(shown):
    for picture in shown.page.locator("img").all():
        assert picture.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0
    # Outside the text, the logo beside the course's name is decoration; axe checks that each img has an alt.
    for picture in shown.page.locator(f"{CONTENT} img").all():
        assert picture.get_attribute("alt").strip(), picture.evaluate("img => img.outerHTML.slice(0, 200)")
    if nb := notebook_of(shown):
        outputs = [output.get("data", {}) for cell in code_cells(nb) for output in cell.outputs]
        words = [data["text/plain"] for data in outputs if "image/png" in data]
        alts = shown.page.locator(".cell_output img").evaluate_all("all => all.map(img => img.alt)")
        assert alts == words


def test_headings_go_down_by_one_level_at_a_time(shown):
    levels = shown.page.locator(CONTENT).locator("h1, h2, h3, h4, h5, h6").filter(visible=True)
    levels = levels.evaluate_all("all => all.map(heading => Number(heading.tagName[1]))")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


def test_maths_is_typeset(shown):
    article = shown.page.locator(CONTENT)
    assert "$" not in article.evaluate(PROSE)
    assert article.locator(".katex-error").count() == 0
    if (nb := notebook_of(shown)) and any("$$" in cell.source for cell in markdown_cells(nb)):
        expect(article.locator(".katex-display").first).to_be_visible()


def test_answers_unfold_and_fold(shown):
    folds = shown.page.locator(f"{CONTENT} details")
    if nb := notebook_of(shown):
        expect(folds).to_have_count(sum(cell.source.count("<details>") for cell in markdown_cells(nb)))
    if folds.count():
        expect_to_unfold_and_fold(folds.first)


def test_code_is_copied(shown):
    if nb := notebook_of(shown):
        code = shown.page.locator(".cell_input").first
        code.hover()
        code.locator("button.copybtn").click()
        shown.page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
        copied = shown.page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == code_cells(nb)[0].source.strip()


@pytest.mark.parametrize("word", ["stride", "softmax"])
def test_search_finds(context, address, word):
    page = context.new_page()
    page.goto(f"{address}/search.html?q={word}")
    results = page.locator("#search-results li a")
    expect(results.first).to_be_visible(timeout=30_000)
    assert any("notebooks/" in link.get_attribute("href") for link in results.all())
    page.close()
