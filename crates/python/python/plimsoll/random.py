"""Random state: reading it, setting it, and keeping a part of a program from moving it on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from . import _plimsoll
from ._plimsoll import _default_generator, _devices
from ._plimsoll import default_generator as default_generator
from ._plimsoll import get_rng_state as get_rng_state
from ._plimsoll import initial_seed as initial_seed
from ._plimsoll import seed as seed
from ._plimsoll import set_rng_state as set_rng_state


def manual_seed(seed: int) -> _plimsoll.Generator:
    """Seeds the generators of all devices; gives that of the CPU. A seed is a whole number of 64 bits, or what `int` makes
    one of.

    >>> import plimsoll
    >>> plimsoll.manual_seed(3).initial_seed()
    3
    """
    return _plimsoll.manual_seed(whole_seed(seed))


def whole_seed(seed: Any) -> int:
    """The seed as a number; one of more than 64 bits raises PyTorch's error."""
    whole = int(seed)
    if not -(2**63) <= whole < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return whole


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
