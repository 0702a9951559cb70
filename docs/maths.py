"""Maths without a network: during the build KaTeX, run by Node, renders each formula as HTML and MathML.

One short run of Node per formula, rather than a server that renders them all: nothing is left running
when a build is stopped, and nothing times out on a busy machine.
"""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ConfigError
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

DIST = Path(__file__).resolve().parent / "node_modules" / "katex" / "dist"
SCRIPT = """
const [katex, mode] = process.argv.slice(1);
const formula = require("fs").readFileSync(0, "utf8");
try {
  process.stdout.write(require(katex).renderToString(formula, {displayMode: mode === "display"}));
} catch (error) {
  process.stderr.write(error.message);
  process.exitCode = 1;
}
"""
logger = logging.getLogger(__name__)


@cache
def render(formula: str, display: bool) -> str:
    """Return a formula as HTML with MathML; ValueError if KaTeX cannot read it."""
    command = ["node", "-e", SCRIPT, str(DIST / "katex.min.js"), "display" if display else "inline"]
    done = subprocess.run(command, input=formula, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout


def visit_math(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    display = isinstance(node, nodes.math_block)
    tag = "div" if display else "span"
    try:
        self.body.append(f'<{tag} class="math">{render(node.astext(), display)}</{tag}>')
    except ValueError as error:
        logger.warning("formula: %s", error, location=node)
    raise nodes.SkipNode


def copy_katex(app: Sphinx) -> None:
    """Put KaTeX's style sheet and fonts where the pages find them."""
    missing = [what for what, there in {"node": shutil.which("node"), str(DIST): DIST.exists()}.items() if not there]
    if missing:
        raise ConfigError(
            f"to render formulas, {' and '.join(missing)} is missing: install Node.js, then run `make docs`"
        )
    target = app.outdir / "_static" / "katex"
    shutil.copytree(
        DIST / "fonts", target / "fonts", ignore=shutil.ignore_patterns("*.ttf", "*.woff"), dirs_exist_ok=True
    )
    css = (DIST / "katex.min.css").read_text(encoding="utf-8")
    # Every current browser reads woff2: the other formats would only make the site larger.
    css = re.sub(r',url\([^)]+\.(?:woff|ttf)\) format\("\w+"\)', "", css)
    (target / "katex.min.css").write_text(css, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("katex", (visit_math, None), (visit_math, None))
    app.connect("builder-inited", copy_katex)
    app.add_css_file("katex/katex.min.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
