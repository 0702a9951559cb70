"""The browser, and the server that `make lab` starts: one of each for all tests of a worker."""

import re

import pytest
from chrome import FLAGS, find_chrome, missing
from lab import opened
from playwright.sync_api import sync_playwright
from site_pages import SITE, served
from xdist.scheduler import LoadScopeScheduling


class ByParameter(LoadScopeScheduling):
    """All tests of one lesson go to one worker, where they share its page; so do those of the book, and the search."""

    def _split_scope(self, nodeid: str) -> str:
        if shared := re.search(r"test_book|search_finds", nodeid):
            return shared[0]
        _, bracket, parameter = nodeid.partition("[")
        return parameter if bracket else nodeid


def pytest_xdist_make_scheduler(config, log):
    return ByParameter(config, log)


@pytest.fixture(scope="session")
def chromium():
    if lacking := missing():
        pytest.fail(lacking, pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address():
    """Where the built site is served."""
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """JupyterLab as `make lab` opens it."""
    with opened(chromium, tmp_path_factory.mktemp("lab") / "zu Hause, für mich") as lab:
        yield lab
