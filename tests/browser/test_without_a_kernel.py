"""What a reader of the site can do without JupyterLab: move the sliders, and answer exercises."""

import itertools
import random
import re

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

# The frames that the page names and cannot show.
BROKEN = """async figure => {
    const { folder, alts } = JSON.parse(figure.querySelector("script").textContent);
    const frames = alts.map((_, index) => Object.assign(new Image(), { src: `${folder}${index}.png` }));
    const tried = await Promise.allSettled(frames.map(frame => frame.decode()));
    return frames.filter((_, index) => tried[index].status === "rejected").map(({ src }) => src);
}"""


@pytest.fixture(scope="module", params=WITH_SLIDER)
def slider(chromium, address, request):
    context = chromium.new_context(viewport={"width": WIDTHS[0], "height": 900}, has_touch=True)
    shown = Shown(context, address, f"notebooks/{request.param}.html")
    yield shown, shown.page.locator("figure.slider")
    context.close()


def test_a_slider_follows_the_finger(slider):
    shown, figure = slider
    control, picture = figure.locator("input[type=range]").first, figure.locator("img")
    before = picture.get_attribute("alt")
    control.scroll_into_view_if_needed()
    box = control.bounding_box()
    assert box["height"] >= 44
    shown.page.touchscreen.tap(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    expect(picture).not_to_have_attribute("alt", before)


def test_a_slider_keeps_its_picture_if_another_cannot_be_loaded(chromium, address):
    page = chromium.new_page()
    page.route("**/frames/**", lambda route: route.abort())
    page.goto(f"{address}/notebooks/{WITH_SLIDER[0]}.html")
    picture = page.locator("figure.slider img")
    before = picture.get_attribute("src"), picture.get_attribute("alt")
    page.locator("figure.slider input").first.press("End")
    expect(page.locator("figure.slider .said")).to_contain_text("cannot be loaded")
    assert (picture.get_attribute("src"), picture.get_attribute("alt")) == before
    page.close()


def test_each_slider_moves_and_needs_no_network_once_its_page_is_loaded(slider):
    shown, figure = slider
    shown.page.context.set_offline(True)
    assert figure.evaluate(BROKEN) == []
    picture, seen, height = figure.locator("img"), set(), figure.bounding_box()["height"]
    for control in figure.locator("input").all():
        keys = ["Space", "Space"] if control.get_attribute("type") == "checkbox" else ["Home", "ArrowRight", "End"]
        for key in keys:
            control.press(key)
            assert picture.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0
            expect(figure.locator(".said")).to_have_text(picture.get_attribute("alt"))
            assert figure.bounding_box()["height"] == pytest.approx(height, abs=1), "what is below it must not move"
            seen.add((picture.get_attribute("src"), picture.get_attribute("alt")))
    moved = [control.get_attribute("type") for control in figure.locator("input").all()]
    assert len({source for source, _ in seen}) >= 3 * moved.count("range") - (len(moved) - 1)
    assert len({words for _, words in seen}) >= 2
    assert shown.complaints == []


def test_the_picture_is_where_the_controls_are_after_a_way_back(chromium, address):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{address}/notebooks/{WITH_SLIDER[0]}.html")
    control, picture = page.locator("figure.slider input").first, page.locator("figure.slider img")
    control.press("End")
    moved = control.input_value(), picture.get_attribute("alt")
    page.goto(f"{address}/notebooks/{WITH_SLIDER[1]}.html")
    page.go_back()
    assert control.input_value() == moved[0], "the browser restores controls"
    expect(picture).to_have_attribute("alt", moved[1])
    context.close()


def test_a_slider_has_its_first_picture_without_scripts(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in WITH_SLIDER:
        page.goto(f"{address}/notebooks/{name}.html")
        assert page.locator("figure.slider img").get_attribute("alt").strip()
        expect(page.locator("figure.slider .controls")).to_be_hidden()
        expect(page.locator("figure.slider noscript p")).to_contain_text("need JavaScript")
    for name, choices in {name: choices for name, choices in CHOICES.values()}.items():
        page.goto(f"{address}/notebooks/{name}.html")
        form = page.locator(".question-form").last
        expect(form).to_be_hidden()
        expect(form.locator("fieldset")).to_have_count(len(choices))
        solution = form.locator("xpath=following-sibling::details[contains(@class, 'solution')][1]")
        solution.locator("summary").click()
        expect(solution.locator("pre")).to_be_visible()
    context.close()


def mistakes_of(number):
    """Return an answer for each mistake, the first of its spellings."""
    answers = [next(iter(questions.spellings(mistake.answer))) for mistake in find_exercise(number).mistakes]
    return [answer for answer in answers if isinstance(answer, (list, tuple))]


@pytest.fixture(scope="module", params=CHOICES)
def asked(chromium, address, request):
    name, choices = CHOICES[request.param]
    context = chromium.new_context(viewport={"width": WIDTHS[0], "height": 900})
    shown = Shown(context, address, f"notebooks/{name}.html")
    yield shown, request.param, choices, shown.page.locator(f'form[aria-label="Exercise {request.param}"]')
    context.close()


def option_of(options, value):
    """Return which of an item's choices a value is, or None."""
    equal = (index for index, option in enumerate(options) if option == value and type(option) is type(value))
    return next(equal, None)


def can_choose(choices, answer):
    return len(answer) == len(choices) and None not in map(option_of, choices, answer)


def choose(form, choices, answer):
    for item, options, value in zip(form.locator("fieldset").all(), choices, answer, strict=True):
        index = option_of(options, value)
        if item.locator("select").count():
            item.locator("select").select_option(str(index))
        else:
            item.locator("input").nth(index).check()


def test_an_exercise_is_answered_with_the_verdicts_of_its_check(asked):
    shown, number, choices, form = asked
    button, verdict = form.get_by_role("button"), form.get_by_role("status")
    button.click()
    expect(verdict).to_contain_text(f"{number}: {len(choices)} of {len(choices)} are not answered yet")
    right, *known = [
        [float(f"{item:.3g}") if isinstance(item, float) else item for item in answer]
        for answer in (find_exercise(number).right(), *mistakes_of(number))
    ]
    others = random.Random(0).sample([*itertools.islice(itertools.product(*choices), 1000)], 4)
    for answer in [right, *(answer for answer in known if can_choose(choices, answer)), *map(list, others)]:
        choose(form, choices, answer)
        button.press("Enter")
        said = check(number, answer).message.partition(" · ")[0].replace("`", "")
        expect(verdict).to_have_text(said.replace(" ", "", 1))
        assert verdict.evaluate("box => box.scrollWidth <= box.clientWidth")
    choose(form, choices, right)
    button.click()
    expect(verdict).to_contain_text(f"{number}: right")
    assert shown.complaints == []
    if number in ("4.5", "7.5"):  # buttons, and a list that opens
        for scheme in ("light", "dark"):
            shown.at(WIDTHS[0], scheme)
            assert shown.barriers() == []


def test_an_exercise_is_answered_with_keys_and_its_verdict_leads_to_the_section(asked):
    shown, number, choices, form = asked
    exercise = find_exercise(number)
    right = [float(f"{item:.3g}") if isinstance(item, float) else item for item in exercise.right()]
    first = option_of(choices[0], right[0])
    wrong = next(value for index, value in enumerate(choices[0]) if index != first)
    answer = [wrong, *right[1:]]
    keys = shown.page.keyboard
    form.evaluate("form => form.reset()")
    form.locator("input, select").first.focus()
    for options, value in zip(choices, answer, strict=True):
        downs = option_of(options, value)
        if len(options) == 2:  # the arrow keys choose among radio buttons
            keys.press("Space")
        else:  # the first option of a list says only "choose"
            downs += 1
        for _ in range(downs):
            keys.press("ArrowDown")
        keys.press("Tab")
    expect(form.get_by_role("button")).to_be_focused()
    keys.press("Enter")
    verdict = form.get_by_role("status")
    expect(verdict).to_have_text(check(number, answer).message.replace("`", "").replace(" ", "", 1))
    links = verdict.get_by_role("link").all()
    assert [link.text_content() for link in links] == re.findall(r"\d+\.\d+", exercise.where)
    for link in links:
        title = shown.page.locator(link.get_attribute("href")).locator("h2, h3").first
        expect(title).to_contain_text(re.compile(rf"^{re.escape(link.text_content())} "))
