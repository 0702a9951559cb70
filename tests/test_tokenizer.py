"""utils.tokenizer against its contract: known values, two routes to one result, and bad input."""

import os
import shutil
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import regex
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
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


def pre_tokens(text):
    """Return the pieces of a text that GPT-2 keeps whole also when they stand alone."""
    return [piece for piece in regex.findall(r50k_pat_str, text) if len(regex.findall(r50k_pat_str, piece)) == 1]


# Known values


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Every effort moves you", [6109, 3626, 6100, 345]),
        ("Every day holds a", [6109, 1110, 6622, 257]),
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
        ("  Hello World.", [220, 18435, 2159, 13]),
        ("∩", [24861, 102]),
        (END, END_AS_TEXT),
        (
            "I had always thought Jack Gisburn is my friend",
            [40, 550, 1464, 1807, 3619, 402, 271, 10899, 318, 616, 1545],
        ),
        ("The dog chased the cat.", [464, 3290, 26172, 262, 3797, 13]),
        ("The cat chased the dog.", [464, 3797, 26172, 262, 3290, 13]),
    ],
)
def test_known_ids(text, ids):
    assert text_to_ids(text).tolist() == ids
    assert ids_to_text(ids) == text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("pdt magr", ["p", "dt", " mag", "r"]),
        ("Jack Gisburn", ["Jack", " G", "is", "burn"]),
        ("Every effort moves you", ["Every", " effort", " moves", " you"]),
        ("hello\nworld", ["hello", "\n", "world"]),
        ("", []),
    ],
)
def test_known_pieces(text, pieces):
    assert token_texts(text_to_ids(text)) == pieces


def test_the_vocabulary_is_gpt2s():
    encoding = get_tokenizer()
    assert encoding.n_vocab == 50_257
    assert encoding.eot_token == 50_256
    assert encoding.special_tokens_set == {END}
    assert [encoding.decode_single_token_bytes(token_id) for token_id in (0, 220, 50255)] == [b"!", b" ", b" gazed"]
    singles = {encoding.encode_single_token(bytes([byte])) for byte in range(256)}
    assert singles == set(range(256)), "the first 256 IDs are the bytes: nothing is unknown"
    assert get_tokenizer() is encoding, "the file is read once a process"


# Round trip and special tokens


@moderate
@given(texts)
def test_round_trip(text):
    ids = text_to_ids(text)
    assert ids.dtype == torch.int64
    assert ids.dim() == 1
    assert ids_to_text(ids) == text
    assert all(0 <= token_id < 50_256 for token_id in ids.tolist()), "no text spells the special token"
    assert len(token_texts(ids)) == len(ids)
    if text.isascii():
        assert "".join(token_texts(ids)) == text


@moderate
@given(texts)
def test_two_routes_to_the_same_tokens(text):
    """Split by the pattern and merge in Python, against the compiled tokenizer."""
    pieces = regex.findall(r50k_pat_str, text)
    assert "".join(pieces) == text
    assume(pieces == pre_tokens(text))  # a piece is taken alone: seldom it would split further there
    by_hand = [token for piece in pieces for token in bpe_merge_steps(piece)[-1]]
    assert get_tokenizer().decode_tokens_bytes(text_to_ids(text).tolist()) == by_hand


def test_long_runs():
    for text in ("a" * 100_000, " " * 100_000, "!" * 100_000, "\n" * 100_000):
        assert ids_to_text(text_to_ids(text)) == text


def test_end_of_text_is_data_unless_allowed():
    assert text_to_ids(END).tolist() == END_AS_TEXT
    assert text_to_ids(END, allow_special=True).tolist() == [50_256]
    assert text_to_ids(f"cat{END} cat", allow_special=True).tolist() == [9246, 50_256, 3797]
    assert text_to_ids(f"cat{END} cat").tolist() == [9246, *END_AS_TEXT, 3797]
    assert ids_to_text([50_256]) == END
    assert token_texts([9246, 50_256]) == ["cat", END]
    with pytest.raises(ValueError, match="endoftext"):
        get_tokenizer().encode(END)


# Types, shapes, dtypes


@pytest.mark.parametrize("allow_special", [False, True])
def test_an_empty_text_has_no_ids_and_they_are_integers(allow_special):
    ids = text_to_ids("", allow_special=allow_special)
    assert ids.shape == (0,)
    assert ids.dtype == torch.int64
    assert ids_to_text(ids) == ""
    assert token_texts(ids) == []
    assert ids_to_text([]) == ""


@pytest.mark.parametrize(
    "ids",
    [
        [6109, 3626, 6100, 345],
        (6109, 3626, 6100, 345),
        torch.tensor([6109, 3626, 6100, 345]),
        torch.tensor([6109, 3626, 6100, 345], dtype=torch.int32),
        torch.tensor([6109, 3626, 6100, 345]).to(torch.uint16),
        np.array([6109, 3626, 6100, 345]),
        np.array([6109, 3626, 6100, 345], dtype=np.uint16),
        [np.int64(6109), 3626, np.uint16(6100), torch.tensor(345)],
    ],
    ids=lambda ids: f"{type(ids).__name__} {getattr(ids, 'dtype', '')}",
)
def test_ids_come_as_tensor_array_or_list(ids):
    assert ids_to_text(ids) == "Every effort moves you"
    assert token_texts(ids) == ["Every", " effort", " moves", " you"]


# Batches of texts


def test_unequal_lengths_are_named():
    with pytest.raises(ValueError, match=r"4.*1.*2"):
        texts_to_batch(["Every effort moves you", "cat", "Hello,"])


@moderate
@given(st.lists(texts.filter(bool), min_size=1, max_size=4), st.integers(0, 50_256))
def test_padding_and_its_mask(rows, pad_id):
    batch, is_token = pad_texts(rows, pad_id)
    lengths = [len(text_to_ids(text)) for text in rows]
    assert batch.dtype == torch.int64
    assert is_token.dtype == torch.bool
    assert batch.shape == is_token.shape == (len(rows), max(lengths))
    for row, mask, text, length in zip(batch, is_token, rows, lengths):
        assert mask.tolist() == [True] * length + [False] * (max(lengths) - length)
        assert torch.equal(row[mask], text_to_ids(text))
        assert (row[~mask] == pad_id).all()
        assert ids_to_text(row[mask]) == text


def test_padding_is_the_end_of_text_by_default():
    batch, is_token = pad_texts(["Hello,", "Hello", END])
    assert batch[1].tolist() == [15496] + 6 * [50_256]
    assert is_token.sum(dim=1).tolist() == [2, 1, 7]


# Bad input


@pytest.mark.parametrize("text", [None, 5, b"cat", ["cat"], [9246], torch.tensor([9246])], ids=repr)
def test_a_text_is_a_string(text):
    with pytest.raises(TypeError, match="text"):
        text_to_ids(text)


@pytest.mark.parametrize("function", [text_to_ids, bpe_merge_steps, lambda text: texts_to_batch([text])])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\ud83d", r"lone surrogate at index 0: '\\ud83d'"),
        ("ab\udc4dcd", r"lone surrogate at index 2: '\\udc4d'"),
        ("a\udc4d\ud83d", r"lone surrogate at index 1: '\\udc4d'"),
        ("\ud83d\ud83d\udc4d", r"lone surrogate at index 0: '\\ud83d'"),
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


@pytest.mark.parametrize("value", ["no", 0, None], ids=repr)
def test_allow_special_is_true_or_false(value):
    with pytest.raises(TypeError, match=rf"allow_special must be True or False, not {value!r}"):
        text_to_ids("cat", allow_special=value)


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
    "ids",
    [
        torch.tensor([[1, 2]]),
        np.zeros((1, 2), dtype=int),
        [[1], [2, 3]],
        torch.tensor(5),
        5,
        "Every effort",
        None,
        {1, 2},
    ],
    ids=repr,
)
def test_ids_are_one_row(ids):
    for function in (ids_to_text, token_texts):
        with pytest.raises((ValueError, TypeError), match="ids"):
            function(ids)


@pytest.mark.parametrize(
    "ids",
    [
        [1.0, 2.0],
        [1, 2.0],
        np.array([1.0]),
        torch.tensor([1.0]),
        torch.tensor([1.0], requires_grad=True),
        torch.tensor([1.0], dtype=torch.bfloat16),
        [True, False],
        np.array([True]),
        torch.tensor([True]),
        ["cat"],
        [None],
    ],
    ids=repr,
)
def test_ids_are_integers(ids):
    for function in (ids_to_text, token_texts):
        with pytest.raises(TypeError, match="ids"):
            function(ids)


@pytest.mark.parametrize("function", [texts_to_batch, pad_texts])
def test_bad_texts(function):
    with pytest.raises(TypeError, match="texts"):
        function("one string")
    with pytest.raises(ValueError, match="texts"):
        function([])
    with pytest.raises(ValueError, match=r"texts\[1\]"):
        function(["cat", ""])
    with pytest.raises(TypeError, match=r"text.*int"):
        function(["cat", 5])
    with pytest.raises(TypeError, match="texts"):
        function(None)


@pytest.mark.parametrize("pad_id", [-1, 50_257, 2**70])
def test_pad_id_out_of_range(pad_id):
    with pytest.raises(ValueError, match=rf"pad_id.*{pad_id}.*50256"):
        pad_texts(["cat"], pad_id)


@pytest.mark.parametrize("pad_id", [1.0, None, "0", True, [1]], ids=repr)
def test_pad_id_is_an_integer(pad_id):
    with pytest.raises(TypeError, match="pad_id"):
        pad_texts(["cat"], pad_id)


# Merges


def test_known_merges():
    assert bpe_merge_steps("cat") == [[b"c", b"a", b"t"], [b"c", b"at"], [b"cat"]]
    assert bpe_merge_steps(" cat")[-1] == [b" cat"]
    assert bpe_merge_steps("CAT")[-1] == [b"C", b"AT"]
    assert bpe_merge_steps(" magr")[-1] == [b" mag", b"r"]
    assert bpe_merge_steps("∩") == [[b"\xe2", b"\x88", b"\xa9"], [b"\xe2\x88", b"\xa9"]]
    assert bpe_merge_steps("x") == [[b"x"]], "one byte: there is nothing to merge"
    assert bpe_merge_steps("aaa")[1] == [b"aa", b"a"], "from left to right"


@cache
def learned_ranks():
    return {get_tokenizer().decode_single_token_bytes(token_id): token_id for token_id in range(50_256)}


@moderate
@given(st.one_of(texts, st.text(alphabet="abest", min_size=1, max_size=25)))
def test_merge_steps(text):
    encoding = get_tokenizer()
    ranks = learned_ranks()
    for piece in pre_tokens(text):
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
        assert not any(left + right in ranks for left, right in pairwise(steps[-1]))


def test_merges_are_of_one_pre_token():
    with pytest.raises(ValueError, match="text"):
        bpe_merge_steps("")
    with pytest.raises(ValueError, match=r"text.*'Every'.*' effort'"):
        bpe_merge_steps("Every effort")
    with pytest.raises(TypeError, match="text"):
        bpe_merge_steps(5)


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


RESTORE = r"gpt2\.tiktoken.*git checkout"


def test_a_missing_vocabulary_is_named(data):
    (data / "gpt2.tiktoken").unlink()
    for function in (get_tokenizer, lambda: text_to_ids("cat"), lambda: ids_to_text([9246])):
        with pytest.raises(FileNotFoundError, match=RESTORE):
            function()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(b" 500\n", b" 501\n"),
        lambda content: b"version https://git-lfs.github.com/spec/v1\n",
        lambda content: b"\xef\xbb\xbf" + content,
        lambda content: b"\xff\xfe\x00 not even\x00 text",
    ],
    ids=["empty", "last byte", "half", "CRLF", "one rank", "pointer", "BOM", "binary"],
)
def test_a_damaged_vocabulary_is_named(data, damage):
    path = data / "gpt2.tiktoken"
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):  # the failure is not kept, and nothing replaces the file
        with pytest.raises(ValueError, match=RESTORE):
            get_tokenizer()


def test_without_its_folder_the_course_says_how_to_install_it(data):
    shutil.rmtree(data)
    for function in (get_tokenizer, lambda: read_text(STORY)):
        with pytest.raises(
            FileNotFoundError, match=r"no folder .*data: .* its own folder.*pip install -e \."
        ) as caught:
            function()
        assert "git" not in str(caught.value)


def test_a_restored_vocabulary_is_read_again(data):
    path = data / "gpt2.tiktoken"
    content = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=RESTORE):
        get_tokenizer()
    path.write_bytes(content)
    assert text_to_ids("cat").tolist() == [9246]


# Reading files


def test_the_story_is_read_by_name():
    content = (tokenizer.DATA / STORY).read_bytes()
    assert read_text(STORY) == content.decode("utf-8")


def test_an_own_file_is_read_by_path(tmp_path, monkeypatch):
    text = "“Zoë” – 12 €, ∩, 👩\u200d🚀\n"
    path = tmp_path / "mine.txt"
    path.write_bytes(text.encode("utf-8"))
    assert read_text(path) == text
    assert read_text(str(path)) == text
    monkeypatch.chdir(tmp_path)
    assert read_text("mine.txt") == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"one\ntwo", "one\ntwo"),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
        (b"\xef\xbb\xbfone\r\ntwo", "one\ntwo"),
        (b"in\xef\xbb\xbfside", "in\ufeffside"),
        (b" ", " "),
    ],
    ids=["CRLF", "LF", "BOM", "BOM and CRLF", "BOM inside", "space"],
)
def test_line_ends_and_byte_order_marks(tmp_path, content, text):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    assert read_text(path) == text


@pytest.mark.parametrize("name", ["no_such_file.txt", "no/such/folder.txt", "Once upon a time. " * 1000, "", "."])
def test_an_unknown_file_is_named_and_the_course_has_others(name):
    with pytest.raises(FileNotFoundError, match=STORY) as caught:
        read_text(name)
    assert name[:40] in str(caught.value)


@pytest.mark.parametrize(
    ("content", "index", "byte"),
    [
        ("Zoë".encode("cp1252"), 2, "0xeb"),
        ("a “quoted” word".encode("cp1252"), 2, "0x93"),
        ("cat".encode("utf-16"), 0, "0xf[ef]"),
        (b"cut \xe2\x88", 4, "0xe2"),
        (b"\xef\xbb\xbfabc\xff", 6, "0xff"),
        (b"x" * 300_000 + b"\xff", 300_000, "0xff"),
        ("ab\ud83d\udc4d".encode("utf-8", "surrogatepass"), 2, "0xed.*invalid continuation"),
    ],
    ids=["accent", "quotes", "utf-16", "cut", "after a BOM", "late", "surrogates"],
)
def test_a_file_that_is_not_utf8(tmp_path, content, index, byte):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"mine\.txt.*UTF-8.*\b{index}\b.*{byte}"):
        read_text(path)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"], ids=["nothing", "BOM only"])
def test_an_empty_file(tmp_path, content):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mine\.txt.*empty"):
        read_text(path)


@pytest.mark.parametrize("name", [None, 5, 1.5, ["the_night_ferry.txt"]], ids=repr)
def test_a_path_is_no_number(name):
    with pytest.raises(TypeError):
        read_text(name)


# Quiet and offline

OFFLINE = """
import os, socket, sys, warnings

def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError("the network was touched: " + event)

sys.addaudithook(refuse)
try:
    socket.socket()
except RuntimeError:
    print("sockets are refused")

import random, numpy, torch
def states():
    return repr((random.getstate(), numpy.random.get_state(), torch.get_rng_state().tolist()))
before, folder = states(), os.environ["TMPDIR"]
warnings.simplefilter("error")  # with -X warn_default_encoding: an open() that names no encoding fails
warnings.filterwarnings("ignore", "UTF-8 Mode", EncodingWarning)  # of another package's import, and no open()

import utils.tokenizer as t
assert states() == before, "the import draws random numbers"
assert not os.listdir(folder), os.listdir(folder)

encoding = t.get_tokenizer()
assert t.text_to_ids("Every effort moves you").tolist() == [6109, 3626, 6100, 345]
assert t.ids_to_text(t.text_to_ids(t.read_text("the_night_ferry.txt"))) == t.read_text("the_night_ferry.txt")
assert t.pad_texts(["Hello,", "Hello"])[1].tolist() == [[True, True], [True, False]]
assert t.bpe_merge_steps("cat")[-1] == [b"cat"]
assert states() == before, "a call draws random numbers"
assert not os.listdir(folder), os.listdir(folder)
"""


def test_offline_and_quiet(tmp_path):
    """Every socket refused and an empty temporary folder: all works, nothing is written, drawn or printed."""
    temporary, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    temporary.mkdir()
    elsewhere.mkdir()
    folders = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    root = str(Path(tokenizer.__file__).parent.parent)
    caches = {"TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in caches}
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", OFFLINE],
        cwd=elsewhere,
        env=environment | folders | {"PYTHONPATH": root, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "sockets are refused\n", "")
    assert list(temporary.iterdir()) == []
    assert list(elsewhere.iterdir()) == []
