"""Small functions that layers outside of this package import: arguments of one number or several, prefixes of states."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from .._sizes import _times, pair, quadruple, single, triple

__all__ = ["consume_prefix_in_state_dict_if_present"]

_single, _pair, _triple, _quadruple = single, pair, triple, quadruple


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a number `n` times, and leaves several as they are."""
    made = _times(n)
    made.__name__ = name
    return made


def _reverse_repeat_tuple(t: Sequence[int], n: int) -> tuple[int, ...]:
    """Every element `n` times, the last first: paddings of convolutions as `pad` takes them."""
    return tuple(value for value in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """Sizes with the last of the defaults in the place of what is `None`."""
    if isinstance(out_size, int) or not isinstance(out_size, Sequence):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [given if given is not None else own for given, own in zip(out_size, last, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: MutableMapping[str, Any], prefix: str) -> None:
    """Takes a prefix off the names of a state, in place: `module.`, which `DataParallel` puts before them.

    >>> from plimsoll.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    # The versions of modules go by paths without the last dot; that of the root has none.
    metadata = getattr(state_dict, "_metadata", None) or {}
    for key in [key for key in metadata if key and (key == prefix.replace(".", "") or key.startswith(prefix))]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
