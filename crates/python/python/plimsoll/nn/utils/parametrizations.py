"""Parametrizations of weights: by length and direction, by the largest singular value, and orthogonal ones."""

from __future__ import annotations

from typing import Any

from ... import linalg
from ..._modes import no_grad
from ..._plimsoll import Tensor, cat, eye, float64, geqrf, randn, where, zeros, zeros_like
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


def _is_orthogonal(matrix: Tensor) -> bool:
    size = matrix.size(-1)
    one = eye(size, dtype=matrix.dtype, device=matrix.device)
    rounding = 2.0**-52 if matrix.dtype == float64 else 2.0**-23
    return bool(((matrix.mT @ matrix - one).abs() <= 10.0 * size * rounding).all())


def _made_orthogonal(matrix: Tensor) -> Tensor:
    """Q of `matrix = Q R` with no negative number on R's diagonal."""
    packed, tau = geqrf(matrix)
    return linalg.householder_product(packed, tau) * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A matrix, or each of a batch, made orthogonal by a map; times a base, of which the map begins with one."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        Q = self._mapped(X.mT if wide else X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _mapped(self, X: Tensor) -> Tensor:
        rows, columns = X.size(-2), X.size(-1)
        if self.orthogonal_map == "householder":
            A = X.tril(-1)
            Q = linalg.householder_product(A, 2.0 / (1.0 + (A * A).sum(-2)))
            # Ones and minus ones, which are not trained.
            return Q * X.detach().diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)
        X = X.tril()
        if rows != columns:
            X = cat([X, zeros(*X.shape[:-1], rows - columns, dtype=X.dtype, device=X.device)], -1)
        A = X - X.mT
        if self.orthogonal_map == "matrix_exp":
            Q = linalg.matrix_exp(A)
        else:
            one = eye(rows, dtype=A.dtype, device=A.device)
            Q = linalg.solve(one - 0.5 * A, one + 0.5 * A)
        return Q[..., :columns]

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if wide else Q
        with no_grad():
            if hasattr(self, "base"):
                self.base = self._completed(tall)
                begun = zeros_like(Q)
                begun.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return begun
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            packed, tau = geqrf(tall)
            signs = packed.diagonal(dim1=-2, dim2=-1).sign()
            # A factor of exactly 0 says that a reflection was left out.
            packed.diagonal(dim1=-2, dim2=-1).copy_(where(tau == 0.0, -signs, signs))
            return packed.mT if wide else packed

    @staticmethod
    def _completed(Q: Tensor) -> Tensor:
        """A square base of which a matrix is the first columns."""
        rows, columns = Q.size(-2), Q.size(-1)
        if rows == columns:
            return Q.clone() if _is_orthogonal(Q) else _made_orthogonal(Q)
        rest = randn(*Q.shape[:-1], rows - columns, dtype=Q.dtype, device=Q.device)
        return _made_orthogonal(cat([Q, rest], -1))


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keeps a weight orthogonal: its columns, or its rows if it is wide, have length 1 and stand at right angles."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module
