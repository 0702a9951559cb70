"""Formulas as MathML, which every current browser typesets by itself, without a script or a font of ours."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def mathml(formula: str, display: bool) -> str:
    """Return a formula as MathML; ValueError if it has a command that is not known, or a brace without its partner."""
    # The converter knows `split`, which looks the same as `aligned`, and an underscore in words only without its "\\".
    known = re.sub(
        r"\\text\{.*?\}", lambda words: words[0].replace(r"\_", "_"), formula.replace("{aligned}", "{split}")
    )
    made = convert(known, display="block" if display else "inline")
    if unknown := re.findall(r"\\[A-Za-z]+", made):
        raise ValueError(f"{', '.join(unknown)} is not known")
    bare = re.sub(r"\\[{}]", "", formula)
    if bare.count("{") != bare.count("}"):
        raise ValueError("a brace has no partner")
    return made


def visit_math(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    display = isinstance(node, nodes.math_block)
    tag = "div" if display else "span"
    try:
        self.body.append(f'<{tag} class="math">{mathml(node.astext(), display)}</{tag}>')
    except ValueError as error:
        logger.warning("formula: %s", error, location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
