"""Kernels have one thread, and a message that arrived without waking its reader is found a second later."""

import os
from queue import Empty

import kernel_waits
import pytest
from jupyter_client.manager import start_new_kernel


def test_a_kernel_has_one_thread_unless_told_otherwise():
    settings = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    assert threads_of_a_kernel(settings) == 1, "etc/ipython is not installed: pip install -e ."
    assert threads_of_a_kernel({**settings, "OMP_NUM_THREADS": "3"}) == 3


def threads_of_a_kernel(environment):
    """Start a kernel with these environment variables and return its OMP_NUM_THREADS, or 0."""
    manager, client = start_new_kernel(env=environment)
    try:
        asked = {"threads": "int(os.environ.get('OMP_NUM_THREADS', 0))"}
        answer = client.execute_interactive("import os", user_expressions=asked, timeout=60)
        return int(answer["content"]["user_expressions"]["threads"]["data"]["text/plain"])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only waiting moves on."""
    now = [0.0]
    monkeypatch.setattr(kernel_waits.time, "monotonic", lambda: now[0])
    return now


def kernel(clock, arrives):
    """A `get_message` that never wakes its caller: it sees a message only if that is there when the wait begins."""

    def get_message(self, stream, timeout):
        if clock[0] >= arrives:
            return "message"
        clock[0] += timeout
        raise Empty

    return kernel_waits.in_slices(get_message)


@pytest.mark.parametrize("timeout", [120, None])
def test_a_message_is_found_a_second_after_it_arrived(clock, timeout):
    assert kernel(clock, arrives=3.5)(None, "shell", timeout) == "message"
    assert 3.5 <= clock[0] <= 4.5


@pytest.mark.parametrize("timeout", [0, 0.2, 1, 5.5])
def test_without_a_message_the_wait_ends_when_it_did_before(clock, timeout):
    with pytest.raises(Empty):
        kernel(clock, arrives=1000)(None, "iopub", timeout)
    assert clock[0] == timeout
