"""Every stored text output counts: when one is changed, the comparison must fail; a user's settings change none."""

import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
from lessons import NOTEBOOKS, ROOT, code_cells, label, read, tags, texts

COMMAND = (
    "-m pytest --nbval --nbval-current-env --nbval-cell-timeout 120 -p kernel_waits -p no:xdist -p no:cacheprovider "
    "--color=no --junit-xml=report.xml"
)
FAILED = ("failure", "error")


def compared(nb):
    """Number -> code cell, for those whose outputs are compared."""
    return {i: cell for i, cell in enumerate(code_cells(nb)) if "nbval-ignore-output" not in tags(cell)}


def pytest_generate_tests(metafunc):
    if "k" not in metafunc.fixturenames:
        return
    # Copy k of a notebook has the k-th text of each cell changed: few runs for many outputs.
    counts = [max(len(texts(cell)) for cell in compared(read(path)).values()) for path in NOTEBOOKS]
    copies = [(path, k) for path, count in zip(NOTEBOOKS, counts) for k in range(count)]
    if not metafunc.config.getoption("--all-outputs"):
        copies = copies[:1]
    metafunc.parametrize(("path", "k"), copies, ids=[f"{path.stem}-{k}" for path, k in copies])


def test_a_changed_output_is_noticed(path: Path, k: int, tmp_path: Path):
    nb = copy.deepcopy(read(path))
    changed = {number: cell for number, cell in compared(nb).items() if len(texts(cell)) > k}
    for cell in changed.values():
        holder, key = texts(cell)[k]
        holder[key] = other(holder[key])
    nbformat.write(nb, tmp_path / path.name)
    failures = compare(tmp_path / path.name)
    assert len(failures) == len(code_cells(nb)), "nbval did not go through all cells"
    alarms = [label(cell) for number, cell in enumerate(code_cells(nb)) if failures[number] and number not in changed]
    assert not alarms, f"{path.name}: nothing was changed, and yet nbval objects to the cells {alarms}"
    missed = [label(cell) for number, cell in changed.items() if "Cell outputs differ" not in failures[number]]
    assert not missed, f"{path.name}: a changed output went unnoticed in the cells {missed}"


def test_a_users_settings_change_no_output(tmp_path: Path, monkeypatch):
    files = {
        "profile_default/ipython_config.py": 'get_config().InteractiveShell.ast_node_interactivity = "all"',
        "profile_default/startup/start.py": "started = True",
        "start.py": "started = True",
        "matplotlibrc": "text.usetex: True",
    }
    for name, content in files.items():
        (tmp_path / "user" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "user" / name).write_text(content, encoding="utf-8")
    for variable, name in {"IPYTHONDIR": "", "PYTHONSTARTUP": "start.py", "MATPLOTLIBRC": "matplotlibrc"}.items():
        monkeypatch.setenv(variable, str(tmp_path / "user" / name))
    source = 'import matplotlib\n"not the last"\n"started" in globals(), matplotlib.rcParams["text.usetex"]'
    output = nbformat.v4.new_output("execute_result", {"text/plain": "(False, False)"}, execution_count=1)
    cell = nbformat.v4.new_code_cell(source, outputs=[output], execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "lesson.ipynb")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    assert compare(tmp_path / "lesson.ipynb") == [""]


def other(text: str) -> str:
    """The text with its last visible character, or its end, changed."""
    bare = text.rstrip()
    return bare[:-1] + ("~" if bare[-1:] != "~" else "!") + text[len(bare) :]


def compare(notebook: Path) -> list[str]:
    """Compare a notebook's outputs in a process of its own; for each code cell its failure, or ''."""
    (notebook.parent / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # none of our own settings
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, *COMMAND.split(), notebook.name],
        cwd=notebook.parent,
        env={**env, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    report = notebook.parent / "report.xml"
    assert report.exists(), done.stdout + done.stderr
    cases = ElementTree.parse(report).iter("testcase")
    return ["".join(f"{bad.get('message')} {bad.text}" for bad in case if bad.tag in FAILED) for case in cases]
