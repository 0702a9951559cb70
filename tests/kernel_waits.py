"""Wait for a kernel in short slices: a plugin of pytest for nbval, and a channel for nbclient.

Now and then a message has arrived, and the thread that waits for it is not woken up; the next wait finds it.
"""

import contextlib
import math
import time
from collections.abc import Iterator
from queue import Empty

import pytest
from jupyter_client.channels import AsyncZMQSocketChannel
from nbval.kernel import RunningKernel

SLICE = 1.0  # seconds


def slices(timeout: float | None) -> Iterator[float]:
    """Yield how long to wait, again and again, until `timeout` seconds have passed; without end for None."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    while (left := end - time.monotonic()) > SLICE:
        yield SLICE
    yield max(left, 0)


def in_slices(get_message):
    """Return nbval's `get_message` as a method that waits in slices; it raises Empty as late as the original."""

    def get(self, stream, timeout=None):
        for seconds in slices(timeout):
            with contextlib.suppress(Empty):
                return get_message(self, stream, timeout=seconds)
        raise Empty

    return get


class SlicedChannel(AsyncZMQSocketChannel):
    """A channel of an asynchronous client that waits in slices."""

    async def get_msg(self, timeout=None):
        for seconds in slices(timeout):
            with contextlib.suppress(Empty):
                return await super().get_msg(timeout=seconds)
        raise Empty


def pytest_configure(config):
    patch = pytest.MonkeyPatch()
    patch.setattr(RunningKernel, "get_message", in_slices(RunningKernel.get_message))
    config.add_cleanup(patch.undo)
