"""The landing page, the search and the glossary, as a reader finds something there."""

import re

import pytest
from lessons import NOTEBOOKS
from playwright.sync_api import expect
from site_pages import SITE, WIDTHS, Shown, pages

FIRST = {
    "softmax": ["softmax", "4.3 From scores to weights"],
    "kv cache": ["KV cache", "10.6 Nothing twice: the KV cache"],
    "exercise 4.1": ["Exercise 4.1 · Scores of one query"],
    "case 6.A": ["Case 6.A · A mask for torch's attention"],
    "stride": ["stride", "2.2 The next window: stride"],
    "tokens": ["token"],
    "why divide by square root": ["5.6 Why divide by √head_dim"],
    "MultiHeadAttention": ["utils.attention.MultiHeadAttention"],
    "lesson 10": ["10. From text to text"],
    "4.3": ["4.3 From scores to weights", "Exercise 4.3 · Weights without a computer"],
    "bpe": ["byte-pair encoding"],
    "top_p": ["top-p", "10.4 Top-k and top-p: the improbable left out"],
    "layernorm": ["layer norm", "9.1 Layer norm"],
    "skip connection": ["residual connection"],
    "layer normalization": ["layer norm"],
    "matrices": ["matrix product"],
    "softmx": ["softmax"],
    "tokenization": ["tokenizer"],
    "what is a token?": ["token", "token ID"],
    "positional encoding": ["3.7 Other ways to encode positions"],
    "register_buffer": ["6.3 The mask in a module"],
}


@pytest.fixture
def open_page(chromium, address):
    contexts = []

    def opened(name, **options):
        contexts.append(chromium.new_context(viewport={"width": WIDTHS[0], "height": 900}, **options))
        return Shown(contexts[-1], address, name)

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def search(chromium, address):
    context = chromium.new_context(viewport={"width": WIDTHS[0], "height": 900})
    yield Shown(context, address, "search.html")
    context.close()


@pytest.mark.parametrize("query", FIRST)
def test_search_finds_while_typing(search, query):
    search.page.locator("#search input").fill("")
    search.page.locator("#search input").press_sequentially(query)
    titles = search.page.locator("#search-results a")
    expect(titles.first).to_have_text(FIRST[query][0])
    assert {*FIRST[query]} <= {*titles.all_inner_texts()[:4]}
    excerpts = " ".join(search.page.locator("#search-results p").all_inner_texts())
    assert not any(furniture in excerpts for furniture in ("Contents", "Skip to", "On this page"))
    page, _, anchor = titles.first.get_attribute("href").partition("#")
    found = (SITE / page).read_text(encoding="utf-8")
    assert not anchor or found.count(f'id="{anchor}"') == 1
    assert search.complaints == []


def test_search_says_how_much_it_finds_and_keeps_its_address(open_page):
    shown = open_page("search.html")
    box, said = shown.page.locator("#search input"), shown.page.get_by_role("status")
    for query, words in {"masked zzlora": "with some of these words", "xyzzy": "0 results", "  ": ""}.items():
        box.fill(query)
        expect(said).to_contain_text(words)
        box.press("Enter")
        assert shown.page.evaluate("new URLSearchParams(location.search).get('q')") == (query.strip() or None)
    box.fill("exercise 4")
    numbers = [title.split()[1] for title in shown.page.locator("#search-results a").all_inner_texts()[:6]]
    assert sorted(numbers) == [f"4.{n}" for n in range(1, 7)]
    assert shown.page.locator("#search-results mark").first.is_visible()
    shown.page.locator("#search-results a").first.click()
    expect(shown.page.get_by_role("heading", name="Exercise 4.1 · ")).to_be_in_viewport()
    shown.page.go_back()
    expect(shown.page.locator("#search-results a").first).to_contain_text("Exercise 4.1")


def test_search_without_scripts_says_so_and_no_page_loads_another_search(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/search.html")
    expect(page.get_by_text("The search needs JavaScript")).to_be_visible()
    expect(page.locator("article input")).to_be_hidden()
    context.close()
    for name in pages():
        scripts = re.findall(r'<script[^>]* src="([^"?]+)', (SITE / name).read_text(encoding="utf-8"))
        mine = [path for path in scripts if "search" in path]
        assert len(mine) == (2 if name == "search.html" else 0), f"{name}: {mine}"


def test_search_of_the_sidebar_leads_there(open_page):
    shown = open_page("search.html?q=stride")
    expect(shown.page.locator("#search-results a").first).to_have_text("stride")
    expect(shown.page.get_by_role("status")).to_contain_text("results")
    assert shown.barriers() == []


def test_glossary_is_compact_and_leads_to_a_term(open_page):
    shown = open_page("docs/glossary.html#token-id")
    terms = shown.page.locator("article dt").count()
    assert terms > 100
    assert shown.page.evaluate("document.documentElement.scrollHeight") < 90 * terms
    term = shown.page.locator("#token-id")
    expect(term).to_be_in_viewport()
    assert term.evaluate("term => getComputedStyle(term).backgroundColor") != "rgba(0, 0, 0, 0)"
    shown.page.locator(".letters").get_by_role("link", name="S", exact=True).click()
    expect(shown.page.locator("#letter-s h2")).to_be_in_viewport()
    assert shown.page.locator("article dd").filter(has=shown.page.locator('a[href*="notebooks/"]')).count() == terms


def test_notation_breaks_no_word_of_its_tables(open_page):
    shown = open_page("docs/notation.html")
    lines = "cell => { const range = document.createRange(); range.selectNodeContents(cell); return new Set("
    lines += "[...range.getClientRects()].map(({ bottom }) => Math.round(bottom / 4))).size }"
    for width in WIDTHS:
        shown.at(width, "light")
        for cell in shown.page.locator("article th p").all():
            assert cell.evaluate(lines) <= len(re.split(r"[ -]", cell.inner_text())), cell.inner_text()
        assert {link.evaluate(lines) for link in shown.page.locator("article td:last-child a").all()} == {1}


def test_landing_page_shows_the_ways_in_and_a_living_route(open_page):
    shown = open_page("docs/index.html")
    ways = shown.page.locator(".ways a")
    assert ways.all_inner_texts() == ["Read", "Run it on your machine", "Teach with it"]
    route = shown.page.locator(".living-route li")
    assert route.count() == 11
    for station in route.all():
        assert station.locator('a[href^="../notebooks/"]').count() == 1
        assert station.locator("div").inner_text().strip() or station.locator(".cells").count()
    running = "li => li.getAnimations().map(animation => animation.playState)"
    page = shown.page.context.new_page()  # in the first one nothing is animated
    page.goto(shown.page.url)
    assert page.locator(".living-route li").first.evaluate(running) == ["running"]
    page.get_by_label("Pause the animation").check()
    assert page.locator(".living-route li").first.evaluate(running) == ["paused"]
    text = shown.page.locator("article").inner_text()
    assert all(read_title in text for read_title in ("hours", "Where to go from here"))
    assert "CI" not in text.split()
    assert shown.page.locator('article a[href*="notebooks/"]').count() >= 11 + len(NOTEBOOKS)


def test_landing_page_does_not_move_where_less_motion_is_asked_for(open_page):
    shown = open_page("docs/index.html", reduced_motion="reduce")
    page = shown.page.context.new_page()
    page.goto(shown.page.url)
    assert page.locator(".living-route li").first.evaluate("li => li.getAnimations().length") == 0
