"""Read by every kernel of the environment into which the course is installed, whatever starts it.

One thread is what a lesson needs: its tensors are small, and several threads wait for each other longer
than they compute, the more so where other programs keep the cores busy. In the folder of the lessons, a
NameError in one that was not begun at its first cell is explained.
"""

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
if Path("00_the_whole_route.ipynb").exists():  # other projects may have a package of the name utils
    get_config().InteractiveShellApp.extensions.append("utils.workbook.jupyter")  # noqa: F821
