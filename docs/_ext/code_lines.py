"""Code whose long lines wrap under themselves: what Python says by indentation must stay readable on a phone."""

import re
from collections.abc import Iterator

from pygments.formatters import HtmlFormatter
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge


class HangingLines(HtmlFormatter):
    """Writes each line as an element that knows its indentation; course.css lets it hang."""

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        return super().wrap(map(self._line, source))

    def _line(self, part: tuple[int, str]) -> tuple[int, str]:
        is_code, html = part
        text = re.sub(r"<.*?>", "", html)
        spaces = len(text) - len(text.lstrip(" "))
        look = f' style="--indent: {spaces}ch"' if spaces else ""
        return (1, f'<span class="code-line"{look}>{html}</span>') if is_code else part


def setup(app: Sphinx) -> dict[str, bool]:
    PygmentsBridge.html_formatter = HangingLines
    return {"parallel_read_safe": True, "parallel_write_safe": True}
