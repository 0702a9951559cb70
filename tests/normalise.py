"""Take what no reader and no comparison can use out of run notebooks: live widgets, and streams in two parts.

python tests/normalise.py notebooks/*.ipynb
"""

import sys

import nbformat
from nbconvert.preprocessors.coalescestreams import coalesce_streams

for path in sys.argv[1:]:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            live = "live-slider" in cell.metadata.get("tags", [])
            cell.outputs = [] if live else coalesce_streams(cell.outputs)
    nbformat.write(notebook, path)
