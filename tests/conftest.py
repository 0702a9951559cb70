"""Options of the tests."""


def pytest_addoption(parser):
    parser.addoption("--all-outputs", action="store_true", help="tamper with every stored output, not with a sample")
