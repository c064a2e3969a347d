"""Python's collector in these tests: it runs between them and not within, unless one asks by the marker `collecting`.

Many tests compare a figure of the whole process, as bytes or objects, between two looks. Garbage that another test left
in cycles would move it if the collector came in between, at a moment that depends on which tests ran before."""

import gc
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


class _Between:
    """Frees what was left by the tests so far, as cheaply as is certain.

    All that a test made without the collector is young, and young garbage is found in well under a millisecond; to
    visit all modules before each of thousands of tests would take many minutes. That is needed only where something
    may have grown old before it was garbage: when a test collected by itself, and with a file's own fixtures."""

    def __init__(self):
        self._seen = None

    def collect(self, file):
        gc.collect(1 if self._seen == (file, self._collections()) else 2)
        self._seen = file, self._collections()

    @staticmethod
    def _collections():
        return [generation["collections"] for generation in gc.get_stats()[1:]]


_BETWEEN = _Between()


def pytest_configure(config):
    config.addinivalue_line("markers", "collecting: the collector runs by itself within this test")


@pytest.fixture(autouse=True)
def _collector(request):
    # The folders below have rules of their own.
    apart = request.path.parent != _HERE
    gc.disable()
    if not apart:
        _BETWEEN.collect(request.path)
    if apart or request.node.get_closest_marker("collecting"):
        gc.enable()
    yield
    # Off until the next test begins, as pytest lets go of this one's values only now.
    gc.disable()
