"""Random numbers of GPUs: their seeds and states."""

from __future__ import annotations

from typing import Any, Iterable

from .. import _plimsoll
from ..random import whole_seed
from ._place import is_there, place

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device: Any = None) -> _plimsoll.Generator:
    return _plimsoll._default_generator(place(device))


def _all() -> list[_plimsoll.Generator]:
    return [_generator(index) for index in range(_plimsoll._cuda_count())]


def manual_seed(seed: int) -> None:
    """Seeds the current GPU; nothing happens where there is none."""
    whole = whole_seed(seed)
    if is_there():
        _generator().manual_seed(whole)


def manual_seed_all(seed: int) -> None:
    """Seeds all GPUs."""
    whole = whole_seed(seed)
    for generator in _all():
        generator.manual_seed(whole)


def seed() -> None:
    """Seeds the current GPU by chance."""
    if is_there():
        _generator().seed()


def seed_all() -> None:
    """Seeds all GPUs with one number of chance."""
    generators = _all()
    if generators:
        manual_seed_all(generators[0].seed())


def initial_seed() -> int:
    """The seed of the current GPU."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda") -> _plimsoll.Tensor:
    """The state of a GPU's random numbers."""
    return _generator(device).get_state()


def set_rng_state(new_state: _plimsoll.Tensor, device: Any = "cuda") -> None:
    """Puts a state back."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[_plimsoll.Tensor]:
    """The states of all GPUs."""
    return [generator.get_state() for generator in _all()]


def set_rng_state_all(new_states: Iterable[_plimsoll.Tensor]) -> None:
    """Puts the states of all GPUs back."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
