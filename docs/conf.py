"""How Sphinx builds the site; `make docs` runs it from the repository's root, so that notebooks are read in place."""

import os
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

about = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project = html_title = about["name"]
language = "en"
smartquotes = False  # in a course on tokens, "--" must not become a dash, nor straight quotes curly ones
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "data/README.md"]
exclude_patterns = [".*", "docs/_build", "docs/node_modules"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "maths",
    "sphinx_course",
]

# Notebooks: what is stored is what is shown.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
myst_heading_slug_func = "course.slug"

html_math_renderer = "katex"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
# Types of other projects: their indexes of names would have to be fetched.
nitpick_ignore_regex = [("py:.*", r"(torch|Tensor|numpy|np|tiktoken|matplotlib|Figure|collections|Path|pathlib)\b.*")]

copybutton_selector = "div.highlight pre:not(.cell_output *)"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["course.css"]
html_js_files = [("course.js", {"defer": "defer"})]
html_favicon = "_static/logo.svg"
html_extra_path = ["_extra"]
html_show_copyright = html_show_sphinx = False
html_use_index = html_domain_indices = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "home_page_in_toc": True,
    "navbar_persistent": [],
    "use_download_button": False,  # it offers formats that do not work; article-header-buttons.html has our own
    "use_fullscreen_button": False,
    "back_to_top_button": False,  # it would cover the text
    "show_toc_level": 2,
    "footer_content_items": ["extra-footer.html"],
    "extra_footer": "<p>Lessons and figures: CC BY 4.0. Code: Apache-2.0.</p>",
}

# Binder fetches the course from a public address: without one there is no such button. Colab fetches
# the notebook alone, without utils/ and data/, so its button would not work.
if repository := os.environ.get("REPOSITORY_URL"):
    html_theme_options |= {
        "repository_url": repository,
        "repository_branch": os.environ.get("REPOSITORY_BRANCH", "main"),
        "use_repository_button": True,
        "launch_buttons": {
            "binderhub_url": "https://mybinder.org",
            "notebook_interface": "jupyterlab",
        },
    }
