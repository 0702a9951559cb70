"""A pair of processes for tests, which torch.distributed joins as under torchrun."""

import multiprocessing
import os
import socket
from concurrent.futures import ProcessPoolExecutor

import pytest
import torch


@pytest.fixture(scope="module")
def together():
    """A function that returns what two processes, which torch.distributed joins, return for the same call."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:

        def call(function, *arguments, **settings):
            with socket.create_server(("127.0.0.1", 0)) as server:
                port = server.getsockname()[1]
            calls = [executor.submit(joined, rank, port, function, *arguments, **settings) for rank in (0, 1)]
            return [call.result(timeout=60) for call in calls]

        yield call


def joined(rank, port, function, *arguments, **settings):
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "test"}
    os.environ |= {name: str(value) for name, value in (address | {"RANK": rank, "WORLD_SIZE": 2}).items()}
    torch.set_num_threads(1)
    return function(*arguments, **settings)
