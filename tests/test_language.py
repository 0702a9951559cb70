"""The course's English, in code: its comments, docstrings and messages use the field's own words."""

import io
import re
import tokenize

import pytest
from lessons import ROOT

# Pattern -> what to write instead. Identifiers, and code in backticks or braces, are not prose.
INSTEAD = {
    r"decimal numbers?|\bdecimals\b": "floating-point numbers",
    r"whole numbers?": "integer",
    r"(?<!square )\broot of\b": "square root",
    r"shortcuts?\b": "residual connection",
    r"\bodds\b": "probabilities",
    r"\bguess(es|ed)?\b": "predict, prediction",
    r"\bjudg(e[ds]?|ing)\b": "evaluate, score",
    r"\balike\b|\blikeness": "similar, similarity, equally, the same",
    r"\bmutual": "symmetric",
    r"\banew\b|\bmend(s|ed|ing)?\b": "again, fix",
    r"\bdata sets?\b": "dataset",
    r"\bstops? with\b": "raises",
    r"behind the end": "past the end",
    r"changed places|turned round|wrong way round": "swapped, reversed",
    r"\bturned\b": "rotated, transposed or reversed",
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
    r"\b(one [\w-]+|windows|tokens|rows?|level|column) an? (token|text|window|batch|step|second|query|key)\b": "per",
    r"\bof \S+ are not right": "is wrong",
    r", for (it|they|we|this|there|its)\b": "because",
    r"\b(is|are) (to be|asked for)\b": "must, should",
    r"\b(is|are) said\b": "is named",
    r"\bno \w+ any ?more\b": "no longer",
    r"\bstands? (at|in|under|there|before|behind|after|beside|below|above)\b": "is, occurs",
    r"\b(draws?|drawn) (a |one |the )?(token|ID|text|sentence|word)s?\b": "sample",
    r"\bmodel (that )?(writes?|can write)\b|\bhow it writes\b": "generate",
    r"\b(function|answer|`\w+`) gives\b": "returns",
    r"\b(token|tokens|query|head|position)s? (may |can |cannot )?looks?\b": "attend to",
    r"without a word": "silently",
}
SOURCES = [
    path
    for folder in ("utils", "tests", "docs", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not {"node_modules", "_build"} & {*path.parts} and path.name != "test_language.py"
]


def prose(path):
    """Yield the line and the text of each comment and string, without code: what is in backticks or braces."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], " ".join(re.sub(r"`[^`\n]*`|\{[^{}]*\}", "…", token.string).split())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_the_fields_own(path):
    found = [
        f"line {line}: “{match[0]}”, better: {instead}"
        for line, text in prose(path)
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]
    assert not found, "\n".join([str(path), *found])
