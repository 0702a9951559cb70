"""JupyterLab as a reader sees it: open a lesson, run it, type, read what is shown."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from lessons import ROOT
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request
from playwright.sync_api import TimeoutError as BrowserTimeout

NOTEBOOK = "window.jupyterapp?.shell?.currentWidget"
IDLE = f"{NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'"
# What a widget shows. JupyterLab shows no alt text: it is read from the model of the inner output area.
LIVE = f"""index => {{
    const areas = [];
    const walk = widget => {{
        if (widget.node.classList.contains("jp-OutputArea") && widget.model?.toJSON) areas.push(widget);
        for (const child of widget.children?.() ?? []) walk(child);
    }};
    walk({NOTEBOOK}.content.widgets[index]);
    const inner = areas.slice(1);
    const outputs = inner.flatMap(area => area.model.toJSON());
    const pictures = area => [...area.node.querySelectorAll("img")].map(img => img.src);
    return {{
        shown: inner.map(area => area.node.innerText + pictures(area)).join("\\n"),
        words: outputs.map(output => output.data?.["text/plain"] ?? output.text).join("\\n"),
    }};
}}"""


def opened_by(server: subprocess.Popen, log: Path, seconds: float = 120) -> str:
    """Wait until the server prints what it would open in a browser, and return that address."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        if said := re.search(r"^file://\S+$", log.read_text(encoding="utf-8"), re.MULTILINE):
            return said[0]
        time.sleep(0.1)
    raise AssertionError(f"`make lab` ended or opened nothing within {seconds} s:\n{log.read_text(encoding='utf-8')}")


def wait(page: Page, what: str, condition: str, argument: object = None, seconds: float = 30) -> None:
    """Wait until a condition in the page holds; say what was waited for if it never does."""
    try:
        page.wait_for_function(condition, arg=argument, timeout=seconds * 1000)
    except BrowserTimeout:
        raise AssertionError(f"waited {seconds} s in vain: {what}") from None


class Lab:
    """The server, as seen by one browser."""

    def __init__(self, context: BrowserContext, opened: str) -> None:
        self.context = context
        self.complaints: list[str] = []
        context.on("request", self._note_request)
        context.on("weberror", lambda error: self.complaints.append(f"uncaught: {error.error}"))
        page = context.new_page()
        page.goto(opened)
        page.wait_for_url("**/lab/**")
        self.address = page.url.partition("/lab")[0]
        self.first = Lesson(page)  # it came with the token, which is a cookie from here on

    def open(self, name: str) -> "Lesson":
        page = self.context.new_page()
        page.goto(f"{self.address}/lab/tree/{name}?reset")  # without the previous lesson's tabs
        return Lesson(page)

    def _note_request(self, request: Request) -> None:
        if urlsplit(request.url).hostname not in (None, "127.0.0.1"):  # None: data and blobs
            self.complaints.append(f"asked of another host: {request.url}")


class Lesson:
    """A notebook in a page of its own."""

    def __init__(self, page: Page) -> None:
        self.page = page
        wait(page, "a notebook is open and its kernel idle", f"{NOTEBOOK}?.context?.isReady && {IDLE}", seconds=60)

    @property
    def path(self) -> str:
        return self.page.evaluate(f"{NOTEBOOK}.context.path")

    def model(self) -> NotebookNode:
        """Return the notebook as it is in the page, in the form in which it would be saved."""
        nb = nbformat.v4.reads(self.page.evaluate(f"JSON.stringify({NOTEBOOK}.content.model.toJSON())"))
        return CoalesceStreamsPreprocessor(enabled=True)(nb, {})[0]

    def cell(self, index: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def run_all(self) -> None:
        # The promise alone is not enough: after an error it is resolved before the kernel is done.
        start = "jupyterapp.commands.execute('notebook:run-all-cells').finally(() => { window.allRun = true; })"
        self.page.evaluate(f"() => {{ {start}; }}")
        wait(self.page, "all cells have run", f"window.allRun && {IDLE}", seconds=180)

    def type(self, index: int, code: str) -> None:
        """Replace a cell's code, through the editor."""
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(code)
        source = self.page.evaluate(f"index => {NOTEBOOK}.content.model.cells.get(index).sharedModel.source", index)
        assert source == code, f"the editor changed it:\n{source}"

    def run_selected(self, index: int) -> None:
        """Press Shift+Enter, and wait until the cell at that index, which is selected, has run again."""
        count = f"{NOTEBOOK}.content.model.cells.get(index).executionCount"
        before = self.page.evaluate(f"index => {count}", index)
        self.page.keyboard.press("Shift+Enter")
        done = f"([index, before]) => {count} > before && {IDLE}"
        wait(self.page, f"cell {index} has run", done, [index, before], seconds=120)

    def answer(self, index: int, code: str) -> str:
        """Type an answer into a stub, run it and the check below it, and return what the check shows."""
        self.type(index, code)
        self.run_selected(index)
        self.run_selected(index + 1)  # Shift+Enter has gone on to it
        return " ".join(self.cell(index + 1).locator(".jp-OutputArea-output").inner_text().split())

    def live(self, index: int) -> dict:
        """Return what a cell's widget shows (text and pictures), and the words of its outputs."""
        return self.page.evaluate(f"index => ({LIVE})(index)", index)

    def wait_for_live(self, index: int, what: str, changed_from: dict | None = None, words: str | None = None) -> None:
        """Wait until both what a widget shows and its words have changed, or until it has these words."""
        done = f"""([index, before, words]) => {{
            const now = ({LIVE})(index);
            return now.shown && now.words
                && (before === null || (now.shown !== before.shown && now.words !== before.words))
                && (words === null || now.words === words);
        }}"""
        wait(self.page, what, done, [index, changed_from, words])

    def save(self) -> None:
        self.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        wait(self.page, "the notebook is saved", f"!{NOTEBOOK}.content.model.dirty")

    def close(self) -> None:
        self.page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
        self.page.close()


@contextlib.contextmanager
def opened(chromium: Browser, base: Path, target: str = "lab") -> Iterator[Lab]:
    """JupyterLab, opened by make; the learner's own copies and settings are in a folder outside the checkout."""
    settings = base.with_name(f"{base.name} settings")
    settings.mkdir(exist_ok=True)
    log = settings / "log"
    own_folders = {
        name: str(settings / name.lower())
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
    options = "--ip=127.0.0.1 --port=0 --allow-root --LabApp.expose_app_in_browser=True"
    with log.open("wb") as output:
        server = subprocess.Popen(
            ["make", target, f"BASE={base}", f"LAB_ARGS={options}"],
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
