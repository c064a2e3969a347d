"""Spectral norm by a hook before each call: PyTorch's older way, whose parameter is `weight_orig`."""

from __future__ import annotations

from typing import Any, TypeVar

from ..._modes import no_grad
from ..._plimsoll import Tensor, randn
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..parameter import Parameter, is_lazy
from ._norms import as_matrix

_Kind = TypeVar("_Kind")


class SpectralNorm:
    """The hook: the weight over its largest singular value, found by power iterations."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations=" + str(n_power_iterations)
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The dimension of the results as rows."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight of now."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.detach().T.mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.detach().mv(v), dim=0, eps=self.eps))
            # The graph of this call must not see what the next one writes.
            u, v = u.clone(), v.clone()
        normed: Tensor = weight / u.dot(matrix.mv(v))
        return normed

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Puts the hook on a module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. "
                "Make sure to run the dummy forward before applying spectral normalization"
            )
        matrix = made.reshape_weight_to_matrix(weight.detach())
        own = {"dtype": weight.dtype, "device": weight.device}
        u = F.normalize(randn(matrix.size(0), **own), dim=0, eps=eps)
        v = F.normalize(randn(matrix.size(1), **own), dim=0, eps=eps)
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(_VersionHook(made))
        return made


class _VersionHook:
    """Writes the version of the state, as PyTorch does."""

    def __init__(self, norm: SpectralNorm) -> None:
        self.norm = norm

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        local_metadata.setdefault("spectral_norm", {})[self.norm.name + ".version"] = self.norm._version


def spectral_norm(
    module: _Kind,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> _Kind:
    """Divides a weight by its largest singular value, by a hook."""
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: _Kind, name: str = "weight") -> _Kind:
    """Takes the hook off again."""
    own: Any = module
    for key, hook in own._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(own)
            del own._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for key, hook in own._state_dict_hooks.items():
        if isinstance(hook, _VersionHook) and hook.norm.name == name:
            del own._state_dict_hooks[key]
            break
    return module
