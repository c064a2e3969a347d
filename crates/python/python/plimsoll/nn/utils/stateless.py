"""The older place of `plimsoll.func.functional_call`."""

from __future__ import annotations

import warnings
from typing import Any

from ..._plimsoll import Tensor
from ..modules.module import Module
from ._functional_call import functional_call as _functional_call


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers, by path; `plimsoll.func.functional_call` does the same."""
    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated; use func.functional_call, which does the same",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
