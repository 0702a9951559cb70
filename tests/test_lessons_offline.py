"""Lessons need no network and leave nothing behind in the temporary folder."""

import json
import os
import subprocess
import sys

import matplotlib.font_manager  # this import builds Matplotlib's font cache where there is none yet
from lessons import code_cells, each_notebook, label, read, tags

# Plain Python, no kernel: the cells in order, each socket refused, whoever asks for one.
RUNNER = """
import json, sys

asked = []


def refuse(event, _):
    if event.startswith("socket."):
        asked.append(event)
        raise RuntimeError(f"a lesson asked for the network: {event}")


sys.addaudithook(refuse)
from IPython.display import display

names = {"__name__": "__main__", "display": display}
for label, source, may_raise in json.load(sys.stdin):
    try:
        exec(compile(source, label, "exec"), names)
    except Exception:
        if not may_raise:
            raise
assert not asked, asked
"""


@each_notebook
def test_runs_with_every_socket_refused_and_an_empty_temporary_folder(path, tmp_path):
    cells = [
        (f"{path.name}, {label(cell)}", cell.source, "raises-exception" in tags(cell))
        for cell in code_cells(read(path))
    ]
    folders = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
    # Matplotlib gets the cache that this process has made: where the home folder is read-only,
    # it would make one in the temporary folder, and say so on stderr.
    # torch makes an empty folder for compiled code when an optimizer is imported: not here either.
    caches = {"MPLCONFIGDIR": matplotlib.get_cachedir(), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path.parent / "inductor")}
    env = {**os.environ, **folders, **caches, "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(cells),
        cwd=path.parent,
        env=env,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == [], "files are left in the temporary folder"
