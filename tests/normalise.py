"""Run notebooks in fresh kernels, and remove what neither readers nor the comparison can use.

That is live widgets, and output streams in several parts:  python tests/normalise.py notebooks/*.ipynb
"""

import sys
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelClient, AsyncKernelManager
from kernel_waits import SlicedChannel
from nbclient import NotebookClient
from nbconvert.preprocessors import CoalesceStreamsPreprocessor


class Client(AsyncKernelClient):
    shell_channel_class = iopub_channel_class = SlicedChannel


class Manager(AsyncKernelManager):
    client_factory = Client


def renewed(path: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of a fresh kernel."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": path.parent}}
    NotebookClient(notebook, timeout=120, record_timing=False, kernel_manager_class=Manager, resources=where).execute()
    notebook, _ = CoalesceStreamsPreprocessor(enabled=True)(notebook, {})
    for cell in notebook.cells:
        if "live-slider" in cell.metadata.get("tags", []):
            cell.outputs = []
    return notebook


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        nbformat.write(renewed(path), path)
