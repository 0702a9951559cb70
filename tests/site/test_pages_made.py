"""The site: what it reads from the lessons, and the check of its links. `make docs` proves that it builds."""

import importlib
import re
from html import unescape
from pathlib import Path

import api
import check_links
import code_lines
import content
import course
import glossary
import lessons
import maths
import pytest
from lessons import ROOT
from pygments import highlight
from pygments.lexers import PythonLexer

from utils.plots import ROUTE

LESSONS = course.read_lessons()
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.path.stem)


def page(name):
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def sections(text):
    """Title and text of each section of level 2."""
    return dict(part.split("\n", 1) for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])


@each_lesson
def test_a_lesson_is_read(lesson):
    assert 3 <= len(lesson.abilities) <= 4
    assert bool(lesson.words) == bool(lesson.number), "lesson 0 teaches no words, only meets them"


def test_table_of_lessons_adds_the_minutes_up():
    table = lessons.table(course.lesson_table(LESSONS))
    assert [row[0] for row in table[1:-1]] == [course.link(lesson) for lesson in LESSONS]
    for column in (1, 2):
        assert int(table[-1][column]) == sum(int(row[column].replace("–", "0")) for row in table[1:-1])
    assert "](0" not in course.lesson_table(LESSONS), "links are seen from docs/"


def test_minutes_of_the_cores_are_added_up():
    core = int(lessons.table(course.lesson_table(LESSONS))[-1][1])
    assert course.minutes(LESSONS).startswith(f"The cores of all {len(LESSONS)} lessons take {core:,} minutes, ")


def test_facts_of_a_lesson():
    facts = course.lesson_facts(LESSONS[4])
    assert facts.startswith("[4. Simple attention](../notebooks/04_simple_attention.ipynb), ")
    assert facts.count("\n- ") == len(LESSONS[4].abilities)


def test_the_stations_of_the_route_are_the_lessons():
    assert tuple(lesson.station for lesson in LESSONS[: len(ROUTE)]) == ROUTE, "later ones highlight several again"
    assert {station for lesson in LESSONS for station in lesson.highlighted} <= {*ROUTE}


@each_lesson
def test_each_word_learned_links_back(lesson):
    terms = sections(glossary.with_all_lessons(page("glossary"), LESSONS))
    for term, text in terms.items():
        linked = f"](../notebooks/{lesson.path.name})" in text
        assert linked == (course.slug(term) in lesson.words), f"{term}, lesson {lesson.number}"


FIRST, SECOND = (f"([Lesson {n}](../notebooks/{LESSONS[n].path.name}))" for n in (1, 2))
WRONG_TERMS = [f"## token\n\nA piece. {SECOND}\n", "## token\n\nA piece.\n", f"## nonsense\n\nNo lesson. {FIRST}\n"]


@pytest.mark.parametrize("text", WRONG_TERMS)
def test_a_term_whose_lesson_is_wrong_is_named(text):
    with pytest.raises(ValueError, match=r"^glossary: '(token|nonsense)' must end with a link to \(Lesson n\)"):
        glossary.with_all_lessons(f"# Glossary\n\n{text}", LESSONS)


def test_anchors_are_those_of_code_hosts():
    anchors = {"UTF-8": "utf-8", "token ID": "token-id", "head_dim": "head_dim", "4.5 All at once": "45-all-at-once"}
    assert {heading: course.slug(heading) for heading in anchors} == anchors


def test_parts_go_under_their_headings():
    text = "# A\n\n## B\n\nc\n\n## D\n\ne\n"
    assert content.after(text, "B", lambda: "made") == "# A\n\n## B\n\nmade\n\nc\n\n## D\n\ne\n"
    assert content.at_end(text, "B", lambda: "made").index("made") > text.index("c")
    with pytest.raises(ValueError, match="there are 0 headings 'X', not one"):
        content.after(text, "X", lambda: "made")


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_a_page_reads_well_where_it_is_opened_raw(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert not re.search(r"^(```|~~~|:::)\{|<!--|^\[.*\]: #|\{[a-z]+\}`", text, re.MULTILINE), "a directive"
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (path.parent / target).exists(), target


def test_the_list_of_modules_is_theirs():
    listed = dict(re.findall(r"^- \[(utils\.\w+)\]\(.+?\): (.+)$", page("api"), re.MULTILINE))
    first_lines = {name: importlib.import_module(name).__doc__.strip().splitlines()[0] for name in api.modules()}
    assert listed == first_lines


def test_links_of_a_notebook_fit_the_site():
    text = "[all](../README.md) [here](04_simple_attention.ipynb#4.5-All-tokens-at-once) [x](../docs/glossary.md#utf-8)"
    assert content.for_site(text) == (
        "[all](../docs/index.md) [here](04_simple_attention.ipynb#45-all-tokens-at-once) [x](../docs/glossary.md#utf-8)"
    )


def test_modules_are_those_that_lessons_import_from():
    used = {name for lesson in LESSONS for name in re.findall(r"^from (utils\.\w+) import", lesson.text, re.MULTILINE)}
    assert used
    assert used <= {*api.modules()}
    sections = api.sections(LESSONS)
    assert all(f".. automodule:: {name}\n" in sections for name in api.modules())


@pytest.mark.parametrize("lesson", LESSONS[1:], ids=lambda lesson: lesson.path.stem)
def test_teachers_are_told_what_learners_stumble_over(lesson):
    section = sections(page("for_teachers"))[f"Lesson {lesson.number}"]
    assert len(re.findall(r"^- \*", section, re.MULTILINE)) >= 3
    assert re.search(r"\]\(https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+\)", section)


def test_names_of_the_notation_are_in_the_lesson_that_is_said_to_have_them_first():
    rows = [row for row in lessons.table(page("notation")) if row[-1].startswith("[Lesson ")]
    assert len(rows) >= 15
    for name, *_, first in rows:
        number = int(re.match(r"\[Lesson (\d+)", first)[1])
        assert re.search(rf"\b{name.strip('`')}\b", LESSONS[number].text), f"{name} is not in lesson {number}"


@pytest.mark.parametrize(("formula", "problem"), [(r"\foo x", r"\\foo is not known"), (r"\frac{1", "no partner")])
def test_a_formula_that_cannot_be_read_is_named(formula, problem):
    assert "<mfrac>" in maths.mathml(r"\frac{1}{2}", display=True)
    with pytest.raises(ValueError, match=problem):
        maths.mathml(formula, display=False)


GOOD = {
    "index.html": '<link href="a.css" rel="stylesheet"><img src="p.png" srcset="p.png 2x">'
    '<a href="sub/b.html#here">b</a><a href="https://example.org">out</a>'
    '<a href="#top">up</a><img src="data:image/png;base64,AA==">',
    "sub/b.html": '<p id="here"><a href="../index.html">a</a><a href="?q=1">again</a></p>',
    "a.css": "@font-face {src: url('f%20f.woff2')} i {background: url(data:image/svg+xml,x)}",
    "p.png": "",
    "f f.woff2": "",
    "_static/part.html": '<a href="{{ target }}">a part of a template</a>',
}


def site(folder: Path, **changed: str) -> list[str]:
    for name, text in (GOOD | changed).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return [*check_links.problems(folder.resolve())]


def test_a_good_site_has_no_problem_and_an_empty_one_has(tmp_path):
    assert [*check_links.problems(tmp_path)] == [f"{tmp_path}: there is no page"]
    assert site(tmp_path) == []


FILE, ANCHOR, HOST = "there is no such file", "there is no such anchor on the page", "it is loaded from another host"
ANCHORED = '<p id="here">'


@pytest.mark.parametrize(
    ("name", "text", "link", "problem"),
    [
        ("sub/b.html", ANCHORED + '<a href="c.html">', "c.html", FILE),
        ("sub/b.html", ANCHORED + '<img src="q.png">', "q.png", FILE),
        ("sub/b.html", ANCHORED + '<meta http-equiv="refresh" content="0; url=c.html">', "c.html", FILE),
        ("a.css", "i {background: url(q.png)}", "q.png", FILE),
        ("a.css", "@import 'q.css';", "q.css", FILE),
        ("a.css", "i {background: url(//x.org/q.png)}", "//x.org/q.png", HOST),
        ("sub/b.html", ANCHORED + '<script src="https://x.org/a.js">', "https://x.org/a.js", HOST),
        ("sub/b.html", ANCHORED + '<link rel="preconnect" href="https://x.org">', "https://x.org", HOST),
        ("sub/b.html", ANCHORED + '<p style="background: url(https://x.org/a)">', "https://x.org/a", HOST),
    ],
)
def test_what_is_broken_is_named(tmp_path, name, text, link, problem):
    assert site(tmp_path, **{name: text}) == [f"{name}: {link}: {problem}"]


def test_a_missing_anchor_is_named_where_it_is_linked(tmp_path):
    assert site(tmp_path, **{"sub/b.html": "<p>"}) == [f"index.html: sub/b.html#here: {ANCHOR}"]


def test_a_line_of_code_knows_its_indentation_and_keeps_its_text():
    code = "def f(x):\n    return [\n\n        x < 1\n    ]\n"
    html = highlight(code, PythonLexer(), code_lines.HangingLines())
    assert unescape(re.sub(r"<.*?>", "", html)).strip() == code.strip()
    assert re.findall(r'"code-line"(?: style="--indent: (\d)ch")?', html) == ["", "4", "", "8", "4"]
