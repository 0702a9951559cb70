"""How Sphinx builds the site; `make docs` runs it from the repository's root, so that notebooks are read in place."""

import os
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent)]

from api import file_of  # noqa: E402

about = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project = about["name"]
language = "en"
smartquotes = False  # in a course on tokens, "--" must not become a dash, nor straight quotes curly ones
default_role = "code"  # docstrings write code between single backticks
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "data/README.md"]
exclude_patterns = [".*", "docs/_build"]

extensions = [
    "api",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "maths",
    "content",
    "landing",
    "glossary",
    "site_search",
    "cells",
    "code_lines",
    "lesson_page",
    "sliders",
    "questions",
    "about",
    "book",
]

# Notebooks: what is stored is what is shown.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
myst_heading_slug_func = "course.slug"

html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
# Types of other projects: their indexes of names would have to be fetched.
nitpick_ignore_regex = [("py:.*", r"(torch|Tensor|numpy|np|tiktoken|matplotlib|Figure|collections|Path|pathlib)\b.*")]

copybutton_selector = "div.highlight pre:not(.cell_output *)"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["course.css", ("print.css", {"media": "print"})]
html_js_files = [(name, {"defer": "defer"}) for name in ("course.js", "print.js")]
html_favicon = "_static/logo.svg"
html_extra_path = ["_extra"]
html_show_copyright = html_show_sphinx = False
html_sourcelink_suffix = ""  # a downloaded notebook keeps its name
html_use_index = html_domain_indices = False
html_theme_options = {
    "top_of_page_buttons": [],  # the links to the source are at the end, in words
    "light_css_variables": {
        "color-brand-primary": "#00588a",
        "color-brand-content": "#00588a",
        "color-brand-visited": "#6b3f87",
        "asks": "#8a4b00",  # a question
        "asks-ground": "#fff6e0",
        "turn": "#00664c",  # the reader's turn
        "turn-ground": "#eef8f3",
        "code-line": "#9cc4e0",
        "figures": "none",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc4f2",
        "color-brand-content": "#7cc4f2",
        "color-brand-visited": "#d3a6ee",
        "asks": "#ffc266",
        "asks-ground": "#2b2416",
        "turn": "#6fd3ab",
        "turn-ground": "#14261f",
        "code-line": "#2f5f80",
        "figures": "invert(1) hue-rotate(180deg)",  # dark paper; each colour keeps its hue
    },
}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-dark"

# The links to the source and for mistakes need the repository's address, Binder's button too. (Colab fetches the
# notebook alone, without utils/ and data/.) Social cards and the sitemap need the site's.
repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")
html_context = {"repository": repository, "branch": os.environ.get("REPOSITORY_BRANCH", "main")}
if repository:
    extensions.append("sphinx.ext.linkcode")
html_baseurl = os.environ.get("SITE_URL", "").rstrip("/") + "/" if os.environ.get("SITE_URL") else ""
extensions.append("notfound.extension")
notfound_urls_prefix = urlsplit(html_baseurl).path or "/"
notfound_template = "404.html"
if html_baseurl:
    extensions.append("sphinx_sitemap")
    sitemap_url_scheme = "{link}"
    sitemap_excludes = ["404.html", "search.html"]


def linkcode_resolve(domain: str, info: dict) -> str:
    """Return where the source of a part of utils is."""
    return f"{repository}/blob/{html_context['branch']}/{file_of(info['module']).as_posix()}"
