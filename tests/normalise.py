"""Remove from executed notebooks what neither a reader nor a comparison can use: live widgets and split streams.

python tests/normalise.py notebooks/*.ipynb
"""

import sys

import nbformat
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

for path in sys.argv[1:]:
    notebook = nbformat.read(path, as_version=4)
    notebook, _ = CoalesceStreamsPreprocessor(enabled=True)(notebook, {})
    for cell in notebook.cells:
        if "live-slider" in cell.metadata.get("tags", []):
            cell.outputs = []
    nbformat.write(notebook, path)
