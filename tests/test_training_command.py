"""`python -m utils.training`, in one process and under torchrun: what it writes, and how it says what is wrong."""

import contextlib
import importlib.util
import math
import os
import re
import subprocess

import numpy as np
import pytest
import torch
from lessons import ROOT
from models import some_ids
from processes import together

from utils.batches import make_loader
from utils.gpt import generate
from utils.pretrained import load_gpt2
from utils.tokenizer import text_to_ids
from utils.training import evaluate, torchrun
from utils.training.__main__ import main

__all__ = ["together"]  # a fixture
pytestmark = pytest.mark.usefixtures("one_thread")
TINY = ["--emb-dim=4", "--n-layers=1", "--n-heads=2", "--context-length=4", "--batch-size=2", "--steps=2"]
TINY += ["--evaluate-every=1", "--vocab-size=7"]
FIRST = r"processes: 1 \(cpu\), windows per step: 2"
LINE = r"step \d+: held-out loss \d+\.\d{3}"


def saved(folder, ids, name="ids.npy", dtype=np.uint16):
    np.save(folder / name, np.asarray(ids).astype(dtype))
    return f"--ids={folder / name}"


def written(folder, content, name):
    (folder / name).write_bytes(content)
    return str(folder / name)


@pytest.fixture
def ids(tmp_path):
    return saved(tmp_path, np.arange(100) % 7)


def test_a_text_becomes_a_model_that_generates(tmp_path, capsys):
    text = written(tmp_path, b"One small step after the other, and then the next one.\n", "text.txt")
    folder = tmp_path / "a" / "model"
    assert main(["--text", text, "--out", str(folder), *TINY, "--vocab-size=50257"]) == 0
    out, err = capsys.readouterr()
    first, *lines, last = out.splitlines()
    assert re.fullmatch(FIRST, first)
    assert [re.fullmatch(LINE, line) is not None for line in lines] == [True] * 3
    assert float(lines[0].split()[-1]) == pytest.approx(math.log(50257), abs=0.1)
    assert (last, err) == (f"written: load_gpt2({str(folder)!r}) reads it", "")
    model = load_gpt2(folder)
    assert (model.config.vocab_size, model.config.context_length, model.config.n_layers) == (50257, 4, 1)
    assert generate(model, text_to_ids("One").unsqueeze(0), 3).shape == (1, 4)


def test_ids_become_the_model_that_was_trained(ids, tmp_path, capsys):
    arguments = [ids, "--lr", "0.05", "--seed", "3", *TINY, "--steps", "40"]
    assert main([*arguments, "--out", str(tmp_path / "one")]) == 0
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert losses[0] == pytest.approx(math.log(7), abs=0.1)
    assert losses[-1] < losses[0] - 0.3, "after one number, always the same one comes"
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["config.json", "model.safetensors"]
    model = load_gpt2(tmp_path / "one")
    held_out = make_loader(np.arange(90, 100) % 7, context_length=4, stride=4, batch_size=2, drop_last=False)
    assert evaluate(model, held_out) == pytest.approx(losses[-1], abs=6e-4)
    assert main([*arguments, "--out", str(tmp_path / "one")]) == 0
    assert all(map(torch.equal, model.parameters(), load_gpt2(tmp_path / "one").parameters()))


def test_two_windows_are_enough(tmp_path):
    for num_tokens, status in ((10, 0), (9, 2)):
        assert main([saved(tmp_path, np.arange(num_tokens) % 7), "--out", str(tmp_path / "model"), *TINY]) == status


def test_hugging_face_computes_the_same(ids, tmp_path):
    from transformers import GPT2LMHeadModel, logging

    logging.disable_progress_bar()
    assert main([ids, "--out", str(tmp_path / "model"), *TINY]) == 0
    theirs, ours = GPT2LMHeadModel.from_pretrained(tmp_path / "model").eval(), load_gpt2(tmp_path / "model")
    torch.testing.assert_close(theirs(some_ids(2, 4, vocab_size=7)).logits, ours(some_ids(2, 4, vocab_size=7)))


def test_a_flag_wins_over_the_file_and_the_file_over_the_default(ids, tmp_path, capsys):
    config = written(tmp_path, b"\xef\xbb\xbfn_layers = 3\nsteps = 1\nbatch_size = 4\nlr = 1\n", "some.toml")
    flags = [flag for flag in TINY if not flag.startswith(("--n-layers", "--batch-size"))]
    assert main([ids, "--config", config, "--out", str(tmp_path / "model"), *flags]) == 0
    assert load_gpt2(tmp_path / "model").config.n_layers == 3
    assert re.search(r"per step: 4\n(.*\n){3}written", capsys.readouterr().out)


def test_a_run_that_was_stopped_goes_on_or_is_refused(ids, tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    arguments = [ids, "--out", str(tmp_path / "model"), *TINY, "--checkpoint-every=1", "--evaluate-every=2"]
    with monkeypatch.context() as patch:
        patch.setattr("utils.pretrained.save_gpt2", full)
        assert main(arguments) == 2
    assert capsys.readouterr().err.endswith("error: No space left on device\n")
    changed = np.arange(100) % 7
    changed[50] += 1
    others = [saved(tmp_path, changed, "other.npy"), *arguments[1:], "--seed=1", "--timeout=9", "--stride=4"]
    assert main(others) == 2
    said = capsys.readouterr().err
    assert "another run: seed was 0 and is 1; checksum was" in said
    assert "timeout" not in said
    assert "stride" not in said, "4 is context_length, the default"
    assert main(arguments) == 0
    assert re.fullmatch(rf"{FIRST}\nwritten: .*\n", capsys.readouterr().out), "all steps had been done"


IDS = np.arange(30) % 7
BAD = {
    "nothing": (lambda path: [], "one of the arguments --ids --text is required"),
    "missing": (lambda path: ["--text=nowhere.txt"], "nowhere.txt"),
    "missing ids": (lambda path: ["--ids=nowhere.npy"], "nowhere.npy"),
    "no text": (lambda path: ["--text", written(path, b"\x89PNG\xff", "picture.png")], "not UTF-8"),
    "short": (lambda path: ["--text", written(path, b"!", "a.txt")], "1 tokens.*context_length 4 .*10"),
    "no ids": (lambda path: ["--ids", written(path, b"hello", "some.npy")], "not a .npy file"),
    "too large": (lambda path: [saved(path, np.arange(30))], "IDs up to 29: vocab_size 7 "),
    "no config": (lambda path: [saved(path, IDS), "--config=nowhere.toml"], "nowhere.toml"),
    "no toml": (lambda path: [saved(path, IDS), "--config", written(path, b"{}", "a.toml")], "a.toml is not .* TOML"),
    "unknown": (lambda path: [saved(path, IDS), "--config", written(path, b"layers = 2", "a.toml")], "layers is not a"),
    "a string": (
        lambda path: [saved(path, IDS), "--config", written(path, b"seed = '2'", "a.toml")],
        r"a\.toml: seed must be an integer, not '2'",
    ),
    "heads": (lambda path: [saved(path, IDS), "--n-heads", "3"], "emb_dim 4 .* n_heads 3"),
    "steps": (lambda path: [saved(path, IDS), "--steps", "0"], "steps must be at least 1"),
    "context_length": (lambda path: [saved(path, IDS), "--context-length", "-1"], "context_length"),
    "seed": (lambda path: [saved(path, IDS), "--seed", str(2**65)], "Overflow|seed"),
    "timeout": (lambda path: [saved(path, IDS), "--timeout", "0"], "timeout must be from 1 to"),
    "diverges": (lambda path: [saved(path, IDS), "--lr", "1e39"], "step 2 of 2.*smaller lr"),
    "out": (lambda path: [saved(path, IDS), "--out", written(path, b"", "some")], "some is not a folder"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_trained_on_is_one_line(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments, said = BAD[kind]
    with contextlib.suppress(SystemExit):  # argparse
        assert main(["--out", "model", *TINY, *arguments(tmp_path)]) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"python -m utils\.training: error: .*({said}).*", last), last
    assert not (tmp_path / "model").exists()


def test_without_safetensors_it_is_said_before_anything_is_done(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "safetensors" else name)
    assert main(["--text=nowhere.txt", "--out", str(tmp_path / "model")]) == 2
    assert re.fullmatch(r".*safetensors.*pip install.*pretrained.*\n", capsys.readouterr().err)


def test_an_interrupt_is_one_line_and_nothing_is_written(ids, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("utils.training.loop.evaluate", interrupted)
    assert main([ids, "--out", str(tmp_path / "model"), *TINY]) == 130
    assert capsys.readouterr().err == "interrupted. The same line goes on from the last checkpoint, if there is one\n"
    assert not (tmp_path / "model").exists()


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "ids.npy", some_ids(300, vocab_size=50).numpy().astype(np.uint16))
    settings = {"vocab_size": 50, "context_length": 8, "emb_dim": 8, "n_heads": 2, "n_layers": 1, "drop_rate": 0.2}
    settings |= {"steps": 25, "evaluate_every": 25, "checkpoint_every": 10, "timeout": 20}
    config = "\n".join(f"{name} = {value}" for name, value in settings.items())
    (tmp_path / "tiny.toml").write_text(config, encoding="utf-8")
    return ["--ids", str(tmp_path / "ids.npy"), "--config", str(tmp_path / "tiny.toml")]


def test_torchrun_starts_a_killed_run_again_which_ends_the_same(files, tmp_path, together):
    script = ["--max-restarts=1", f"--log-dir={tmp_path / 'logs'}", str(ROOT / "tests" / "killed_once.py")]
    command = torchrun(2, *script, *files, "--out", str(tmp_path / "killed"))
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": ROOT})
    assert found.returncode == 0, found.stderr
    assert together(main, [*files, "--out", str(tmp_path / "undisturbed")]) == [0, 0]
    models = [load_gpt2(tmp_path / name) for name in ("killed", "undisturbed")]
    assert all(map(torch.equal, *[model.parameters() for model in models]))
    first = "processes: 2 (cpu), windows per step: 8\n"
    assert re.fullmatch(rf"{re.escape(first)}step 0: .*\n{re.escape(first)}step 25: .*\nwritten: .*\n", found.stdout)
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == ["config.json", "model.safetensors"]
