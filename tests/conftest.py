"""Options of the tests, and a fixture that several share."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--all-outputs", action="store_true", help="tamper with every stored output, not with a sample")


@pytest.fixture
def one_thread():
    """A few numbers are ready before a second thread has begun; on busy cores waiting for it costs the most."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
