"""Parametrizations of weights: by length and direction, and by the largest singular value."""

from __future__ import annotations

from typing import Any

from ..._plimsoll import Tensor, randn
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize
from ._norms import as_matrix, norm_except_dim, power_iterations, weight_normed


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_normed(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains the length and the direction of a weight apart."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state_dict: Any, prefix: str, *rest: Any) -> None:
        # A state of the older way, with a hook, is read too.
        for old, new in (("_g", "original0"), ("_v", "original1")):
            if prefix + name + old in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(prefix + name + old)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        count = weight.dim()
        if not -count <= dim < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{count}, {count - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + count
        self.eps = eps
        if count > 1:
            # A vector has one singular value, and nothing to search for.
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            own: dict[str, Any] = {"dtype": matrix.dtype, "device": matrix.device}
            u, v = randn(matrix.size(0), **own), randn(matrix.size(1), **own)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            power_iterations(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iterations(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # The graph of this call must not see what the next one writes.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        # A weight that was set may be anything; it is normed at the next call.
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """A weight that stays orthogonal. It needs operations that do not exist here yet."""
    raise NotImplementedError(
        "parametrizations.orthogonal needs linalg.matrix_exp, linalg.solve or linalg.householder_product, which do not "
        "exist here yet; nn.init.orthogonal_ draws an orthogonal weight to begin with"
    )
