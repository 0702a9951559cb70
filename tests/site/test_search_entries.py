"""What the search knows of a page: its own text, without what surrounds it or what is folded until one has tried."""

import pytest
import site_search
from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes

WORDS = nodes.paragraph("", "Words learned: loss.")
ANSWER = [nodes.raw("", '<details class="answer"><summary>Answer</summary>'), nodes.paragraph("", "It is 7.")]
FOLD = [*ANSWER, nodes.raw("", "</details>")]
OUTPUT = nodes.container("", nodes.paragraph("", "tensor(1)"), classes=["cell_output"])
CODE = nodes.container("", nodes.literal_block("", "seen = torch.triu(ones)"), classes=["cell_input"])


def section(anchor, title, *children, **attributes):
    return nodes.section("", nodes.title("", *title), *children, ids=[anchor], **attributes)


def found(docname, *children):
    doctree = new_document("page")
    doctree += section("page", [nodes.Text("4. Attention")], *children)
    return {one["title"]: one for one in site_search.entries(docname, doctree)}


def test_an_entry_has_the_text_of_its_own_section_alone():
    badge = nodes.inline("", "Going further", classes=["further"])
    inner = section("inner", [nodes.Text("Inner "), badge], nodes.paragraph("", "below"))
    bold = nodes.paragraph("", "", nodes.Text("A "), nodes.strong("", "Mask"), nodes.Text(", then."))
    outer = section(
        "outer", [nodes.Text("4.1 Outer")], bold, CODE, OUTPUT, *FOLD, nodes.paragraph("", "x"), WORDS, inner
    )
    entries = found("notebooks/04_simple_attention", outer)
    assert [*entries] == ["4. Attention", "4.1 Outer", "Inner"]
    assert entries["4.1 Outer"]["text"] == "A Mask, then. x"
    assert entries["4.1 Outer"]["names"] == ["mask"], "where a term is in bold, it is explained"
    assert entries["4.1 Outer"]["code"] == "ones seen torch triu"
    assert entries["Inner"]["further"]
    assert entries["Inner"]["url"] == "notebooks/04_simple_attention.html#inner"
    assert entries["4. Attention"]["url"] == "notebooks/04_simple_attention.html"
    assert entries["4. Attention"]["names"] == ["lesson 4"]


@pytest.mark.parametrize(("title", "kind"), [("Exercise 4.1 · Scores", "exercise"), ("Case 4.A · Sums", "case")])
def test_tasks_are_told_apart(title, kind):
    task = section("task", [nodes.Text(title)], classes=["task"])
    assert found("notebooks/04_simple_attention", task)[title]["kind"] == kind


MEANINGS = {
    "BPE for short. A way to build a vocabulary.": ["bpe"],
    "Short for key-value cache: the keys and values.": ["key-value cache"],
    "Adding an input to its output; also called a skip connection.": ["skip connection"],
    "How well the two match; in code attn_scores.": ["attn_scores"],
    "The entries of a query (d_k in papers).": ["d_k"],
    "One number.": [],
}


@pytest.mark.parametrize("meaning", MEANINGS)
def test_a_term_is_found_by_its_other_names(meaning):
    definition = nodes.definition("", nodes.paragraph("", meaning))
    item = nodes.definition_list_item("", nodes.term("", "term", ids=["a-term"]), definition)
    letter = section("letter-t", [nodes.Text("T")], nodes.definition_list("", item))
    entries = found("docs/glossary", letter)
    assert "T" not in entries, "a letter is not a section to be found"
    assert entries["term"]["kind"] == "term"
    assert entries["term"]["url"] == "docs/glossary.html#a-term"
    assert entries["term"]["names"] == MEANINGS[meaning]


def test_functions_are_found_by_their_own_names_and_fields_of_tuples_are_not():
    def described(kind, name, says):
        content = addnodes.desc_content("", nodes.paragraph("", says))
        return addnodes.desc("", addnodes.desc_signature("", ids=[name]), content, objtype=kind)

    function = described("function", "utils.attention.causal_mask", "Return a mask.")
    method = described("method", "utils.attention.Heads.forward", "Return vectors.")
    field = described("attribute", "utils.gpt.Cache.keys", "Alias for field number 0")
    entries = found("docs/api", function, method, field)
    assert entries["utils.attention.causal_mask"]["names"] == ["causal_mask"]
    assert entries["utils.attention.Heads.forward"]["names"] == []
    assert "utils.gpt.Cache.keys" not in entries


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\text{softmax}\left(\frac{Q K^\top}{\sqrt{\text{head\_dim}}}\right) V", "softmax(QK^⊤ / √head_dim)V"),
        (r"\text{softmax}(s)_i = \frac{e^{s_i}}{\sum_j e^{s_j}}", "softmax(s)_i = e^s_i / ∑_je^s_j"),
    ],
)
def test_formulas_are_text(latex, text):
    assert site_search.formula(latex) == text
