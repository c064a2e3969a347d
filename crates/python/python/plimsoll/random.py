"""Random state: reading it, setting it, and keeping a part of a program from moving it on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from ._plimsoll import _default_generator
from ._plimsoll import default_generator as default_generator
from ._plimsoll import get_rng_state as get_rng_state
from ._plimsoll import initial_seed as initial_seed
from ._plimsoll import manual_seed as manual_seed
from ._plimsoll import seed as seed
from ._plimsoll import set_rng_state as set_rng_state


@contextlib.contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True) -> Iterator[None]:
    """What is drawn inside does not move the generators of the CPU and of `devices` on."""
    kept = []
    if enabled:
        generators = [_default_generator(device) for device in ("cpu", *(devices or ()))]
        kept = [(generator, generator.get_state()) for generator in generators]
    try:
        yield
    finally:
        for generator, state in kept:
            generator.set_state(state)
