"""Anomaly mode: backward stops at the first gradient that is not a number, and names the line of the forward."""

from __future__ import annotations

import warnings

from .._plimsoll import _set_detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled


class set_detect_anomaly:
    """Switches anomaly mode on or off; as a context manager, for its body."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev, self.prev_check_nan = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        _set_detect_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *failure: object) -> None:
        _set_detect_anomaly(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Anomaly mode for the body of a `with`."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev, self.prev_check_nan = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        _set_detect_anomaly(True, self.check_nan)

    def __exit__(self, *failure: object) -> None:
        _set_detect_anomaly(self.prev, self.prev_check_nan)
