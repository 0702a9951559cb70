"""A message that arrived without waking its reader is found a second later, and a time limit stays what it is."""

from queue import Empty

import kernel_waits
import pytest


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
