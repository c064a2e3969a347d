"""Whether results are the same bits on every GPU. On one machine they are from run to run in any case, so that no
operation is refused; turned on, products and convolutions do without cuBLASLt and cuDNN, whose choices differ from GPU
to GPU, and take longer.
"""

from __future__ import annotations

from ._plimsoll import _backend_switch, _set_backend_switch

_SWITCH = "deterministic_algorithms"
_MODES = ("default", "warn", "error")
_warn_only = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Turns it on or off for the whole process. There is nothing to warn of: `warn_only` is kept to be asked for."""
    global _warn_only
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms: mode is True or False, not {mode!r}")
    _set_backend_switch(_SWITCH, mode)
    _warn_only = mode and bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether it is on."""
    return _backend_switch(_SWITCH)


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was turned on with `warn_only`."""
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default" turns it off, 1 or "warn" on with `warn_only`, 2 or "error" on."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"set_deterministic_debug_mode: the mode is an int or a str, not {debug_mode!r}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(f"set_deterministic_debug_mode: {debug_mode!r} is none of {', '.join(_MODES)}")
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in range(len(_MODES)):
        raise RuntimeError(f"set_deterministic_debug_mode: {debug_mode} is none of 0, 1 and 2")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """The mode as a number, as `set_deterministic_debug_mode` takes it."""
    return 0 if not are_deterministic_algorithms_enabled() else 1 if _warn_only else 2
