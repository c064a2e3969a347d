"""What all constraints have. The single ones: `constraints.py`."""

from __future__ import annotations

from .._plimsoll import Tensor


class Constraint:
    """Says of values whether they are allowed; one of vectors or matrices looks at whole ones.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import constraints
    >>> constraints.positive.check(pm.tensor([-1.0, 2.0]))
    tensor([False,  True])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each value is allowed."""
        raise NotImplementedError

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.removeprefix('_')}({bounds})"
