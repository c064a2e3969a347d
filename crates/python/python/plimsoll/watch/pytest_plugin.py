"""The fixture `plimsoll_watch`: watches a test, which fails if something grows in it from step to step. A
`conftest.py` names it (`pytest_plugins = ["plimsoll.watch.pytest_plugin"]`), or `pytest -p plimsoll.watch.pytest_plugin`: runs of others do not
pay for its import. PyTorch is imported when a test asks for the fixture."""

from __future__ import annotations

from typing import Iterator

import pytest

from ._watch import Watch


@pytest.fixture
def plimsoll_watch() -> Iterator[Watch]:
    """Watches the test; `plimsoll_watch.step()` ends a step where no optimizer, loader or module does, and
    `plimsoll_watch.exclude(...)` names growth that is wanted."""
    with Watch() as watched:
        yield watched
    if watched.verdicts:
        pytest.fail(watched.text(), pytrace=False)
