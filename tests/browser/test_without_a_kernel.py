"""What a reader of the site can do without JupyterLab: move the sliders, and answer exercises."""

import itertools
import random

import pytest
import questions
from lessons import NOTEBOOKS, code_cells, read, tags, tasks
from playwright.sync_api import expect
from site_pages import WIDTHS, Shown

from utils.exercises import check, find_exercise

WITH_SLIDER = [path.stem for path in NOTEBOOKS if any("live-slider" in tags(cell) for cell in code_cells(read(path)))]
CHOICES = {
    task.number: (path.stem, choices)
    for path in NOTEBOOKS
    for task in tasks(read(path))
    if (choices := questions.choices_of(find_exercise(task.number)))
}


@pytest.fixture(params=WITH_SLIDER)
def slider(chromium, address, request):
    context = chromium.new_context(viewport={"width": WIDTHS[0], "height": 900}, has_touch=True)
    shown = Shown(context, address, f"notebooks/{request.param}.html")
    yield shown, shown.page.locator("figure.slider")
    context.close()


def test_each_slider_moves_and_needs_no_network_once_it_is_near(slider):
    shown, figure = slider
    figure.scroll_into_view_if_needed()
    shown.page.wait_for_function(
        """frames => performance.getEntriesByType("resource")
            .filter(({name}) => name.includes("/frames/")).length >= frames""",
        arg=figure.locator("script").evaluate("script => JSON.parse(script.textContent).alts.length"),
    )
    shown.page.context.set_offline(True)
    picture, seen = figure.locator("img"), set()
    for control in figure.locator("input").all():
        keys = ["Space", "Space"] if control.get_attribute("type") == "checkbox" else ["Home", "ArrowRight", "End"]
        for key in keys:
            control.press(key)
            assert picture.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0
            expect(figure.locator(".said")).to_have_text(picture.get_attribute("alt"))
            seen.add((picture.get_attribute("src"), picture.get_attribute("alt")))
    moved = [control.get_attribute("type") for control in figure.locator("input").all()]
    assert len({source for source, _ in seen}) >= 3 * moved.count("range") - (len(moved) - 1)
    assert len({words for _, words in seen}) >= 2
    assert shown.complaints == []


def test_a_slider_follows_the_finger(slider):
    shown, figure = slider
    control, picture = figure.locator("input[type=range]").first, figure.locator("img")
    before = picture.get_attribute("alt")
    control.scroll_into_view_if_needed()
    box = control.bounding_box()
    assert box["height"] >= 44
    shown.page.touchscreen.tap(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    expect(picture).not_to_have_attribute("alt", before)


def test_a_slider_has_its_first_picture_without_scripts(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in WITH_SLIDER:
        page.goto(f"{address}/notebooks/{name}.html")
        assert page.locator("figure.slider img").get_attribute("alt").strip()
        expect(page.locator("figure.slider .controls")).to_be_hidden()
    for name in {name for name, _ in CHOICES.values()}:
        page.goto(f"{address}/notebooks/{name}.html")
        expect(page.locator(".question-form").first).to_be_hidden()
    context.close()


@pytest.fixture(params=CHOICES)
def asked(chromium, address, request):
    name, choices = CHOICES[request.param]
    context = chromium.new_context(viewport={"width": WIDTHS[0], "height": 900})
    shown = Shown(context, address, f"notebooks/{name}.html")
    yield shown, request.param, choices, shown.page.locator(f'form[aria-label="Exercise {request.param}"]')
    context.close()


def choose(form, choices, answer):
    for item, options, value in zip(form.locator("fieldset").all(), choices, answer, strict=True):
        index = next(index for index, option in enumerate(options) if option == value and type(option) is type(value))
        if item.locator("select").count():
            item.locator("select").select_option(str(index))
        else:
            item.locator("input").nth(index).check()


def test_an_exercise_is_answered_with_the_verdicts_of_its_check(asked):
    shown, number, choices, form = asked
    button, verdict = form.get_by_role("button"), form.get_by_role("status")
    button.click()
    expect(verdict).to_contain_text(f"{number}: {len(choices)} of {len(choices)} are still open")
    right = [round(item, 2) if isinstance(item, float) else item for item in find_exercise(number).right()]
    others = random.Random(0).sample([*itertools.islice(itertools.product(*choices), 1000)], 4)
    for answer in [right, *map(list, others)]:
        choose(form, choices, answer)
        button.press("Enter")
        said = check(number, answer).message.partition(" · ")[0].replace("`", "")
        expect(verdict).to_have_text(said.replace(" ", "", 1))
        assert verdict.evaluate("box => box.scrollWidth <= box.clientWidth")
    choose(form, choices, right)
    button.click()
    expect(verdict).to_contain_text(f"{number}: right")
    assert shown.complaints == []
    if number in ("4.5", "10.3"):  # buttons, and lists that open
        for scheme in ("light", "dark"):
            shown.at(WIDTHS[0], scheme)
            assert shown.barriers() == []
