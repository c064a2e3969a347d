"""The norms of weights that both ways to norm them need: lengths of rows, and the largest singular value."""

from __future__ import annotations

from ... import linalg
from ..._modes import no_grad
from ..._plimsoll import Tensor
from .. import functional as F


def norm_except_dim(weight: Tensor, dim: int | None) -> Tensor:
    """The lengths along all dimensions but one; of the whole for None or -1."""
    if dim is None or dim == -1:
        return linalg.vector_norm(weight)
    dims = [at for at in range(weight.dim()) if at != dim % weight.dim()]
    if not dims:
        return weight.abs()
    return linalg.vector_norm(weight, 2, dims, keepdim=True)


def weight_normed(length: Tensor, direction: Tensor, dim: int | None) -> Tensor:
    """A weight of given lengths and directions."""
    return direction * (length / norm_except_dim(direction, dim))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """One dimension as rows, the others as columns."""
    if dim != 0:
        weight = weight.permute(dim, *(at for at in range(weight.dim()) if at != dim))
    return weight.reshape(weight.size(0), -1)


def power_iterations(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
    """Brings `u` and `v` nearer to the singular vectors of the largest value, in place."""
    with no_grad():
        matrix = matrix.detach()
        for _ in range(count):
            u.copy_(F.normalize(matrix.mv(v), dim=0, eps=eps))
            v.copy_(F.normalize(matrix.T.mv(u), dim=0, eps=eps))
