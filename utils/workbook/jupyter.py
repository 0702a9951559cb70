"""What the course adds to Jupyter: a hook for saving, and a kinder NameError. etc/ has the settings that name them."""

import ast
import json
from types import TracebackType
from typing import Any

from utils.workbook.saved import lesson_files

WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
AGAIN = "Run this cell again to get its slider back."
FIRST = "Run the lesson's first code cell, and those after it, before this one."


def before_saving(model: dict[str, Any], **_: Any) -> None:
    """Change a notebook that is about to be saved, so that the file holds only what can be shown tomorrow.

    A slider lives only as long as its kernel; what the file would keep is shown as an error. The version of Python is
    left out, as in the stored lessons: a lesson that was merely opened is saved as it was.

    Args:
        model: what Jupyter's server is about to save, changed in place.
    """
    if model.get("type") != "notebook":
        return
    notebook = model["content"]
    (notebook["metadata"].get("language_info") or {}).pop("version", None)
    kept = notebook["metadata"].get("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.get("cells", []):
        for output in cell.get("outputs", []):
            data = output.get("data") or {}
            if WIDGET in data and data[WIDGET].get("model_id") not in kept:
                del data[WIDGET]
                if "".join(data.get("text/plain", "")).startswith("interactive("):
                    data["text/plain"] = AGAIN


def load_ipython_extension(shell: Any) -> None:
    """Let IPython's shell explain a NameError in a lesson whose first code cell has not been run."""
    shell.set_custom_exc((NameError,), _explain)


def _explain(shell: Any, kind: type, error: NameError, trace: TracebackType, tb_offset: int | None = None) -> None:
    # Each lesson's first code cell imports plots.
    if "plots" not in shell.user_ns and error.name in _names_of_first_cells():
        error._render_traceback_ = lambda: [f"NameError: {error}. {FIRST}"]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _names_of_first_cells() -> set[str]:
    """Return what the first code cells of all lessons import."""
    names = set()
    for path in lesson_files().values():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        imports = (node for node in ast.walk(ast.parse(first)) if isinstance(node, ast.Import | ast.ImportFrom))
        names |= {alias.asname or alias.name for node in imports for alias in node.names}
    return names
