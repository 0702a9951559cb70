"""Every page of the built site in a real browser: narrow and wide, light and dark, without a network."""

from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from folds import expect_to_unfold_and_fold
from lessons import NOTEBOOKS, code_cells, markdown_cells, read, tags
from playwright.sync_api import expect
from site_pages import SCHEMES, SITE, WIDTHS, Shown, pages

PAGES = pages()
CONTENT = "article[role=main]"
# Text that a reader sees as text: neither code nor the source that is kept with a formula.
PROSE = """root => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (!node.parentElement.closest("pre, code, script, style, math")) found.push(node.data);
    }
    return found.join(" ");
}"""


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
            # The contrast of the text takes most of the time, and does not depend on the width.
            assert shown.barriers(text_contrast=width == WIDTHS[0]) == [], f"at {width} px, {scheme}"
    shown.unfold(False)


def test_page_comes_to_rest_at_every_width_of_a_phone(shown):
    """A box that just fits must not change between two sizes in every frame."""
    for width in range(330, 431, 5):
        shown.page.set_viewport_size({"width": width, "height": 900})
        heights = shown.page.evaluate("""async () => {
            const heights = [];
            while (heights.length < 5) {
                await new Promise(requestAnimationFrame);
                heights.push(document.querySelector("article").getBoundingClientRect().height);
            }
            return heights.slice(-3);
        }""")
        assert len({*heights}) == 1, f"at {width} px"


def test_pictures_are_shown_and_have_words(shown):
    for picture in shown.page.locator("img").all():
        assert picture.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0
    # Outside the text, the logo beside the course's name is decoration; axe checks that each img has an alt.
    for picture in shown.page.locator(f"{CONTENT} img").all():
        assert picture.get_attribute("alt").strip(), picture.evaluate("img => img.outerHTML.slice(0, 200)")
    if nb := notebook_of(shown):
        outputs = [output.get("data", {}) for cell in code_cells(nb) for output in cell.outputs]
        words = [data["text/plain"] for data in outputs if "image/png" in data]
        alts = shown.page.locator(".cell_output .paper img").evaluate_all("all => all.map(img => img.alt)")
        route, *others = words  # the route is a strip of links on the page
        assert alts == others
        here = shown.page.locator(".route-strip strong")
        assert here.count() >= 1
        assert here.first.inner_text().lower() in route.lower()


def test_headings_go_down_by_one_level_at_a_time(shown):
    levels = shown.page.locator(CONTENT).locator("h1, h2, h3, h4, h5, h6").filter(visible=True)
    levels = levels.evaluate_all("all => all.map(heading => Number(heading.tagName[1]))")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


def test_maths_is_typeset(shown):
    article = shown.page.locator(CONTENT)
    assert "$" not in article.evaluate(PROSE)
    if (nb := notebook_of(shown)) and any("$$" in cell.source for cell in markdown_cells(nb)):
        formula = article.locator("math[display=block]").first
        expect(formula).to_be_visible()
        assert formula.evaluate("math => math.getBoundingClientRect().height") > 15


def test_there_is_one_navigation(shown):
    assert shown.page.locator(CONTENT).get_by_role("link", name="All lessons").count() == 0
    assert shown.page.locator(".related-pages").count() == 1


def test_answers_unfold_and_fold(shown):
    if nb := notebook_of(shown):
        for kind, word in {"answer": "Answer", "hint": "Hint", "solution": "Solution"}.items():
            folds = shown.page.locator(f"{CONTENT} details.{kind}")
            expect(folds).to_have_count(sum(cell.source.count(f"<summary>{word}") for cell in markdown_cells(nb)))
            if folds.count():
                expect_to_unfold_and_fold(folds.first)


def test_what_a_question_asks_about_is_hidden_until_it_is_unfolded(shown):
    if nb := notebook_of(shown):
        asked = [cell for cell in code_cells(nb) if "predicted" in tags(cell)]
        folds = shown.page.locator(f"{CONTENT} details.prediction")
        expect(folds).to_have_count(len(asked))
        answers = shown.page.locator(f"{CONTENT} details.answer").count()
        assert shown.page.locator(f"{CONTENT} .question details.answer").count() == answers, "each is in a box"
        for fold in folds.all():
            expect(fold.locator(".cell_output")).to_be_hidden()
        expect_to_unfold_and_fold(folds.first)


def test_code_that_only_draws_is_folded_to_what_it_draws(shown):
    if nb := notebook_of(shown):
        titles = [cell.source.splitlines()[0].removeprefix("# ") for cell in code_cells(nb) if "figure" in tags(cell)]
        summaries = shown.page.locator(f"{CONTENT} details.plot-code > summary").all_inner_texts()
        assert summaries == [title for title in titles if "plot_route(" not in title][1:]


def test_nothing_is_cut(shown):
    """Everything wraps on a phone, or says that it scrolls and can be scrolled with the keyboard."""
    shown.unfold(True)
    shown.at(WIDTHS[0], "light")
    shown.page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")  # sizes are observed
    boxes = shown.page.locator(f"{CONTENT} :is(pre, .verdict, .paper, .table-wrapper, div.math)")
    cut = boxes.evaluate_all("""all => all.filter(box => box.scrollWidth > box.clientWidth + 8
        && !(box.tabIndex === 0 && getComputedStyle(box, "::after").content.includes("scroll")))
        .map(box => box.outerHTML.slice(0, 200))""")
    beyond = shown.page.locator(f"{CONTENT} :is(p, li, dt, dd, h1, h2, h3, summary, code)")
    cut += beyond.evaluate_all("""all => all.filter(box => box.getBoundingClientRect().right > innerWidth
        && !box.closest(".scrolls")).map(box => box.outerHTML.slice(0, 200))""")
    assert cut == []
    shown.unfold(False)


def test_figures_are_dark_in_the_dark(shown):
    pictures = shown.page.locator(f"{CONTENT} .paper img")
    if pictures.count():
        for scheme, filtered in (("light", "none"), ("dark", "invert(1) hue-rotate(180deg)")):
            shown.at(WIDTHS[1], scheme)
            assert pictures.first.evaluate("img => getComputedStyle(img).filter") == filtered


def test_a_lesson_is_light(context, address, shown):
    """At most 700 kB in 20 requests, before the frames of sliders."""
    if notebook_of(shown):
        fresh = context.browser.new_context()
        page, loaded = fresh.new_page(), []
        page.on("response", lambda response: "/frames/" not in response.url and loaded.append(response))
        page.goto(f"{address}/{shown.name}", wait_until="networkidle")
        sizes = {urlsplit(response.url).path: len(response.body()) for response in loaded}
        fresh.close()
        assert len(sizes) <= 20, [*sizes]
        assert sum(sizes.values()) <= 700_000, sizes


def test_code_is_copied(shown):
    if nb := notebook_of(shown):
        code = shown.page.locator(".cell_input").first
        code.hover()
        code.locator("button.copybtn").click()
        shown.page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
        copied = shown.page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == code_cells(nb)[0].source.strip()
