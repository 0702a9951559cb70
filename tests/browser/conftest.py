"""The browser, and the server that `make lab` starts: one of each for all tests of a worker."""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest
from chrome import FLAGS, find_chrome, missing
from lab import Lab, opened_by
from lessons import ROOT
from playwright.sync_api import sync_playwright
from xdist.scheduler import LoadScopeScheduling

# JupyterLab shows and runs a copy of what a reader opens, so that utils can only come from the checkout.
NOT_COPIED = shutil.ignore_patterns(".*", "_build", "node_modules", "__pycache__", "*.egg-info", "utils", "tests")


class ByParameter(LoadScopeScheduling):
    """All tests of one lesson go to one worker, where they share its page."""

    def _split_scope(self, nodeid: str) -> str:
        _, bracket, parameter = nodeid.partition("[")
        return parameter if bracket else nodeid


def pytest_xdist_make_scheduler(config, log):
    return ByParameter(config, log)


@pytest.fixture(scope="session")
def chromium():
    if lacking := missing():
        pytest.fail(lacking, pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """JupyterLab as `make lab` opens it, on a copy of the checkout."""
    folder = tmp_path_factory.mktemp("lab")
    copy = shutil.copytree(ROOT, folder / "copy", ignore=NOT_COPIED)
    log = folder / "log"
    options = [
        "--ip=127.0.0.1 --port=0 --allow-root --LabApp.expose_app_in_browser=True",
        f"--FileContentsManager.root_dir='{copy}' --MappingKernelManager.root_dir='{copy}'",
    ]
    own_folders = {
        name: str(folder / name.lower())
        for name in (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_RUNTIME_DIR",
            "JUPYTERLAB_SETTINGS_DIR",
            "JUPYTERLAB_WORKSPACES_DIR",
        )
    }
    # Instead of opening a browser, the server prints what it would have opened.
    environment = {**os.environ, **own_folders, "BROWSER": "echo %s", "OMP_NUM_THREADS": "1"}
    for inherited in ("MAKEFLAGS", "MAKELEVEL"):  # of the `make test-browser` that runs these tests
        environment.pop(inherited, None)
    with log.open("wb") as output:
        server = subprocess.Popen(
            ["make", "lab", "LAB_ARGS=" + " ".join(options)],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Lab(chromium.new_context(viewport={"width": 1280, "height": 900}), opened_by(server, log))
    finally:
        end(server)


def end(server: subprocess.Popen) -> None:
    """End make and all that it started; the server ends its kernels itself."""
    with contextlib.suppress(ProcessLookupError):  # it failed, and all of them have ended already
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
