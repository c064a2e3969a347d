"""Which matrices are allowed. Programs find these in `constraints.py`."""

from __future__ import annotations

from .. import _plimsoll
from .._facts import finfo
from .._plimsoll import Tensor
from ._constraint import Constraint


class _LowerTriangular(Constraint):
    """A matrix with nothing above its diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """The same, with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """The same, with rows of length 1: a factor of a matrix of correlations."""

    def check(self, value: Tensor) -> Tensor:
        near = finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((lengths - 1.0).abs() <= near).all(-1)  # type: ignore[no-any-return]


class _Square(Constraint):
    """As many rows as columns."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return _plimsoll.full(tuple(value.shape[:-2]), is_square, dtype=_plimsoll.bool, device=value.device)


class _Symmetric(_Square):
    """A matrix that is its own transpose."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _plimsoll.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """A symmetric matrix without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return super().check(value) & (_plimsoll.linalg_eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """A symmetric matrix with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return super().check(value) & (_plimsoll.linalg_cholesky_ex(value).info == 0)
