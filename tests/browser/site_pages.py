"""The built site, served on this machine, and a page of it as a reader sees it."""

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from lessons import ROOT
from playwright.sync_api import BrowserContext, Request, Response, Route

SITE = Path(os.environ.get("SITE_DIR", ROOT / "docs" / "_build" / "html"))
REDIRECT = 'http-equiv="refresh"'
WIDTHS, SCHEMES = (390, 1440), ("light", "dark")


def pages() -> list[str]:
    """Names of all pages that a reader can land on."""
    found = (path for path in sorted(SITE.rglob("*.html")) if not path.is_relative_to(SITE / "_static"))
    return [path.relative_to(SITE).as_posix() for path in found if REDIRECT not in path.read_text(encoding="utf-8")]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder to this machine alone, and yield its address."""
    handler = functools.partial(Quiet, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Shown:
    """A page of the site in a browser; it notes whatever goes wrong."""

    def __init__(self, context: BrowserContext, address: str, name: str) -> None:
        self.name = name
        self.complaints: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda said: said.type in ("error", "warning") and self._note("console", said.text))
        self.page.on("pageerror", lambda error: self._note("uncaught", error))
        self.page.on("requestfailed", self._note_failure)
        self.page.on("response", self._note_status)
        self.page.route(lambda url: urlsplit(url).hostname not in (None, "127.0.0.1"), self._refuse)
        self.page.goto(f"{address}/{name}", wait_until="networkidle")
        # Colours change gradually: the tests look at the final ones.
        self.page.add_style_tag(
            content="*, ::before, ::after { transition: none !important; animation: none !important }"
        )

    def _note(self, what: str, detail: object) -> None:
        self.complaints.append(f"{what}: {detail}")

    def _refuse(self, route: Route) -> None:
        self._note("asked of another host", route.request.url)
        route.abort()

    def _note_failure(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # given up by the browser itself, as for a page that is left
            self._note("not loaded", request.url)

    def _note_status(self, response: Response) -> None:
        if response.status >= 400:
            self._note(f"status {response.status}", response.url)

    def at(self, width: int, scheme: str) -> None:
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.page.wait_for_function("scheme => matchMedia(`(prefers-color-scheme: ${scheme})`).matches", arg=scheme)

    def unfold(self, unfolded: bool) -> None:
        self.page.evaluate("open => document.querySelectorAll('details').forEach(d => { d.open = open; })", unfolded)

    def barriers(self, text_contrast: bool = True) -> list[str]:
        """Return what axe-core complains about, with or without the contrast of what is in the article."""
        runs = [(None, {})]
        if not text_contrast:
            others = {"rules": {"color-contrast": {"enabled": False}}}
            runs = [(None, others), ({"exclude": [["article"]]}, {"runOnly": ["color-contrast"]})]
        runs = [Axe().run(self.page, context, options | {"resultTypes": ["violations"]}) for context, options in runs]
        found = [rule for run in runs for rule in run.response["violations"]]
        return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]
