"""The fixture `plimsoll_watch`: watches a test, which fails if something grows in it from step to step. A
`conftest.py` names it (`pytest_plugins = ["plimsoll.watch.pytest_plugin"]`), or `pytest -p plimsoll.watch.pytest_plugin`: runs of others do not
pay for its import. PyTorch is imported when a test asks for the fixture."""

from __future__ import annotations

from typing import Iterator

import pytest

from ._watch import Watch


_WATCHED = pytest.StashKey[Watch]()


@pytest.fixture
def plimsoll_watch(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """Watches the test; `plimsoll_watch.step()` ends a step where no optimizer, loader or module does, and
    `plimsoll_watch.exclude(...)` names growth that is wanted."""
    stash = request.node.stash
    with Watch() as watched:
        stash[_WATCHED] = watched
        yield watched
    # Where the test has failed by itself, or a `conftest.py` has taken the fixture alone.
    if _WATCHED in stash:
        _judge(watched)


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Comes when the test has succeeded, and is a part of it: what fails at the fixture's own end is an error beside it."""
    if _WATCHED in item.stash:
        watched = item.stash[_WATCHED]
        del item.stash[_WATCHED]
        watched.__exit__(None, None, None)
        _judge(watched)


def _judge(watched: Watch) -> None:
    if watched.verdicts:
        pytest.fail(watched.text(), pytrace=False)
