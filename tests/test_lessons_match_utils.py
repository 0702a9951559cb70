"""Each lesson is run once: it needs no network, its solutions pass, and what it builds is what utils has."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from comparisons import COMPARE
from lessons import NOTEBOOKS, rule
from run_lesson import definitions

RUN_LESSON = Path(__file__).with_name("run_lesson.py")


@rule
def test_a_lesson_run_once(path):
    # torch makes an empty folder for compiled code when an optimizer is imported: it gets a folder of its own.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as compiled:
        own = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
        own |= {"TORCHINDUCTOR_CACHE_DIR": compiled, "PYTHONUTF8": "1"}
        command = [sys.executable, str(RUN_LESSON), str(path)]
        done = subprocess.run(command, cwd=path.parent, env=os.environ | own, capture_output=True, encoding="utf-8")
        yield from ((left, "it is left in the temporary folder") for left in os.listdir(folder))
    if done.returncode:
        yield "the run", done.stderr
        return
    if done.stderr:
        yield "stderr", done.stderr
    yield from json.loads(done.stdout)


def test_no_comparison_is_idle():
    idle = COMPARE.keys() - {name for path in NOTEBOOKS for name in definitions(path)}
    assert not idle, f"no lesson defines {sorted(idle)}"
