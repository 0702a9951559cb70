"""The course's English, in lessons, documents and code: it uses the field's own words."""

import io
import re
import tokenize

import pytest
from lessons import ROOT, read, without_code

# Pattern -> what to write instead. Identifiers, and code in backticks or braces, are not prose.
INSTEAD = {
    r"decimal numbers?|\bdecimals\b": "floating-point numbers",
    r"whole numbers?": "integer",
    r"(?<!square )\broot of\b": "square root",
    r"shortcuts?\b": "residual connection",
    r"\bodds\b": "probabilities",
    r"\bguess(es|ed|ing)?\b": "predict, prediction",
    r"\bjudg(e[ds]?|ing)\b": "evaluate, score",
    r"\balike\b|\blikeness|\b(that|have) like \w+s\b": "similar, similarity, equally, the same",
    r"\bmutual": "symmetric",
    r"\banew\b|\bmend(s|ed|ing)?\b": "again, fix",
    r"\bdata sets?\b": "dataset",
    r"\bstops? with\b": "raises",
    r"behind the (end|last)": "past the end",
    r"changed places|turned round|wrong way round": "swapped, reversed",
    r"\bturned\b|\b(after|notice) the turn\b": "rotated, transposed or reversed",
    r"\bturn(s|ing)? (a|the|each|every|all)\b(?!.* into\b).*\b(vectors?|space|matrix)\b": "rotate, transpose",
    r"places after the point": "decimal places",
    r"\b(no|some|every)body\b|\blest\b": "no one; no token; so that … not",
    r"\bso many\b": "that many",
    r"\bblanks?\b(?! line)": "space, whitespace",
    r"typewriter quotes": "straight quotes",
    r"\b(bends?|bent)\b": "activation function, non-linear",
    r"\b(the|a|its|of) shares? (of|that)\b": "fraction, proportion",
    r"(?<!\bin )(?<!in-)(?<!decimal )(?<!\btake )(?<!\btakes )\bplaces?\b": "position of a token, index of a list",
    r"(?<!there )\b(is|are) no (?!longer|more|less|fewer|larger|smaller)": "is not a",
    r"\bnone either\b": "nor",
    r"\b(how many|which) [\w-]+ has (the|an?|your|our|it)\b": "how many … does … have",
    r"\basked (is|are)\b": "the exercise asks for",
    r"\b(one [\w-]+|\w+ number|windows|tokens|lines|words|rows?|level|column|integer|label) an? "
    r"(token|text|window|batch|step|second|query|key|word|character|position|sentence|minute|lesson)\b": "per",
    r"\bof \S+ are not right": "is wrong",
    r", for (it|they|we|this|there|its)\b": "because",
    r"\b(is|are) (to be|asked for)\b": "must, should",
    r"\b(is|are) said\b": "is named",
    r"\bno \w+ any ?more\b": "no longer",
    r"\b(stand|stands|standing)\b(?! (out|for|by)\b)|\bstood\b": "is, occurs",
    r"\b(draws?|drawn) (a |one |the )?(token|ID|text|sentence|word)s?\b(?! as )": "sample",
    r"\bmodel (that )?(writes?|can write)\b|\bhow it writes\b": "generate",
    r"\b(function|answer|`\w+`) gives\b": "returns",
    r"\b(token|tokens|query|head|position)s? (may |can |cannot )?looks?\b": "attend to",
    r"without a word": "silently",
    r"\b(punctuation|such|other|of|these|the last) signs?\b(?! of)|typewriter": "punctuation marks, symbols; ASCII",
    r"\b(into|want|the|as|are|makes?|their|these) shares\b|^shares\b|\bshares (that|of)\b": "weights, fractions",
    r"\bby chance\b": "at random",
    r"\blook(s|ed|ing)? at (each other|tokens?\b|the (future|past)|every|those)": "attend to",
    r"\b(lie|lies|lying) to each other": "are, relative to each other",
    r"\b(takes?|taking|took) (a|one|the) heads? away\b|\bheads? (is|are) taken away\b": "ablate",
    r";[^.;!?&|]*;[^.;!?&|]*;": "two or three sentences",
}
FOUND = """
32-bit decimals · the root of it · a shortcut · the odds · like things have like numbers · two data sets
behind the last token · turn the whole space by 40 degrees · to everybody · a share of it · at the same place
are no integers · is none either · which shape has the batch · asked is the sum · one row a token
one whole number a token · 3 of 4 are not right · it fails, for it is full
is to be shifted · both are said · no twins any more · the pair stands once · draws a token · a model that writes
the function gives 1 · the token may look · by chance · other signs · takes a head away · a; b; c; d
"""
TRUE = """
square root of it · whether they share a table · done in place · three decimal places · are no longer than it
turn all IDs into vectors · they take turns · a token for each text · it stands out · what x stands for
the figure is drawn · signs of life · one at a time · a | b; c | d; e | f; g
"""
# From Python 3.12 on, an f-string comes in parts.
STRINGS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
WRITTEN = (".py", ".md", ".ipynb")
SOURCES = [
    path
    for folder in ("utils", "tests", "docs", "benchmarks", "notebooks", ".")
    for path in sorted((ROOT / folder).glob("*" if folder == "." else "**/*"))
    if path.suffix in WRITTEN
    and not {"_build", "_extra", ".ipynb_checkpoints"} & {*path.parts}
    and path.name != "test_language.py"
]


def of_code(code):
    """Yield the line and the text of each comment and string of Python code."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in STRINGS:
            yield token.start[0], token.string


def of_markdown(text):
    """Yield the line and the text of each paragraph outside code blocks."""
    for match in re.finditer(r"(?:^.+\n?)+", without_code(re.sub(r"\$[^$]*\$|\]\([^)]*\)", "…", text)), re.MULTILINE):
        yield 1 + text[: match.start()].count("\n"), match[0]


def prose(path):
    """Yield where and what is said in a file, without code: what is in backticks or braces."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        found = of_code(text)
    elif path.suffix == ".md":
        found = of_markdown(text)
    else:
        found = (
            (f"cell {cell.id}, {line}", words)
            for cell in read(path).cells
            for line, words in (of_code if cell.cell_type == "code" else of_markdown)(cell.source)
        )
    for where, words in found:
        yield where, " ".join(re.sub(r"`[^`\n]*`|\{[^{}]*\}", "…", words).split())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_the_fields_own(path):
    found = [
        f"line {line}: “{match[0]}”, better: {instead}"
        for line, text in prose(path)
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]
    assert not found, "\n".join([str(path), *found])


@pytest.mark.parametrize(("phrases", "wrong"), [(FOUND, True), (TRUE, False)], ids=["found", "true"])
def test_patterns_find_what_they_are_for_and_nothing_else(phrases, wrong):
    for phrase in re.split(r" · |\n", phrases.strip()):
        found = [pattern for pattern in INSTEAD if re.search(pattern, phrase, re.IGNORECASE)]
        assert bool(found) is wrong, f"{phrase}: {found}"
