"""How a draw moves with the parameters of its distribution while its probability up to there stays the same: the
derivative of the distribution function by the parameter, over the density. All is computed in float64 from series of
the incomplete gamma and beta functions, differentiated term by term."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import _plimsoll, linalg, special
from ._plimsoll import Tensor
from .autograd.function import Function

#: Terms between two looks at how much the last one added.
_AT_ONCE = 16
_MOST_TERMS = 20_000
#: From this concentration on a draw is a polynomial of a normal one, to seven digits.
_MANY = 40.0


class _Once(Function):
    """A gradient whose own is not known: who asks for it gets an error, and no wrong number."""

    @staticmethod
    def forward(ctx: Any, name: str, of: Callable[..., Tensor], *given: Tensor) -> Tensor:
        ctx.name = name
        return of(*given)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{ctx.name}' is not implemented.")


def _standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """How draws `output` of gamma distributions of rate 1 move with their concentrations.

    >>> import plimsoll as pm
    >>> pm._standard_gamma_grad(pm.tensor([1.0, 50.0]), pm.tensor([1.0, 50.0]))
    tensor([1.1736, 1.0033])
    """
    return _Once.apply("_standard_gamma_grad", _gamma_moved, self, output)  # type: ignore[no-any-return]


def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """How a component `x` of a draw of a Dirichlet distribution moves with its concentration, of which all together have
    `total`; as a part of what the other components have."""
    return _Once.apply("_dirichlet_grad", _component_moved, x, alpha, total)  # type: ignore[no-any-return]


def _gamma_moved(alpha: Tensor, drawn: Tensor) -> Tensor:
    dtype = drawn.dtype
    alpha, drawn = (one.detach().to(_plimsoll.float64) for one in _plimsoll.broadcast_tensors(alpha, drawn))
    shape, alpha, drawn = alpha.shape, alpha.reshape(-1), drawn.reshape(-1)
    # The series loses digits where little is left above a draw.
    tail = drawn > alpha + 4 * alpha.sqrt() + 4
    many = ~tail & (alpha >= _MANY)
    given = (alpha, drawn)
    found = _by_part([(tail, _gamma_above, given), (many, _gamma_of_many, given), (~tail & ~many, _gamma_below, given)])
    return found.reshape(shape).to(dtype)


def _component_moved(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    given = _plimsoll.broadcast_tensors(x, alpha, total)
    part, own, whole = (one.detach().to(_plimsoll.float64).reshape(-1) for one in given)
    other = whole - own
    density = own.xlogy(part) + other.xlogy(1 - part) + whole.lgamma() - own.lgamma() - other.lgamma()
    # Both series are right where draws are likely, and the one of few terms is taken. Far out each loses its digits on
    # the other's side of the mean.
    low = _plimsoll.where(density > -16, part <= 0.5, part <= own / whole)
    found = _by_part([(low, _beta_below, (part, own, whole)), (~low, _beta_above, (part, own, whole))])
    return found.reshape(given[0].shape).to(x.dtype)


def _by_part(parts: list[tuple[Tensor, Callable[..., Tensor], tuple[Tensor, ...]]]) -> Tensor:
    """Each function of the elements that its mask says."""
    found = _plimsoll.zeros_like(parts[0][2][0])
    for mask, function, given in parts:
        if found.device._is_dry:
            continue
        places = mask.nonzero().squeeze(-1)
        if places.numel() > 0:
            found[places] = function(*(one[places] for one in given))
    return found


def _summed(first: Tensor, step: Callable[[int, Tensor], Tensor], weight: Callable[[int], Tensor]) -> Tensor:
    """The sum of `term * weight(n)`, where each term comes of the one before it."""
    term, total = first, first * weight(0)
    for at in range(1, _MOST_TERMS):
        term = step(at, term)
        added = term * weight(at)
        total = total + added
        if at % _AT_ONCE == 0 and bool(((added.abs() + term) <= 1e-17 * total.abs()).all()):
            break
    return total


class _Digamma:
    """The digamma function of a number plus 0, 1, 2, ..., each from the one before it."""

    def __init__(self, start: Tensor) -> None:
        self.start, self.at, self.value = start, 0, start.digamma()

    def __call__(self, at: int) -> Tensor:
        while self.at < at:
            self.value = self.value + 1 / (self.start + self.at)
            self.at += 1
        return self.value


def _gamma_below(alpha: Tensor, drawn: Tensor) -> Tensor:
    """From the series of the lower incomplete gamma function."""
    log, digamma = drawn.log(), _Digamma(alpha + 1)
    return _summed(drawn / alpha, lambda at, term: term * drawn / (alpha + at), lambda at: digamma(at) - log)


def _gamma_above(alpha: Tensor, drawn: Tensor) -> Tensor:
    """The integral of what is above a draw, which falls off there about as an exponential."""
    nodes, weights = (_plimsoll.tensor(one, dtype=alpha.dtype, device=alpha.device) for one in _laguerre(48))
    a, x = alpha.unsqueeze(-1), drawn.unsqueeze(-1)
    rate = 1 - (a - 1) / x
    rest = nodes / rate
    density = ((a - 1) * (rest / x).log1p() - rest + nodes).exp()
    return (((x + rest).log() - a.digamma()) * density * weights / rate).sum(-1)


def _gamma_of_many(alpha: Tensor, drawn: Tensor) -> Tensor:
    """Cornish and Fisher's expansion of a draw by a normal one, differentiated by the concentration."""
    below = special.gammainc(alpha, drawn)
    above = special.gammaincc(alpha, drawn)
    z = _plimsoll.where(below < above, special.ndtri(below), -special.ndtri(above))
    z2, root = z * z, alpha.sqrt()
    return (
        1
        + z / (2 * root)
        - z * (z2 - 7) / 72 / (alpha * root)
        + (3 * z2 * z2 + 7 * z2 - 16) / 810 / alpha**2
        - z * (9 * z2 * z2 + 256 * z2 - 433) / 25920 / (alpha**2 * root)
    )


def _beta_below(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """From the series of the incomplete beta function; over 1 - x."""
    log, all_of, own = x.log(), _Digamma(total), _Digamma(alpha + 1)
    return _summed(
        x / alpha,
        lambda at, term: term * x * (total + (at - 1)) / (alpha + at),
        lambda at: own(at) - all_of(at) - log,
    )


def _beta_above(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """The same of what is above `x`: the beta function of both exchanged."""
    rest, other = 1 - x, (total - alpha).clamp(min=1e-300)
    log, all_of, own = x.log(), _Digamma(total), alpha.digamma()
    return _summed(
        x / other,
        lambda at, term: term * rest * (total + (at - 1)) / (other + at),
        lambda at: log + all_of(at) - own,
    )


@functools.cache
def _laguerre(count: int) -> tuple[list[float], list[float]]:
    """Places and weights of Gauss's quadrature for what falls off as an exponential: the eigenvalues of a matrix, and the
    squares of the first elements of its eigenvectors."""
    matrix = _plimsoll.zeros(count, count, dtype=_plimsoll.float64)
    for at in range(count):
        matrix[at, at] = 2 * at + 1
        if at:
            matrix[at, at - 1] = matrix[at - 1, at] = at
    values, vectors = linalg.eigh(matrix)
    return values.tolist(), (vectors[0] ** 2).tolist()
