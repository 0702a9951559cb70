"""utils.tokenizer against its contract: known values, two routes to one result, and bad input."""

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import regex
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lessons import NOTEBOOKS, code_cells, read
from tiktoken_ext.openai_public import r50k_pat_str

from utils import tokenizer
from utils.tokenizer import (
    bpe_merge_steps,
    get_tokenizer,
    ids_to_text,
    pad_texts,
    read_text,
    text_to_ids,
    texts_to_batch,
    token_texts,
)

END = "<|endoftext|>"
END_AS_TEXT = [27, 91, 437, 1659, 5239, 91, 29]
STORY = "the_night_ferry.txt"

moderate = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
# Any valid Unicode, and besides it what tokenizers stumble over: spaces, apostrophes, signs, marks, the special token.
SPACES = ["", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u200d", "\x00", "\ufeff"]
SIGNS = ["'s", "'LL", "’", "“", "–", "--", "<|", "|>", END, "$", "\\", "½", "∩"]
LETTERS = ["the", " effort", "Zoë", "e\u0301", "ﬁ", "7", "1984", "٣", "日本", "👩\u200d🚀", "🇫🇷"]
awkward = st.lists(st.sampled_from(SPACES + SIGNS + LETTERS), max_size=12).map("".join)
texts = st.one_of(st.text(max_size=40), awkward)


# Known values


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        (" forward", [2651]),
        ("pdt magr", [79, 28664, 2153, 81]),
        ("cat", [9246]),
        ("Cat", [21979]),
        ("CAT", [34, 1404]),
        ("cats", [24619]),
        (" cat", [3797]),
        ("Hello,", [15496, 11]),
        ("hello\nworld", [31373, 198, 6894]),
        ("\n\n", [628]),
        ("a\n\nb", [64, 198, 198, 65]),
        ("\n\n\nb", [628, 198, 65]),
        ("  Hello World.", [220, 18435, 2159, 13]),
        ("Every effort moves you", [6109, 3626, 6100, 345]),
        ("Every day holds a", [6109, 1110, 6622, 257]),
        ("∩", [24861, 102]),
        (END, END_AS_TEXT),
        ("Jack Gisburn", [14295, 402, 271, 10899]),
        ("The dog chased the cat.", [464, 3290, 26172, 262, 3797, 13]),
        ("The cat chased the dog.", [464, 3797, 26172, 262, 3290, 13]),
    ],
)
def test_known_ids(text, ids):
    found = text_to_ids(text)
    assert found.tolist() == ids
    assert found.dtype == torch.int64
    assert ids_to_text(ids) == text


def test_the_vocabulary_is_gpt2s():
    encoding = get_tokenizer()
    assert encoding.n_vocab == 50_257
    assert encoding.special_tokens_set == {END}
    singles = {encoding.encode_single_token(bytes([byte])) for byte in range(256)}
    assert singles == set(range(256)), "the first 256 IDs are the bytes: nothing is unknown"
    assert get_tokenizer() is encoding, "the file is read once per process"


def test_every_merge_joins_two_earlier_tokens():
    encoding = get_tokenizer()
    ranks = {encoding.decode_single_token_bytes(token_id): token_id for token_id in range(50_256)}
    for piece, rank in list(ranks.items())[256:]:
        cuts = [(piece[:index], piece[index:]) for index in range(1, len(piece))]
        assert any(max(ranks.get(part, rank) for part in cut) < rank for cut in cuts), piece


# Round trip and special tokens


@moderate
@given(texts)
def test_round_trip(text):
    ids = text_to_ids(text)
    assert ids_to_text(ids) == text
    assert all(0 <= token_id < 50_256 for token_id in ids.tolist()), "no text spells the special token"
    assert len(token_texts(ids)) == len(ids)


def test_end_of_text_is_data_unless_allowed():
    assert text_to_ids(f"cat{END} cat", allow_special=True).tolist() == [9246, 50_256, 3797]
    assert text_to_ids(f"cat{END} cat").tolist() == [9246, *END_AS_TEXT, 3797]
    assert token_texts([9246, 50_256]) == ["cat", END]
    with pytest.raises(ValueError, match="endoftext"):
        get_tokenizer().encode(END)


@pytest.mark.parametrize(
    "ids",
    [
        (6109, 3626, 6100, 345),
        torch.tensor([6109, 3626, 6100, 345]).to(torch.uint16),
        np.array([6109, 3626, 6100, 345], dtype=np.uint16),
        [np.int64(6109), 3626, np.uint16(6100), torch.tensor(345)],
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_ids_come_as_tensor_array_or_list(ids):
    assert ids_to_text(ids) == "Every effort moves you"
    assert token_texts(ids) == ["Every", " effort", " moves", " you"]


# Batches of texts


def test_unequal_lengths_are_named():
    with pytest.raises(ValueError, match=r"\[4, 1\] tokens"):
        texts_to_batch(["Every effort moves you", "cat"])


@moderate
@given(st.lists(texts.filter(bool), min_size=1, max_size=4), st.integers(0, 50_256))
def test_padding_and_its_mask(rows, pad_id):
    batch, is_token = pad_texts(rows, pad_id)
    lengths = [len(text_to_ids(text)) for text in rows]
    assert batch.shape == is_token.shape == (len(rows), max(lengths))
    for row, mask, text, length in zip(batch, is_token, rows, lengths):
        assert mask.tolist() == [True] * length + [False] * (max(lengths) - length)
        assert torch.equal(row[mask], text_to_ids(text))
        assert (row[~mask] == pad_id).all()


# Bad input


@pytest.mark.parametrize("text", [None, b"cat", [9246]], ids=repr)
@pytest.mark.parametrize("function", [text_to_ids, bpe_merge_steps])
def test_a_text_is_a_string(function, text):
    with pytest.raises(TypeError, match=f"text must be a string, not {type(text).__name__}"):
        function(text)


@pytest.mark.parametrize("function", [text_to_ids, bpe_merge_steps, lambda text: texts_to_batch([text])])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\ud83d", r"lone surrogate at index 0: '\\ud83d'"),
        ("ab\udc4dcd", r"lone surrogate at index 2: '\\udc4d'"),
        ("a\udc00\udc00", r"lone surrogate at index 1: '\\udc00'"),
        ("ab\ud83d\udc4d", r"surrogate pair at index 2: .* of '👍' \(U\+1F44D\)"),
        ("\ud800\udc00", r"surrogate pair at index 0: .*U\+10000"),
        ("\udbff\udfff", r"surrogate pair at index 0: .*U\+10FFFF"),
    ],
)
def test_surrogates_are_not_characters(function, text, message):
    with pytest.raises(ValueError, match=f"text has a {message}"):
        function(text)


def test_the_advice_on_surrogate_pairs_is_right():
    text = "a\ud83d\udc4d\ud83d\udc4d"
    with pytest.raises(ValueError, match="surrogate pair") as caught:
        text_to_ids(text)
    joined = eval(str(caught.value).split(":  ")[1], {"text": text})
    assert ids_to_text(text_to_ids(joined)) == "a👍👍"


def test_allow_special_is_true_or_false():
    with pytest.raises(TypeError, match="allow_special must be True or False, not 0"):
        text_to_ids("cat", allow_special=0)


@moderate
@given(
    st.one_of(st.integers(max_value=-1), st.integers(min_value=50_257)),
    st.lists(st.integers(0, 50_256), max_size=5),
    st.lists(st.integers(-9, 50_300), max_size=5),
)
def test_the_first_id_out_of_range_is_named_with_its_index(bad, before, after):
    for function in (ids_to_text, token_texts):
        for make in (list, np.array):
            with pytest.raises(ValueError, match=rf"ids\[{len(before)}\] is {bad}\b.*50256"):
                function(make([*before, bad, *after]))


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        (torch.tensor([[1, 2]]), ValueError, r"shape \(num_tokens,\)"),
        (np.zeros((1, 2), dtype=int), ValueError, r"shape \(num_tokens,\)"),
        ([[1], [2, 3]], ValueError, r"shape \(num_tokens,\)"),
        (torch.tensor(5), TypeError, "a row of integers, not int"),
        ("Every effort", TypeError, "a row of integers, not str"),
        ({1, 2}, TypeError, "a row of integers, not set"),  # it has no order
        ([1, 2.0], TypeError, "an integer, not 2.0"),
        (torch.tensor([1.0], requires_grad=True), TypeError, "an integer, not 1.0"),
        ([True, False], TypeError, "an integer, not True"),
    ],
    ids=repr,
)
def test_ids_are_one_row_of_integers(ids, error, said):
    for function in (ids_to_text, token_texts):
        with pytest.raises(error, match=rf"ids.* must (be|have) {said}"):
            function(ids)


@pytest.mark.parametrize("function", [texts_to_batch, pad_texts])
@pytest.mark.parametrize(
    ("texts", "error", "said"),
    [
        ("one string", TypeError, "texts must be a list of strings, not str"),
        (None, TypeError, "texts must be a list of strings, not NoneType"),
        (["cat", 5], TypeError, "text must be a string, not int"),
        ([], ValueError, "texts is empty"),
        (["cat", ""], ValueError, r"texts\[1\] is empty"),
    ],
    ids=repr,
)
def test_bad_texts(function, texts, error, said):
    with pytest.raises(error, match=said):
        function(texts)


@pytest.mark.parametrize(
    ("pad_id", "error"), [(-1, ValueError), (50_257, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_pad_id_is_one_of_gpt2s_ids(pad_id, error):
    with pytest.raises(error, match=rf"pad_id .*{pad_id}"):
        pad_texts(["cat"], pad_id)


# Merges


def test_known_merges():
    assert bpe_merge_steps("CAT")[-1] == [b"C", b"AT"]
    assert bpe_merge_steps("∩") == [[b"\xe2", b"\x88", b"\xa9"], [b"\xe2\x88", b"\xa9"]]
    assert bpe_merge_steps("x") == [[b"x"]], "one byte: there is nothing to merge"
    assert bpe_merge_steps("aaa")[1] == [b"aa", b"a"], "from left to right"


@moderate
@given(st.one_of(texts, st.text(alphabet="abest", min_size=1, max_size=25)))
def test_merge_steps(text):
    encoding = get_tokenizer()
    ranks = encoding._mergeable_ranks
    # A piece is taken alone: seldom it would split further there.
    pieces = regex.findall(r50k_pat_str, text)
    for piece in (piece for piece in pieces if regex.findall(r50k_pat_str, piece) == [piece]):
        steps = bpe_merge_steps(piece)
        content = piece.encode("utf-8")
        assert steps[0] == [bytes([byte]) for byte in content]
        assert steps[-1] == encoding.decode_tokens_bytes(encoding.encode_ordinary(piece))
        assert all(b"".join(step) == content for step in steps)
        for before, after in pairwise(steps):
            assert len(after) < len(before)
            pairs = [left + right for left, right in pairwise(before)]
            earliest = min((pair for pair in pairs if pair in ranks), key=ranks.get)
            assert earliest in after
            assert set(after) - set(before) <= {earliest}, "one merge per step, wherever it applies"


# Lesson 1 builds an encoder of its own

SPACED = ["", " ", "  ", "\t", "\n", "\n\n", " \n ", "\r\n", "a\r\nb", " lead", "trail ", "  Hello World.", "\xa0"]
MARKED = ["Hello,", "hello--world", "...", "?!?!", "#$%^&*()", "can't, won't, I'LL", "‘quoted’ “twice”", "a_b", "—"]
DIGITS = ["0", "007", "3.14159", "1 000 000", "6:40", "2026-11-29", "1e-5", "²³½", "٣٤"]
SCRIPTS = ["Zoë", "nai\u0308ve", "Ελλάδα", "Привет", "שלום", "नमस्ते", "猫が好き", "안녕", "∩", "a\u0301\u0301\u0301"]
PICTURES = ["🐈", "👩\u200d🚀", "🇫🇷", "👍🏽 ok", "\u200b", "\ufeffstart"]
LONG = ["a" * 200, " " * 50, "https://a.b/c?d=e&f#g", "def f(x):\n\treturn x  # twice", END, "pdt magr"]


@pytest.fixture(scope="module")
def lesson():
    """What lesson 1 defines up to the function named `encode`, without its figures."""
    names = {}
    for cell in code_cells(read(NOTEBOOKS[1])):
        if "plots.show(" not in cell.source:
            exec(cell.source, names)
        if "encode" in names:
            return names
    return names


def test_the_lessons_encoder_is_tiktoken(lesson):
    awkward_texts = SPACED + MARKED + DIGITS + SCRIPTS + PICTURES + LONG
    assert len(awkward_texts) > 50
    for text in [*awkward_texts, read_text(STORY)]:
        assert lesson["encode"](text) == get_tokenizer().encode_ordinary(text)
        assert ids_to_text(text_to_ids(text)) == text


@moderate
@given(texts)
def test_the_lessons_encoder_is_tiktoken_on_any_text(lesson, text):
    assert lesson["encode"](text) == get_tokenizer().encode_ordinary(text)


def test_the_lesson_trains_bpe_as_it_says(lesson):
    merges, words, lengths = lesson["train_bpe"]("aaabdaaabac", num_merges=3)
    assert words == {"aaabdaaabac": [258, 100, 258, 97, 99]}
    assert (merges, lengths) == ({(97, 97): 256, (256, 97): 257, (257, 98): 258}, [11, 9, 7, 5])
    assert lesson["train_bpe"]("a", num_merges=3) == ({}, {"a": [97]}, [1]), "nothing to merge is not an error"
    assert lesson["merge"](["a", "a", "a"], ("a", "a"), "aa") == ["aa", "a"], "from left to right"


def test_merges_are_of_one_pre_token():
    with pytest.raises(ValueError, match="text must be one pre-token; '' falls into"):
        bpe_merge_steps("")
    with pytest.raises(ValueError, match=r"text.*'Every'.*' effort'"):
        bpe_merge_steps("Every effort")


# The vocabulary file


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data folder of its own with an intact vocabulary, and a tokenizer that has not been read yet."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(tokenizer.DATA / "gpt2.tiktoken", folder)
    monkeypatch.setattr(tokenizer, "DATA", folder)
    get_tokenizer.cache_clear()
    yield folder
    get_tokenizer.cache_clear()
    tokenizer._ranks.cache_clear()


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda path: path.unlink(), FileNotFoundError),
        (lambda path: path.write_bytes(b""), ValueError),
        (lambda path: path.write_bytes(path.read_bytes().replace(b" 500\n", b" 501\n")), ValueError),
    ],
    ids=["missing", "empty", "one rank"],
)
def test_a_damaged_vocabulary_is_named_and_read_again_when_restored(data, damage, error):
    content = (data / "gpt2.tiktoken").read_bytes()
    damage(data / "gpt2.tiktoken")
    for function in (get_tokenizer, lambda: text_to_ids("cat")):  # the failure is not kept
        with pytest.raises(error, match=r"gpt2\.tiktoken.*git checkout"):
            function()
    (data / "gpt2.tiktoken").write_bytes(content)
    assert text_to_ids("cat").tolist() == [9246]


def test_without_its_folder_the_course_says_how_to_install_it(data):
    shutil.rmtree(data)
    for function in (get_tokenizer, lambda: read_text(STORY)):
        said = r"no folder .*data: .* its own folder.*pip install -e \."
        with pytest.raises(FileNotFoundError, match=said) as caught:
            function()
        assert "git" not in str(caught.value)


# Reading files


def test_the_story_is_read_by_name_and_an_own_file_by_path(tmp_path, monkeypatch):
    assert read_text(STORY) == (tokenizer.DATA / STORY).read_text(encoding="utf-8")
    text = "“Zoë” – 12 €, ∩, 👩\u200d🚀\n"
    path = tmp_path / "mine.txt"
    path.write_bytes(text.encode("utf-8"))
    monkeypatch.chdir(tmp_path)
    assert read_text(path) == read_text(str(path)) == read_text("mine.txt") == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"one\r\ntwo\rthree\n", "one\ntwo\nthree\n"),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
        (b"in\xef\xbb\xbfside", "in\ufeffside"),
        (b" ", " "),
    ],
    ids=["line ends", "BOM", "BOM inside", "space"],
)
def test_line_ends_and_byte_order_marks(tmp_path, content, text):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    assert read_text(path) == text


@pytest.mark.parametrize("name", ["no/such/file.txt", "Once upon a time. " * 1000, "."])
def test_an_unknown_file_is_named_and_the_course_has_others(name):
    with pytest.raises(FileNotFoundError, match=STORY) as caught:
        read_text(name)
    assert name[:40] in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Zoë".encode("cp1252"), "is not UTF-8: byte 2 is 0xeb"),
        ("cat".encode("utf-16"), "is not UTF-8: byte 0 is 0xf[ef]"),
        (b"\xef\xbb\xbfcut \xe2\x88", "is not UTF-8: byte 7 is 0xe2"),
        ("ab\ud83d\udc4d".encode("utf-8", "surrogatepass"), "is not UTF-8: byte 2 is 0xed.*invalid continuation"),
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
    ],
    ids=["accent", "utf-16", "cut", "surrogates", "empty", "BOM only"],
)
def test_a_file_without_text_in_utf8(tmp_path, content, said):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"mine\.txt {said}"):
        read_text(path)


def test_a_path_is_no_number():
    with pytest.raises(TypeError):
        read_text(5)


# Quiet and offline

OFFLINE = """
import os, socket, sys, warnings
from states import random_states

def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError("the network was touched: " + event)

sys.addaudithook(refuse)
try:
    socket.socket()
except RuntimeError:
    print("sockets are refused")

before = random_states()
warnings.simplefilter("error")  # with -X warn_default_encoding: an open() that names no encoding fails
warnings.filterwarnings("ignore", "UTF-8 Mode", EncodingWarning)  # of another package's import, and no open()

import utils.tokenizer as t

assert t.text_to_ids("Every effort moves you").tolist() == [6109, 3626, 6100, 345]
assert t.ids_to_text(t.text_to_ids(t.read_text("the_night_ferry.txt"))) == t.read_text("the_night_ferry.txt")
assert t.bpe_merge_steps("cat")[-1] == [b"cat"]
assert random_states() == before, "random numbers are drawn"
"""


def test_offline_and_quiet(tmp_path):
    """Every socket refused and an empty temporary folder: all works, nothing is written, drawn or printed."""
    tests = Path(__file__).parent
    caches = {"TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in caches}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
    environment |= {"PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-X", "warn_default_encoding", "-c", OFFLINE]
    options = {"capture_output": True, "encoding": "utf-8", "timeout": 120, "check": False}
    done = subprocess.run(command, cwd=tmp_path, env=environment, **options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sockets are refused\n", "")
    assert list(tmp_path.iterdir()) == []
