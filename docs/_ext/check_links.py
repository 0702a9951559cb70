"""Check a built site: every link within it leads somewhere, and nothing is loaded from another host.

python docs/_ext/check_links.py docs/_build/html
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """A page's anchors, and its addresses: those that a reader follows, and those that the browser loads itself."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.followed: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if "href" in values:
            followed = tag == "a" or (tag == "link" and values.get("rel") in ("next", "prev", "canonical"))
            (self.followed if followed else self.loaded).append(values["href"])
        self.loaded += [values[name] for name in ("src", "poster", "data") if name in values]
        self.loaded += [part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()]
        self.loaded += _style_urls(values.get("style", ""))
        if values.get("http-equiv") == "refresh":
            self.followed.append(values["content"].partition("url=")[2])


def _style_urls(css: str) -> list[str]:
    """The addresses in a style sheet, except those of pictures that it contains itself."""
    found = re.findall(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""", css)
    return [address for pair in found for address in pair if address and not address.startswith("data:")]


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong in a built site, one address at a time."""
    # _static/ also holds parts of templates, which are not pages.
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if site / "_static" not in path.parents}
    if not pages:
        yield f"{site}: there is no page"
    for path, page in pages.items():
        for addresses, loaded in ((page.followed, False), (page.loaded, True)):
            for address in addresses:
                if what := _problem(address, path, site, pages, loaded):
                    yield f"{path.relative_to(site)}: {address}: {what}"
    for path in sorted(site.rglob("*.css")):
        for address in _style_urls(path.read_text(encoding="utf-8")):
            if what := _problem(address, path, site, pages, loaded=True):
                yield f"{path.relative_to(site)}: {address}: {what}"


def _problem(address: str, origin: Path, site: Path, pages: dict[Path, Page], loaded: bool) -> str | None:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return "it is loaded from another host" if loaded and parts.scheme != "data" else None
    target = (origin.parent / unquote(parts.path)).resolve() if parts.path else origin
    if parts.path.startswith("/"):  # on the page for unknown addresses: below the folder that the site is published in
        tails = (unquote(parts.path).lstrip("/").split("/", below)[-1] for below in range(parts.path.count("/")))
        target = next((site / tail for tail in tails if (site / tail).is_file()), site / "missing")
    if not target.is_file():
        return "there is no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors | {"top"}:
        return "there is no such anchor on the page"
    return None


if __name__ == "__main__":
    wrong = [*problems(Path(sys.argv[1]).resolve())]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
