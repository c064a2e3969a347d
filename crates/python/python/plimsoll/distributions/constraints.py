"""Which values are allowed: for a parameter, for a draw, and on both sides of a transform. Those of whole matrices are in
`_matrix_constraints.py`."""

from __future__ import annotations

from typing import Any, Callable, Iterable

from .. import _plimsoll
from .._plimsoll import Tensor
from ._matrix_constraints import _CorrCholesky, _LowerCholesky, _LowerTriangular, _PositiveDefinite
from ._matrix_constraints import _PositiveSemidefinite, _Square, _Symmetric
from ._constraint import Constraint as Constraint


class _Dependent(Constraint):
    """What goes by other parameters: which values are allowed is known of a distribution only, and not of its class."""

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._is_discrete is None:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._event_dim is None:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")

    def __repr__(self) -> str:
        return "Dependent()"


class _DependentProperty(property, _Dependent):
    """A property of distributions that is a constraint; of their class it is one that depends."""

    def __init__(
        self, fn: Callable[[Any], Any] | None = None, *, is_discrete: bool | None = None, event_dim: int | None = None
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> Any:
        """As a decorator that was given what is known of every distribution of the class."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether it is known of single distributions only."""
    return isinstance(constraint, _Dependent)


class _Real(Constraint):
    """Any number but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _GreaterThan(Constraint):
    """Above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value  # type: ignore[no-any-return]


class _GreaterThanEq(_GreaterThan):
    """A bound, or above it."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value  # type: ignore[no-any-return]


class _LessThan(Constraint):
    """Below a bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound  # type: ignore[no-any-return]


class _Interval(Constraint):
    """From one bound to another, both allowed."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)  # type: ignore[no-any-return]


class _HalfOpenInterval(_Interval):
    """From one bound to below another."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)  # type: ignore[no-any-return]


class _IntegerInterval(_Interval):
    """A whole number from one bound to another."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value % 1 == 0)


class _IntegerGreaterThan(_GreaterThan):
    """A whole number that is a bound or above it."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)  # type: ignore[no-any-return]


class _OneHot(Constraint):
    """A vector with one 1 among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    """A vector of parts that sum to 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """A vector of counts that sum to a number."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return "Multinomial()"


class _IndependentConstraint(Constraint):
    """Values of which the last dimensions count as one."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        if found.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(
                f"Expected value.dim() >= {self.event_dim} but got {value.dim()}: so many dimensions count as one value"
            )
        return found.reshape(tuple(found.shape[: found.dim() - self.reinterpreted_batch_ndims]) + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _AlongADimension(Constraint):
    """One constraint after the other along a dimension."""

    def __init__(self, parts: Iterable[Constraint], dim: int) -> None:
        self.cseq: list[Constraint] = list(parts)
        self.dim = dim
        if not all(isinstance(part, Constraint) for part in self.cseq):
            raise TypeError(f"{type(self).__name__.removeprefix('_').lower()}: these are constraints, not {self.cseq!r}")

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(part.is_discrete for part in self.cseq)

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _Cat(_AlongADimension):
    """Parts of a dimension, each of a length, with a constraint for each."""

    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(f"cat: {len(self.cseq)} constraints have {len(self.lengths)} lengths")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(part.event_dim for part in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        found, start = [], 0
        for part, length in zip(self.cseq, self.lengths):
            found.append(part.check(value.narrow(self.dim, start, length)))
            start += length
        return _plimsoll.cat(found, self.dim)


class _Stack(_AlongADimension):
    """A constraint for each place of a dimension."""

    def __init__(self, cseq: Any, dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        most = max(part.event_dim for part in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        places = (value.select(self.dim, at) for at in range(len(self.cseq)))
        return _plimsoll.stack([part.check(place) for part, place in zip(self.cseq, places)], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """A draw that any distribution of a mixture could have made."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        apart = value.dim() - self.event_dim
        return found.reshape(tuple(found.shape[:apart]) + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
cat = _Cat
stack = _Stack
multinomial = _Multinomial
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
