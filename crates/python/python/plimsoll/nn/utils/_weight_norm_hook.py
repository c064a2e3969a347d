"""Weight norm by a hook before each call: PyTorch's older way, whose parameters are `weight_g` and `weight_v`."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ..._plimsoll import Tensor
from ..parameter import Parameter, is_lazy
from ._norms import norm_except_dim, weight_normed

_Kind = TypeVar("_Kind")


class WeightNorm:
    """The hook: makes the weight of its length and its direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """The weight of now."""
        length, direction = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return weight_normed(length, direction, self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Puts the hook on a module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. "
                "Make sure to run the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, made.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: _Kind, name: str = "weight", dim: int | None = 0) -> _Kind:
    """Trains the length and the direction of a weight apart, by a hook; `parametrizations.weight_norm` is the newer way."""
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: _Kind, name: str = "weight") -> _Kind:
    """Takes the hook off again."""
    hooks = module._forward_pre_hooks  # type: ignore[attr-defined]
    for key, hook in hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
