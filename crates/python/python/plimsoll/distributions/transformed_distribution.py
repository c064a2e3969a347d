"""Draws of one distribution put through functions (`TransformedDistribution`), and draws of one out of several
(`MixtureSameFamily`)."""

from __future__ import annotations

from typing import Any

from .._modes import no_grad
from .._plimsoll import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, Independent, sum_rightmost
from .transforms import ComposeTransform, Transform


class TransformedDistribution(Distribution):
    """Draws of a distribution, put through transforms one after the other.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import ExpTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()]).log_prob(pm.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | list[Transform], validate_args: bool | None = None
    ) -> None:
        listed = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(listed, list) or not all(isinstance(one, Transform) for one in listed):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        self.transforms = listed
        whole = ComposeTransform(listed)
        shape = tuple(base_distribution.batch_shape) + tuple(base_distribution.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {tuple(shape)}."
            )
        made = tuple(whole.forward_shape(shape))
        if (needed := tuple(whole.inverse_shape(made))) != shape:
            # Transforms with parameters of their own make the batch larger: each of it is a draw of its own.
            base_distribution = base_distribution.expand(needed[: len(needed) - len(base_distribution.event_shape)])
        grown = whole.codomain.event_dim - whole.domain.event_dim
        # Dimensions of the batch that the transforms take together are parts of an event.
        taken = whole.domain.event_dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, taken) if taken > 0 else base_distribution
        dims = max(whole.codomain.event_dim, len(base_distribution.event_shape) + grown)
        self.has_rsample = self.base_dist.has_rsample
        at = len(made) - dims
        super().__init__(made[:at], made[at:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = tuple(ComposeTransform(self.transforms).inverse_shape(tuple(batch_shape) + tuple(self.event_shape)))
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return self._made_anew(TransformedDistribution, base, self.transforms, self._validate_args)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        last, dims = self.transforms[-1].codomain, len(self.event_shape)
        return constraints.independent(last, dims - last.event_dim) if dims > last.event_dim else last

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def _through(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        dims, total = len(self.event_shape), value.new_zeros(())
        for transform in reversed(self.transforms):
            given = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            stretched = transform.log_abs_det_jacobian(given, value)
            total = total - sum_rightmost(stretched, dims - transform.domain.event_dim)
            value = given
        return total + sum_rightmost(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))

    def _turned(self, value: Tensor) -> Tensor:
        """A probability the other way round, where the transforms fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        self.base_dist._check_draw(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._through(self.base_dist.icdf(self._turned(value)))


class MixtureSameFamily(Distribution):
    """Draws of one out of several distributions, the last of a batch's dimensions; a `Categorical` says which.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Categorical, MixtureSameFamily, Normal
    >>> MixtureSameFamily(Categorical(pm.ones(2)), Normal(pm.tensor([-1.0, 1.0]), pm.ones(2))).mean
    tensor(0.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        batch, of = tuple(component_distribution.batch_shape)[:-1], tuple(mixture_distribution.batch_shape)
        if of and batch and any(one != other and 1 not in (one, other) for one, other in zip(reversed(of), reversed(batch))):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({of}) is not compatible with `component_distribution.batch_shape`({batch})"
            )
        count, has = mixture_distribution.probs.shape[-1], component_distribution.batch_shape[-1]
        if count != has:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` ({has})")
        self._event_dims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = tuple(batch_shape)
        component = self.component_distribution.expand((*shape, self.component_distribution.batch_shape[-1]))
        return self._made_anew(MixtureSameFamily, self.mixture_distribution.expand(shape), component, self._validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weights(self) -> Tensor:
        weights = self.mixture_distribution.probs
        return weights.reshape(tuple(weights.shape) + (1,) * self._event_dims)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_dims)

    @property
    def variance(self) -> Tensor:
        along = -1 - self._event_dims
        within = (self._weights() * self.component_distribution.variance).sum(along)
        apart = (self.component_distribution.mean - self.mean.unsqueeze(along)).pow(2)
        return within + (self._weights() * apart).sum(along)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
            along = len(shape) + len(self.batch_shape)
            which = self.mixture_distribution.sample(shape)
            drawn = self.component_distribution.sample(shape)
            which = which.reshape(tuple(which.shape) + (1,) * (self._event_dims + 1))
            which = which.expand(tuple(drawn.shape[:along]) + (1,) + tuple(self.event_shape))
            return drawn.gather(along, which).squeeze(along)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        of_each = self.component_distribution.log_prob(value.unsqueeze(-1 - self._event_dims))
        return (of_each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        of_each = self.component_distribution.cdf(value.unsqueeze(-1 - self._event_dims))
        return (of_each * self.mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
