"""The form of a lesson: its anatomy, its words and links, and how it is stored in git."""

import ast
import re
import statistics
import subprocess
import sys
from itertools import pairwise
from urllib.parse import unquote

import lessons
import nbformat
from course import Lesson, slug
from lessons import (
    FOLD,
    FURTHER,
    NOTEBOOKS,
    ROOT,
    code_cells,
    estimated_minutes,
    headings,
    markdown_cells,
    parts,
    read,
    rule,
    tags,
    tasks,
    texts,
    without_code,
    without_fences,
)

FACTS = ["Minutes", "You need", "After this you can", "Shape in → shape out"]
CORE = 60  # minutes
LAST_SECTIONS = ["Shape ledger", "Broken-code clinic", "Exercises", "What you can do now"]
TAGS = {"nbval-ignore-output", "live-slider", "raises-exception", "slow", "predicted", "figure"}
PREDICT = r"(?<!\*)\*Predict\*(?!\*)"  # the first cell of a lesson may say what it is for
# What would be different on another machine, in another folder or on another day.
UNSTABLE = {
    "a memory address": r"0x[0-9a-fA-F]{8,}",
    "an absolute path": r"(?<![\w.:/])/(home|root|tmp|usr|var|Users)/|\b[A-Z]:\\|" + re.escape(str(ROOT)),
    "a timing": r"\d ?(ms|µs|μs|ns)\b",
    "a date": r"\b20\d\d-\d\d-\d\d\b",
}


def number(path):
    return int(path.name[:2])


def has_tasks(path):
    """Lesson 0 shows the whole route, and asks for nothing."""
    return number(path) > 0


def code_lines(cell):
    return len([line for line in cell.source.splitlines() if line.strip() and not line.startswith("# figure:")])


def defined(source):
    """The names that code defines at its top level."""
    body = ast.parse(source).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    names = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return names | {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def headings_of_file(path):
    text = lessons.without_fences(path.read_text(encoding="utf-8"))
    return [heading.strip() for heading in re.findall(r"^#+ +(.+)$", text, re.MULTILINE)]


def glossary():
    return headings_of_file(ROOT / "docs" / "glossary.md")[1:]


def bold_terms(path):
    """The texts in bold outside code, tables and summaries."""
    text = "\n\n".join(without_code(cell.source) for cell in markdown_cells(read(path)))
    prose = re.sub(r"^ *\|.*$|<summary>.*?</summary>", "", text, flags=re.MULTILINE)
    return [" ".join(term.split()) for term in re.findall(r"\*\*(.+?)\*\*", prose, re.DOTALL)]


def test_lessons_are_numbered_from_0():
    assert NOTEBOOKS, "there is no notebook in notebooks/"
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{i:02d}_" for i in range(len(NOTEBOOKS))]


# Anatomy


@rule
def test_starts_with_title_sentence_and_table(path):
    first = read(path).cells[0]
    title, sentence = [*(" ".join(block.split()) for block in first.source.split("\n\n")), ""][:2]
    if not re.match(rf"# {number(path)}\. \S", title):
        yield first, f"“# {number(path)}. Title” must be the first line of the lesson"
    if not re.fullmatch(r"[^|#<].*[.!?]", sentence) or re.search(r"[.!?] +[A-Z]", sentence):
        yield first, "one sentence must follow the title"
    if (rows := list(Lesson(path).facts)) != FACTS:
        yield first, f"the rows of the table must be {FACTS}, not {rows}"


@rule
def test_headings_are_in_order(path):
    found = headings(read(path))
    for (above, _), (level, text) in pairwise(found):
        if level > above + 1 or level == 1:
            yield f"heading “{text}”", "it skips a level or is a second H1"
    sections = [text for level, text in found if level == 2]
    last = LAST_SECTIONS if has_tasks(path) else LAST_SECTIONS[-1:]
    if sections[-len(last) :] != last:
        yield "headings", f"the last of level 2 must be {last}, not {sections[-len(last) :]}"
    for section, text in enumerate(sections[: -len(last)], 1):
        if not text.startswith(f"{number(path)}.{section} "):
            yield f"heading “{text}”", f"“## {number(path)}.{section} …” is expected here"


@rule
def test_each_heading_begins_a_cell(path):
    """JupyterLab folds what is below a heading only from cell to cell."""
    for cell in markdown_cells(read(path)):
        if found := re.search(r"\n#{1,6} .*", without_fences(cell.source)):
            yield cell, f"“{found[0].strip()}” must begin a cell of its own"


@rule
def test_minutes_are_those_of_its_words_lines_and_tasks(path):
    stated, estimated = Lesson(path).minutes, estimated_minutes(read(path))
    if stated[0] > CORE:
        yield "Minutes", f"the core may take {CORE}, not {stated[0]}"
    for part, minutes, estimate in zip(("core", "rest"), stated, estimated):
        if abs(minutes - estimate) > 3:
            yield "Minutes", f"{minutes} are stated for the {part}; an estimate is {estimate:.0f}"


@rule
def test_what_may_be_left_out_is_marked_in_one_way(path):
    for _, text in headings(read(path)):
        if "further" in text.lower() and not text.endswith(FURTHER):
            yield f"heading “{text}”", f"it must end in “{FURTHER}”"
    core = {heading for further, _, heading in parts(read(path)) if not further}
    kinds = [kind for kind in ("### Case", "### Exercise") if any(text.startswith(kind) for text in core)]
    if has_tasks(path) and len(kinds) < 2:
        yield "headings", "the core needs a case and an exercise"


@rule
def test_outputs_show_more_than_true_and_false(path):
    lines = [line for cell in code_cells(read(path)) for holder, key in texts(cell) for line in holder[key].split("\n")]
    if len(found := [line for line in lines if re.search(r"\b(True|False)\b", line)]) > 2:
        yield "outputs", f"{len(found)} lines of True and False; at most 2 are allowed: {found}"
    for cell in code_cells(read(path))[1:]:  # the first is the set-up
        if not cell.outputs and "live-slider" not in tags(cell) and not defined(cell.source):
            yield cell, "it neither shows nor defines anything: such a proof belongs in the tests"


@rule
def test_set_up_cell_then_route(path):
    set_up, route = code_cells(read(path))[:2]
    if code_lines(set_up) > 8:
        yield set_up, f"the set-up cell has {code_lines(set_up)} lines; at most 8 are allowed"
    if found := re.search(r"\b(sys\.path|pip|warnings)\b", set_up.source):
        yield set_up, f"{found[0]} does not belong in the set-up cell"
    if "plots.plot_route(" not in route.source:
        yield route, "the code cell after the set-up must show plots.plot_route(…)"


@rule
def test_predict_prompts_have_folded_answers(path):
    prompts = [cell for cell in markdown_cells(read(path))[1:] if re.search(PREDICT, cell.source)]
    least = 3 if has_tasks(path) else 2
    if len(prompts) < least:
        yield "*Predict*", f"{len(prompts)} prompts; a lesson needs at least {least}"
    for cell in prompts:
        if "Answer" not in dict(FOLD.findall(cell.source)):
            yield cell, "no <details><summary>Answer</summary> under *Predict*"


@rule
def test_folded_parts_are_well_formed(path):
    marks = ("<details>", "</details>", "<summary>", "</summary>\n\n", FOLD)
    for cell in markdown_cells(read(path)):
        if len({len(re.findall(mark, cell.source)) for mark in marks}) > 1:
            yield cell, "the form must be <details><summary>…</summary>, empty line, text, </details>"


@rule
def test_tasks_are_numbered_in_their_sections(path):
    sections = {"Broken-code clinic": ("Case", "ABCD", 2, []), "Exercises": ("Exercise", "123456789", 4, [])}
    inside = None
    for level, text in headings(read(path)):
        inside = sections.get(text) if level < 3 else inside
        if level == 3 and inside:
            inside[-1].append(text)
        elif re.match("(Case|Exercise) ", text):
            yield f"heading “{text}”", "cases belong in the clinic and exercises in their section, both at level 3"
    for name, (kind, labels, least, found) in sections.items():
        if has_tasks(path) and not least <= len(found) <= len(labels):
            yield name, f"{len(found)} headings of level 3 instead of {least} to {len(labels)}"
        for text, label in zip(found, labels):
            if not text.startswith(f"{kind} {number(path)}.{label} · "):
                yield f"heading “{text}”", f"“### {kind} {number(path)}.{label} · …” is expected here"


@rule
def test_tasks_have_stub_check_hints_and_solution(path):
    for task in tasks(read(path)):
        where = f"{task.kind} {task.number}"
        summaries = [summary for summary, _ in task.folds]
        if [cell.cell_type for cell in task.below] != ["code", "code", "markdown"]:
            yield where, "below its heading there must be a stub, a check and a Markdown cell with folded parts"
        elif not task.name:
            yield where, f'the cell under the stub must be one line: check("{task.number}", name)'
        elif summaries != [*(f"Hint {i}" for i in range(1, max(2, len(summaries)))), "Solution"]:
            yield where, f"its folded parts must be Hint 1, …, Solution, not {summaries}"
        elif len(task.solutions) != 1:
            yield where, f"its solution has {len(task.solutions)} ```python blocks, not 1"
        else:
            for what, source in (("stub", task.below[0].source), ("solution", task.solutions[0])):
                if task.name not in defined(source):
                    yield where, f"its {what} does not define {task.name}"


@rule
def test_cells_are_short(path):
    lengths = [(cell, code_lines(cell)) for cell in code_cells(read(path))]
    median = statistics.median(length for _, length in lengths)
    if median > 5:
        yield "code cells", f"the median length is {median} lines; at most 5 are allowed"
    long = sum(length > 15 for _, length in lengths)
    for cell, length in lengths:
        if length > 40 or (length > 15 and long > len(lengths) / 10):
            yield cell, f"{length} lines: nine cells in ten may have at most 15, all others at most 40"


# Words and links


@rule
def test_terms_in_bold_are_in_the_glossary_and_among_words_learned(path):
    text = "\n\n".join(cell.source for cell in markdown_cells(read(path)))
    links = re.findall(r"\[([^]]+)\]\(\.\./docs/glossary\.md#([^)]+)\)", text.rpartition(f"## {LAST_SECTIONS[-1]}")[2])
    learned = {(words.lower(), target) for words, target in links}
    known = {term.lower() for term in glossary()}
    for term in bold_terms(path):
        if term.lower() not in known:
            yield f"**{term}**", "bold is for defined terms, but docs/glossary.md has no such heading"
        elif (term.lower(), slug(term)) not in learned:
            yield f"**{term}**", f"the words learned lack [{term}](../docs/glossary.md#{slug(term)})"


def test_glossary_terms_are_defined_in_a_lesson():
    terms = {term.lower() for path in NOTEBOOKS for term in bold_terms(path)}
    missing = [term for term in glossary() if term.lower() not in terms]
    assert not missing, f"no lesson has these terms of docs/glossary.md in bold: {missing}"


@rule
def test_links_resolve(path):
    for cell in markdown_cells(read(path)):
        for link in re.findall(r"\]\((?![a-z]+:)([^)\s]+)", without_code(cell.source)):
            name, _, anchor = unquote(link).partition("#")
            target = path.parent / name if name else path
            if not target.exists():
                yield cell, f"{link}: there is no such file"
            elif anchor and target.suffix == ".ipynb":
                if anchor not in [text.replace("`", "").replace(" ", "-") for _, text in headings(read(target))]:
                    yield cell, f"{link}: there is no such heading"
            elif anchor and anchor not in map(slug, headings_of_file(target)):
                yield cell, f"{link}: there is no such heading"


@rule
def test_last_cell_links_the_neighbours(path):
    last, index = read(path).cells[-1], NOTEBOOKS.index(path)
    neighbours = [other.name for other in NOTEBOOKS[max(0, index - 1) : index + 2] if other != path]
    for target in [*neighbours, "../README.md"]:
        if f"]({target})" not in last.source:
            yield last, f"no link to {target} in the last cell"


def test_readme_table_lists_the_lessons():
    rows = lessons.table((ROOT / "README.md").read_text(encoding="utf-8"))
    link = re.compile(r"\[(.+?)\]\((notebooks/.+?)\)")
    listed = [(match[2], match[1], row) for row in rows if (match := link.search("|".join(row)))]
    assert [target for target, _, _ in listed] == [f"notebooks/{path.name}" for path in NOTEBOOKS]
    for lesson, (_, title, row) in zip(map(Lesson, NOTEBOOKS), listed):
        assert title == lesson.title, f"{lesson.path.name} has another title"
        core, further = lesson.minutes
        assert row[-2:] == [str(core), str(further or "–")], f"{lesson.path.name} says {lesson.facts['Minutes']}"
    core, further = (sum(minutes) for minutes in zip(*(Lesson(path).minutes for path in NOTEBOOKS)))
    assert ["", "all", "", str(core), str(further)] in rows, "the sums are the last row"


@rule
def test_markdown_is_plain(path):
    for cell in markdown_cells(read(path)):
        text = without_code(cell.source)
        for html in re.findall(r"</?(?!details>|summary>)[a-zA-Z][\w-]*(?:\s[^<>]*)?/?>|<!--", text):
            yield cell, f"{html}: no HTML except details and summary"
        maths = re.sub(r"\$\$.*?\$\$", "", text.replace(r"\$", ""), flags=re.DOTALL)
        if any(part.count("$") % 2 for part in maths.split("\n\n")):
            yield cell, "a $ without its partner"
        if max(map(len, cell.source.splitlines()), default=0) > 400:
            yield cell, "a line of more than 400 characters"


# In git


@rule
def test_cells_were_run_once_and_in_order_without_a_surprise(path):
    for count, cell in enumerate(code_cells(read(path)), 1):
        counts = {cell.execution_count, *(output.get("execution_count", count) for output in cell.outputs)}
        if counts != {count}:
            yield cell, f"its counts are {counts}, not {count}: run `make notebooks`"
        if any(output.output_type == "error" for output in cell.outputs) != ("raises-exception" in tags(cell)):
            yield cell, "an error that is not tagged raises-exception, or the tag without an error"
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield cell, "output on stderr"
        if re.search(r";[ \t]*$", cell.source, re.MULTILINE):
            yield cell, "a line ends with “;”, which does not hide output from nbval"


@rule
def test_tags_are_known_and_few_outputs_escape_comparison(path):
    others = [cell for cell in code_cells(read(path)) if {"nbval-ignore-output", "live-slider"} & {*tags(cell)}]
    sliders = [cell for cell in others if "live-slider" in tags(cell)]
    for cell in read(path).cells:
        if unknown := {*tags(cell)} - TAGS:
            yield cell, f"unknown tags {unknown}"
        if cell.cell_type == "code" and "NBVAL_" in cell.source:
            yield cell, "a comment that steers nbval: use a tag"
    for cell in sliders:
        others.remove(cell)
        if "nbval-ignore-output" not in tags(cell) or cell.outputs:
            yield cell, "a live slider must also be tagged nbval-ignore-output, and store no output"
    for cell in others[1:] + sliders[2:]:
        yield cell, "only 1 cell besides at most 2 live sliders may escape comparison"


@rule
def test_stored_form(path):
    nb, content = read(path), path.read_text(encoding="utf-8")
    ids = [cell.get("id") for cell in nb.cells]
    kept = {
        "it has 1 MB or more": path.stat().st_size < 1_000_000,
        "its kernel is not named python3": nb.metadata.kernelspec.name == "python3",
        "it holds widget state": "application/vnd.jupyter.widget" not in content and "widgets" not in nb.metadata,
        "cell ids are missing or used twice": None not in ids and len(set(ids)) == len(ids),
        "it holds timings": not any("execution" in cell.metadata for cell in nb.cells),
        "it is not written as nbformat writes it": content == nbformat.writes(nb, nbformat.NO_CONVERT) + "\n",
    }
    yield from (("the file", f"{problem}: run `make notebooks`") for problem in kept if not kept[problem])


def test_notebooks_are_stripped_as_the_makefile_does():
    flags = re.search(r"nbstripout (.+) \$\(NOTEBOOKS\)", (ROOT / "Makefile").read_text(encoding="utf-8"))[1]
    command = [sys.executable, "-m", "nbstripout", "--verify", *flags.split(), *map(str, NOTEBOOKS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"run `make notebooks`: {done.stdout}{done.stderr}"


@rule
def test_pictures_have_words_and_outputs_are_the_same_everywhere(path):
    for cell in code_cells(read(path)):
        if found := re.search(r"pyplot|\bplt\b|%matplotlib|(?<!\bplots)\.show\(", cell.source):
            yield cell, f"{found[0]}: figures are shown through plots.show"
        for output in cell.outputs:
            data = output.get("data", {})
            pictures, words = [kind for kind in data if kind.startswith("image/")], data.get("text/plain", "")
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if pictures and (pictures != ["image/png"] or not words.strip() or "Figure size" in words or words != alt):
                yield cell, "a picture must be image/png with an alt text that is also its text/plain"
            texts = [text for kind, text in data.items() if kind not in pictures]
            texts += [output.get("text"), output.get("evalue"), *output.get("traceback", [])]
            for name, pattern in UNSTABLE.items():
                if found := re.search(pattern, "\n".join(map(str, texts))):
                    yield cell, f"{name} in its output: {found[0]}"


# What is folded: outputs to be predicted, code that only draws


@rule
def test_the_output_that_a_question_asks_about_can_be_hidden(path):
    asked, hidden = None, False  # the question since the last heading of level 2, and whether its output is tagged
    for cell in [*read(path).cells[1:], None]:
        if cell and cell.cell_type == "code":
            if "predicted" in tags(cell):
                hidden = True
                if not asked or not cell.outputs:
                    yield cell, "no question in this section comes before it, or there is no output to predict"
            continue
        for mark in re.findall(rf"^## |{PREDICT}", cell.source if cell else "## ", re.MULTILINE):
            if asked and not hidden:
                yield asked, "no cell after this question is tagged `predicted`"
            asked, hidden = (None if mark == "## " else cell), False


@rule
def test_code_that_only_draws_is_folded_to_what_it_draws(path):
    titles = []
    for cell in code_cells(read(path)):
        drawn = [ast.unparse(statement).startswith("plots.show(") for statement in ast.parse(cell.source).body]
        if drawn == [True] and "figure" not in tags(cell):
            yield cell, "it only draws: tag it `figure`"
        if "figure" in tags(cell):
            titles.append(cell.source.splitlines()[0])
            if not re.fullmatch(r"# figure: .{5,60}", titles[-1]) or titles[-1] in titles[:-1]:
                yield cell, "a figure's first line says what it shows, as `# figure: …`, each in other words"
            if cell.metadata.get("jupyter") != {"source_hidden": True}:
                yield cell, "JupyterLab folds the code of a figure if its metadata says so"
