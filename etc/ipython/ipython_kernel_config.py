"""Read by every kernel of the environment into which the course is installed, whatever starts it.

One thread is what a lesson needs: its tensors are small, and several threads wait for each other longer
than they compute, the more so where other programs keep the cores busy. The extension explains a
NameError in a lesson that was not begun at its first cell.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
get_config().InteractiveShellApp.extensions.append("utils.workbook.jupyter")  # noqa: F821
