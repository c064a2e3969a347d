"""Random state: reading it, setting it, and keeping a part of a program from moving it on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from ._plimsoll import _default_generator, _devices
from ._plimsoll import default_generator as default_generator
from ._plimsoll import get_rng_state as get_rng_state
from ._plimsoll import initial_seed as initial_seed
from ._plimsoll import manual_seed as manual_seed
from ._plimsoll import seed as seed
from ._plimsoll import set_rng_state as set_rng_state


@contextlib.contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True) -> Iterator[None]:
    """What is drawn inside does not move the generators of the CPU and of `devices` on; without `devices`, those of
    every device, also of such that are opened inside."""
    if not enabled:
        yield
        return
    chosen = _devices() if devices is None else ["cpu", *devices]
    kept = [(generator, generator.get_state()) for generator in map(_default_generator, chosen)]
    try:
        yield
    finally:
        for generator, state in kept:
            generator.set_state(state)
        if devices is None:
            for device in set(_devices()) - set(chosen):
                generator = _default_generator(device)
                generator.manual_seed(generator.initial_seed())
