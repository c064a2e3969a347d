"""The fixture `plimsoll_watch`: watches a test, which fails if something grows in it from step to step. pytest finds it
by itself where Plimsoll is installed; elsewhere `-p plimsoll.watch.pytest_plugin` names it. PyTorch is imported when
a test asks for the fixture."""

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
