"""What all distributions have: shapes, drawing and checking. A batch is of independent distributions; an event is one
draw of one of them."""

from __future__ import annotations

import copy
import functools
import warnings
from typing import TYPE_CHECKING, Any

from .. import _plimsoll
from .._modes import enable_grad
from .._plimsoll import Tensor
from .._size import Size
from . import constraints


def all_tensors(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype and device of the tensors."""
    like = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = _plimsoll.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    made = [value if isinstance(value, Tensor) else _plimsoll.tensor(float(value), dtype=dtype, device=device) for value in values]
    return tuple(_plimsoll.broadcast_tensors(*made))


def all_hold(holds: Tensor) -> bool:
    """Whether a condition holds everywhere. A dry run has no values to look at, and takes it that it does."""
    return holds.device._is_dry or bool(holds.all())


if TYPE_CHECKING:
    from functools import cached_property

    lazy_property = cached_property
else:

    class lazy_property(functools.cached_property):  # noqa: N801 (PyTorch's name)
        """A parameter that follows from another: computed when it is first asked for, with gradients even where none are
        recorded, and kept."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            with enable_grad():
                return super().__get__(instance, owner)


def is_computed(of: object, name: str) -> bool:
    """Whether a parameter follows from another, and was not asked for yet."""
    return name not in vars(of) and isinstance(getattr(type(of), name, None), functools.cached_property)


class Distribution:
    """A batch of distributions. A class of one's own says with `arg_constraints` what its parameters must be, and with `support` what
    a draw can be.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Distribution, constraints
    >>> class Certain(Distribution):
    ...     arg_constraints = {"value": constraints.positive}
    ...     support = constraints.positive
    ...     def __init__(self, value):
    ...         self.value = value
    ...         super().__init__(value.shape)
    >>> Certain(pm.ones(2))
    Certain(value: plimsoll.Size([2]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = True
    #: Parameters that are the same for the whole batch.
    _shared: tuple[str, ...] = ()
    #: PyTorch's are made of another distribution, and show none of its parameters.
    _is_made_of_another = False

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """What each parameter must be, by its name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """What a draw can be, as a constraint."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raises unless the parameters that were given are what they must be."""
        try:
            listed = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in listed.items():
            if constraints.is_dependent(constraint) or is_computed(self, name):
                continue
            value = getattr(self, name)
            if not all_hold(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether arguments are checked unless a distribution says otherwise."""
        if value not in (True, False):
            raise ValueError(f"validate_args is True or False, not {value!r}")
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions in a larger batch; their parameters are views.

        >>> from plimsoll.distributions import Gamma
        >>> Gamma(2.0, 4.0).expand((3,)).mean
        tensor([0.5000, 0.5000, 0.5000])
        """
        self._check_expands()
        shape, dims = tuple(batch_shape), len(self._batch_shape)
        made = copy.copy(self)
        for attribute, value in vars(self).items():
            if isinstance(value, Distribution):
                setattr(made, attribute, value.expand(shape))
            elif isinstance(value, Tensor) and attribute not in self._shared:
                setattr(made, attribute, value.expand(shape + tuple(value.shape[dims:])))
        made._batch_shape = Size(shape)
        return made

    def _check_expands(self) -> None:
        """A class whose arguments are not known here cannot be made anew."""
        if not type(self).__init__.__module__.startswith(f"{__package__}."):
            name = type(self).__name__
            raise NotImplementedError(f"Subclass {name} that defines a custom __init__ method must also define a custom .expand() method.")

    def _made_anew(self, base: type, *args: Any) -> Any:
        """An object of this one's class with other arguments of the class that it inherits from."""
        self._check_expands()
        made = type(self).__new__(type(self))
        base.__init__(made, *args)  # type: ignore[misc]
        return made

    @property
    def mean(self) -> Tensor:
        """The expected draw."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The likeliest draw."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, of which gradients know nothing."""
        with _no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters, so that gradients reach these."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample; use sample")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of a draw."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw up to a value."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which a draw has a probability."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The expected surprise of a draw, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All draws that there can be, where they can be counted."""
        raise NotImplementedError

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return Size(shape + tuple(self._batch_shape) + tuple(self._event_shape))

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """What a class's own `expand` fills in: an object of it that is not set up."""
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            name = type(self).__name__
            raise NotImplementedError(f"Subclass {name} of {cls.__name__} that defines a custom __init__ method must also define a custom .expand() method.")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _check_draw(self, value: Any, support: Any = None) -> None:
        """Raises unless a value is one that could have been drawn, or is in another `support`; if arguments are checked at all."""
        if self._validate_args:
            self._validate_sample(value, support)

    def _validate_sample(self, value: Any, support: Any = None) -> None:
        """Raises unless a value is one that could have been drawn."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if self._event_shape and tuple(value.shape[value.dim() - len(self._event_shape) :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        expected = tuple(self._batch_shape) + tuple(self._event_shape)
        if any(one != other and 1 not in (one, other) for one, other in zip(reversed(value.shape), reversed(expected))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(expected)}.")
        if support is None:
            try:
                support = self.support
            except NotImplementedError:
                warnings.warn(
                    f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution "
                    "with `validate_args=False` to turn off validation.",
                    stacklevel=3,
                )
                return
        if not all_hold(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        own = vars(self)
        given = {name: own[name] for name in self.arg_constraints if name in own and not self._is_made_of_another}
        shown = (f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


class Independent(Distribution):
    """A distribution whose last batch dimensions count as parts of one event."""

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        ndims = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > ndims:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {ndims}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        shape = tuple(base_distribution.batch_shape) + tuple(base_distribution.event_shape)
        at = ndims - reinterpreted_batch_ndims
        super().__init__(shape[:at], shape[at:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        own = tuple(self._event_shape)[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand(tuple(batch_shape) + own)
        return self._made_anew(Independent, base, self.reinterpreted_batch_ndims, self._validate_args)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether all draws can be listed: not those of several in one event."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        of = self.base_dist.support
        return constraints.independent(of, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else of

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last dimensions."""
    return value.reshape(tuple(value.shape[: value.dim() - dims]) + (-1,)).sum(-1) if dims else value


def _no_grad() -> Any:
    from .._modes import no_grad

    return no_grad()


class LocationScale(Distribution):
    """A distribution that is moved and stretched."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: constraints.Constraint = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = all_tensors(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _empty(self, sample_shape: Any) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return _plimsoll.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
