"""What the course adds to Jupyter: a hook for saving, and a kinder NameError. etc/ has the settings that name them."""

from pathlib import Path
from types import TracebackType
from typing import Any

WIDGET = "application/vnd.jupyter.widget-view+json"
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
    notebook["metadata"].get("language_info", {}).pop("version", None)
    if notebook["metadata"].get("widgets"):  # the state was saved as well
        return
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if WIDGET in output.get("data", {}):
                output["data"] = {"text/plain": AGAIN}


def load_ipython_extension(shell: Any) -> None:
    """Let IPython's shell explain a NameError in a lesson whose first code cell has not been run."""
    shell.set_custom_exc((NameError,), _explain)


def _explain(shell: Any, kind: type, error: NameError, trace: TracebackType, tb_offset: int | None = None) -> None:
    # Each lesson's first code cell imports plots, and a kernel's folder is that of its notebook.
    if "plots" not in shell.user_ns and any(Path().glob("00_*.ipynb")):
        error._render_traceback_ = lambda: [f"NameError: {error}. {FIRST}"]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
