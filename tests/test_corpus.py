"""utils.corpus against its contract: the IDs of text_to_ids, whole files or none, flat memory, and bad input."""

import os
import re
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lessons import ROOT

from utils import corpus, tokenizer
from utils.batches import TokenWindows, make_loader
from utils.corpus import main, open_ids, write_ids
from utils.tokenizer import END_OF_TEXT, END_OF_TEXT_ID, text_to_ids

moderate = settings(deadline=None, max_examples=100, derandomize=True)
# What the pattern of GPT-2 treats differently, and characters on which versions of Unicode or of "space" disagree.
SPACES = [" ", "  ", "\n", "\n\n", "\t", "\r", "\r\n", "\x0b", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\u180e"]
SIGNS = [
    "'",
    "’",
    ".",
    "!?",
    "-",
    "，",
    "。",
    "_",
    "€",
    "🚀",
    "👩\u200d🚀",
    "\u0301",
    "\u093f",
    "\ufeff",
    "\x00",
    END_OF_TEXT,
]
LETTERS = [
    "s",
    "re",
    "ll",
    "'s",
    "'ve",
    "'LL",
    "the",
    "é",
    "ß",
    "ж",
    "中文",
    "हि",
    "ไทย",
    "\u1885",
    "\u02b9",
    "\U00016e40",
]
DIGITS = ["1", "2026", "٣", "½", "Ⅷ", "\u2183"]
awkward = st.lists(st.sampled_from(SPACES + SIGNS + LETTERS + DIGITS), max_size=25).map("".join)
texts = st.one_of(awkward, st.text(max_size=25))
OLD = b"what was there"


def expected(*documents):
    return [token_id for text in documents for token_id in [*text_to_ids(text).tolist(), END_OF_TEXT_ID]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ids.npy"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("corpus")


# The IDs


@moderate
@given(documents=st.lists(texts, min_size=1, max_size=4), characters=st.integers(1, 12))
def test_pieces_of_any_size_have_the_ids_of_the_whole(folder, documents, characters):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "CHARACTERS", characters)
        num_tokens = write_ids(iter(documents), folder / "ids.npy")
    ids = open_ids(folder / "ids.npy")
    assert ids.tolist() == expected(*documents)
    assert len(ids) == num_tokens


@moderate
@given(
    text=awkward.filter(lambda text: text.removeprefix("\ufeff")),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    size=st.integers(1, 9),
)
def test_a_file_of_any_size_is_one_document(folder, text, mark, size):
    (folder / "text.txt").write_bytes(mark + text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "CHARACTERS", size)
        patch.setattr(tokenizer, "BYTES_PER_READ", size)
        write_ids(folder / "text.txt", folder / "ids.npy")
    if not mark:
        text = text.removeprefix("\ufeff")
    assert open_ids(folder / "ids.npy").tolist() == expected(text.replace("\r\n", "\n").replace("\r", "\n"))


def test_special_text_is_plain_text_and_an_empty_text_is_a_document(path):
    assert write_ids([END_OF_TEXT, "", "a\n\nb"], path) == 14
    assert open_ids(path).tolist() == [27, 91, 437, 1659, 5239, 91, 29, 50256, 50256, 64, 198, 198, 65, 50256]


ENGLISH, NO_SPACES = "The boat left at 6:40. ", ["船在六點四十分離開了，", "dGhl+IGJvYXQ/", "เรือออกไปแล้ว"]
SOURCES = [("documents", ENGLISH), *(("file", sentence) for sentence in (ENGLISH, *NO_SPACES))]


@pytest.mark.parametrize(("source", "sentence"), SOURCES, ids=ascii)
def test_memory_stays_flat(source, sentence, tmp_path, path, monkeypatch):
    monkeypatch.setattr(corpus, "CHARACTERS", 2**10)
    monkeypatch.setattr(tokenizer, "BYTES_PER_READ", 2**10)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    texts = (sentence for _ in range(25_000))
    if source == "file":
        texts = written(tmp_path / "text.txt", "".join(texts).encode())
    write_ids(["warm up"], path)
    tracemalloc.start()
    num_tokens = write_ids(texts, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**19 < 3 * num_tokens, "bytes"


# The file


def test_numpy_reads_the_file_and_nothing_else_is_left(path):
    write_ids(["Every effort moves you"], str(path))
    assert path.read_bytes()[128:] == np.array([6109, 3626, 6100, 345, 50256], "<u2").tobytes()
    for ids in (np.load(path), np.load(path, mmap_mode="r"), open_ids(str(path))):
        assert (ids.tolist(), ids.dtype) == ([6109, 3626, 6100, 345, 50256], np.uint16)
    np.save(path.with_name("saved.npy"), np.array([6109, 3626, 6100, 345, 50256], np.uint16))
    assert path.with_name("saved.npy").read_bytes() == path.read_bytes()
    assert path.with_name("saved.npy").stat().st_mode == path.stat().st_mode, "whoever may read the one may read both"
    assert sorted(found.name for found in path.parent.iterdir()) == ["ids.npy", "saved.npy"]


def then(error):
    yield "one document"
    raise error


REFUSED = {
    "one string": (TypeError, lambda: "text", r"\[text\], or Path\('text.txt'\).*not str"),
    "bytes": (TypeError, lambda: b"text", "not bytes"),
    "nothing to go through": (TypeError, lambda: 5, "not int"),
    "a path among texts": (TypeError, lambda: ["a", Path("b")], r"texts\[1\] must be a string, not \w*Path"),
    "no texts": (ValueError, lambda: [], "texts is empty"),
    "surrogate": (
        ValueError,
        lambda: ["a", "b" * 2**17 + "\ud83d"],
        r"texts\[1\] has a lone surrogate at index 131072",
    ),
    "surrogate pair": (ValueError, lambda: ["a\ud83d\ude80"], r"texts\[0\] has a surrogate pair at index 1"),
    "too many spaces": (ValueError, lambda: [" " * 10**6 + "a"], "Max stack size exceeded"),  # as text_to_ids
    "missing file": (FileNotFoundError, lambda: Path("nowhere.txt"), "nowhere.txt"),
    "empty file": (ValueError, lambda: written("empty.txt", b"\xef\xbb\xbf"), "empty.txt is empty"),
    "cut file": (ValueError, lambda: written("cut.txt", b"a" * 2**17 + b"\xe2\x88"), "cut.txt .* byte 131072 is 0xe2"),
    "iterable fails": (RuntimeError, lambda: then(RuntimeError("gone")), "gone"),
    "interrupt": (KeyboardInterrupt, lambda: then(KeyboardInterrupt("now")), "now"),
}


def written(name, content):
    Path(name).write_bytes(content)
    return Path(name)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_leaves_the_old_file_and_nothing_new(kind, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    error, make, said = REFUSED[kind]
    texts, _ = make(), path.write_bytes(OLD)
    before = set(path.parent.iterdir())
    with pytest.raises(error, match=said):
        write_ids(texts, path)
    assert path.read_bytes() == OLD
    assert set(path.parent.iterdir()) == before


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    path.write_bytes(OLD)
    monkeypatch.setattr(corpus.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_ids(["text"], path)
    assert [(found.name, found.read_bytes()) for found in path.parent.iterdir()] == [("ids.npy", OLD)]


@pytest.mark.parametrize("name", ["ids", "ids.txt", "ids.npy.gz"])
def test_a_name_that_does_not_say_npy(name, tmp_path):
    with pytest.raises(ValueError, match=rf"path must end in \.npy, not '.*{name}'"):
        write_ids(["text"], tmp_path / name)


def test_a_folder_is_noticed_before_anything_is_encoded(tmp_path):
    (tmp_path / "ids.npy").mkdir()
    with pytest.raises(IsADirectoryError, match=r"ids\.npy is a folder"):
        write_ids(then(AssertionError("encoded")), tmp_path / "ids.npy")
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere for ids"):
        write_ids(then(AssertionError("encoded")), tmp_path / "nowhere" / "ids.npy")


def test_the_bar_comes_to_its_end(path, monkeypatch):
    seen = []

    @contextmanager
    def bar(total, progress, unit):
        done = []
        yield SimpleNamespace(update=done.append)
        seen.append((total, sum(done), progress, unit))

    monkeypatch.setattr(corpus, "progress_bar", bar)
    write_ids(["é" * 100_000, "", "b"], path)
    write_ids(iter(["a", "b"]), path, progress=False)
    write_ids(written(path.with_name("text.txt"), "é".encode() * 100_000), path)
    assert seen == [(3, 3, True, " documents"), (None, 2, False, " documents"), (200_000, 200_000, True, "B")]


# Opening it


def saved(array):
    def content(path):
        np.save(path, array, allow_pickle=True)

    return content


def changed(change):
    def content(path):
        write_ids(["Every effort moves you"], path)
        path.write_bytes(change(path.read_bytes()))

    return content


def archived(path):
    with path.open("wb") as file:
        np.savez(file, ids=np.arange(5))


BAD = {
    "text": (lambda path: path.write_text("Every effort moves you"), "is not a .npy file"),
    "nothing": (lambda path: path.write_bytes(b""), "is not a .npy file"),
    "archive": (archived, "is not a .npy file"),
    "objects": (saved(np.array([print, None])), r"one row of uint16 \(<u2\), not \|O of shape \(2,\)"),
    "int64": (saved(np.arange(5)), r"not <i8 of shape \(5,\)"),
    "other byte order": (saved(np.arange(5, dtype=">u2")), r"not >u2 of shape \(5,\)"),
    "rows": (saved(np.ones((5, 6), "<u2")), r"not <u2 of shape \(5, 6\)"),
    "a number": (saved(np.uint16(5)), r"not <u2 of shape \(\)"),
    "no IDs": (saved(np.ones(0, "<u2")), "has no token IDs"),
    "cut": (changed(lambda content: content[:-1]), "is cut short: with its 5 token IDs .* 138 bytes, not 137"),
    "cut in the header": (changed(lambda content: content[:100]), "is not a .npy file .*118 bytes got 90"),
    "longer": (changed(lambda content: content + b"more"), "goes on past its end: .* 138 bytes, not 142"),
    "damaged header": (changed(lambda content: content.replace(b"{", b"(", 1)), "is not a .npy file"),
    "another version": (changed(lambda content: content.replace(b"\x01", b"\x07", 1)), "version"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_damaged_or_foreign_file_is_named(kind, path):
    make, said = BAD[kind]
    make(path)
    with pytest.raises(ValueError, match=rf"ids\.npy .*{said}|ids\.npy {said}"):
        open_ids(path)


def test_a_missing_file_is_an_os_error(path):
    with pytest.raises(FileNotFoundError, match=r"ids\.npy"):
        open_ids(path)


def test_windows_and_worker_processes_take_it_as_it_is(path):
    write_ids(["The boat left at 6:40, and every effort moved it."] * 2, path)
    ids = open_ids(path)
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1
    assert TokenWindows(ids, context_length=4, stride=2)[1][1].tolist() == ids[3:7].tolist()
    alone, workers = (
        make_loader(ids, context_length=4, stride=2, batch_size=6, num_workers=number) for number in (0, 2)
    )
    workers.multiprocessing_context = "spawn"
    assert all(torch.equal(*pair) for both in zip(alone, workers, strict=True) for pair in zip(*both))


# As a program


def test_a_text_becomes_a_file(tmp_path):
    (tmp_path / "text.txt").write_text("Every effort moves you", encoding="utf-8")
    command = [sys.executable, "-W", "error", "-m", "utils.corpus", tmp_path / "text.txt", tmp_path / "ids.npy"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'ids.npy'}: 5 tokens, 138 bytes\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nowhere.txt", "ids.npy"], "nowhere.txt"), (["the_night_ferry.txt", "ids.txt"], "path must end in .npy")],
)
def test_bad_input_is_one_line(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert re.fullmatch(rf"python -m utils\.corpus: error: .*{said}.*\n", capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(corpus, "stream_text", lambda _: then(KeyboardInterrupt()))
    monkeypatch.chdir(tmp_path)
    assert main(["the_night_ferry.txt", "ids.npy"]) == 130
    assert capsys.readouterr() == ("", "interrupted: ids.npy was not written\n")
    assert list(tmp_path.iterdir()) == []
