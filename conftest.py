"""How the tests are run: with settings of their own, so that a user's change no result, and spread over workers."""

import os
import re
import tempfile

import pytest
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["kernel_waits"]
FOLDERS = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")


def pytest_configure(config: pytest.Config) -> None:
    """Set what the tests, and the kernels and programs that they start, find in their environment."""
    if hasattr(config, "workerinput"):  # a worker inherits it
        return
    folder = tempfile.TemporaryDirectory(prefix="text-to-attention-", ignore_cleanup_errors=True)
    settings = pytest.MonkeyPatch()
    config.add_cleanup(folder.cleanup)
    config.add_cleanup(settings.undo)
    for name in FOLDERS:
        settings.setenv(name, os.path.join(folder.name, name))
    for name in ("PYTHONSTARTUP", "JUPYTER_CONFIG_PATH"):  # IPython runs the first, too
        settings.delenv(name, raising=False)
    settings.setenv("MATPLOTLIBRC", os.devnull)
    # The list of fonts stays where a user has it: making one takes seconds where there are many fonts. It is made here
    # if there is none, because a lesson would say so on stderr. If the home folder is read-only, Matplotlib itself sets
    # MPLCONFIGDIR to a temporary folder.
    import matplotlib.font_manager  # noqa: F401


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest units of work come first, so that no worker is left alone with one at the end."""

    def order(item: pytest.Item) -> int:
        lesson = re.match(r"notebooks/(\d\d)_|.*::test_a_lesson_run_once\[(\d\d)_", item.nodeid)
        return -int(lesson[1] or lesson[2]) if lesson else 1

    items.sort(key=order)


class FilesAndLessons(LoadFileScheduling):
    """A worker takes a whole file, but of the lessons that are run whole, one at a time."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if "::test_a_lesson_run_once[" in nodeid else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FilesAndLessons(config, log) if config.getoption("dist") == "loadfile" else None
