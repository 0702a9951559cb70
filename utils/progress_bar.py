"""A progress bar that leaves nothing behind, neither in a terminal nor in a stored notebook."""

import contextlib
import sys
from collections.abc import Iterator

from tqdm import tqdm


@contextlib.contextmanager
def progress_bar(total: int | None, progress: bool, unit: str = " steps") -> Iterator[tqdm]:
    # Not tqdm.auto: in a notebook it leaves a widget behind. A line of text can be cleared, but only if someone is
    # watching: programs that run a notebook, nbval among them, compare or store it. They do not allow input().
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        file, hidden = sys.stderr, None if progress else True  # None: hidden unless it is a terminal
    else:
        file, hidden = sys.stdout, not (progress and getattr(kernel, "_allow_stdin", False))
    try:
        with tqdm(total=total, unit=unit, unit_scale=unit == "B", leave=False, file=file, disable=hidden) as bar:
            yield bar
    finally:
        if hidden is False:
            shell.display_pub.clear_output()
