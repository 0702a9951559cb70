"""Lesson 0 says the same with other random numbers, and takes a visitor's own text."""

from unittest.mock import MagicMock

import pytest
import torch
from lessons import ROOT, code_cells, read, tags

from utils.gpt import GPTConfig, GPTModel

LESSON = ROOT / "notebooks" / "00_the_whole_route.ipynb"
TEXT = 'text = "Every effort moves you"'
SEED = "torch.manual_seed(0)"


def run(seed=0, text="Every effort moves you", given=(), figures=False):
    """Run the lesson, without its figures unless asked, and return its variables.

    Those given replace its own after the training.
    """
    variables = {}
    for cell in code_cells(read(LESSON)):
        if "live-slider" in tags(cell):
            continue
        if cell.source.startswith("if missing :="):
            variables.update(given)
        source = cell.source.replace(TEXT, f"text = {text!r}").replace(SEED, f"torch.manual_seed({seed})")
        exec(source, variables)
        if not figures:
            variables["plots"] = MagicMock()  # from the set-up cell on
    return variables


@pytest.mark.parametrize("seed", range(3))
def test_what_the_lesson_says_holds_for_any_seed(seed, capsys):
    lesson = run(seed)
    printed = capsys.readouterr().out
    assert printed.endswith("Every effort moves you forward, one small step at a time.\n")
    probabilities = torch.softmax(lesson["logits"], dim=0)[lesson["top_ids"]]
    assert lesson["words"][0] == " forward"
    assert {*lesson["words"][1:3]} == {" closer", " to"}
    assert (probabilities[:3] - torch.tensor([0.6, 0.2, 0.2])).abs().max() < 0.12
    assert lesson["top_logits"][2] > 2 * lesson["top_logits"][3]
    last = lesson["attn_weights"][lesson["head"], -1]
    assert last[1] > 0.5
    assert lesson["attn_weights"][0, 0].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("text", ["Every", "Every ferry moves you home before night.", "Every story of a small story"])
def test_other_texts_go_through(text, capsys):
    run(text=text)
    assert text in capsys.readouterr().out.splitlines()[-1]


def test_a_finished_sentence_and_the_longest_text_go_through_with_their_figures(capsys):
    run(text="Every effort moves you forward, one small step at a time.", figures=True)
    assert "\nEvery effort moves you forward, one small step at a time.\n" in capsys.readouterr().out
    longest = "Every" + " a" * 15
    run(text=longest, figures=True)
    assert f"\n{longest}" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["Every elephant moves you", "every day", "effort", "Every effort ", "😀"])
def test_a_text_with_unknown_words_is_refused_with_what_to_do(text):
    with pytest.raises(ValueError, match="begin with Every and use words of its sentences"):
        run(text=text, figures=True)


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("Every" + " a" * 16, 17), ("Every effort moves you " * 100, 401)]
)
def test_a_text_without_tokens_or_with_too_many_is_refused_before_its_figure(text, count):
    with pytest.raises(ValueError, match=f"your text has {count} tokens: 1 to 16 are allowed"):
        run(text=text, figures=True)


def test_a_model_with_all_of_the_vocabulary_can_take_its_place(capsys):
    torch.manual_seed(0)
    config = GPTConfig(50_257, context_length=32, emb_dim=48, n_heads=12, n_layers=2, drop_rate=0.1, qkv_bias=True)
    published = GPTModel(config).eval()
    run(text="Any elephant ", given={"model": published, "known": torch.arange(50_257)})
    assert "Any elephant " in capsys.readouterr().out
