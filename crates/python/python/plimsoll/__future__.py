"""Settings of how modules convert their parameters: PyTorch's `torch.__future__`. Read by `nn.Module._apply` and by
`load_state_dict`."""

from __future__ import annotations

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `to`, `float`, `cuda` and so on give a module new parameters, in place of new bytes to those it has."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether modules get new parameters when they are converted; they do not unless told so."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` swap parameters with their new values by `utils.swap_tensors`. Goes before the
    other setting.

    >>> import plimsoll as pm
    >>> pm.__future__.set_swap_module_params_on_conversion(True)
    >>> layer = pm.nn.Linear(1, 1)
    >>> weight = layer.weight
    >>> layer.double().weight is weight, weight.dtype
    (True, torch.float64)
    >>> pm.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether parameters are swapped when they are converted or loaded; they are not unless told so."""
    return _swap_module_params_on_conversion
