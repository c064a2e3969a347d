"""Draws of gamma, Dirichlet, Poisson and binomial distributions, over whole tensors: every round draws for the elements
that are still without a value, so that a few rounds do. How draws of gamma and Dirichlet distributions move with their
parameters is in `_implicit_gradients.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _plimsoll
from ._facts import finfo
from ._implicit_gradients import _dirichlet_grad, _standard_gamma_grad
from ._plimsoll import Tensor
from .autograd.function import Function

#: Up to here counts are drawn event by event, which takes as many rounds as there are events.
_FEW = 10.0


def _drawn(shape: Any, like: Tensor, rounds: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """Values in float64. `rounds(places)` draws one for each place, and says which of them count."""
    values = _plimsoll.zeros(math.prod(shape), dtype=_plimsoll.float64, device=like.device)
    places = _plimsoll.arange(values.numel(), device=like.device)
    if like.device._is_dry:
        # A dry run has no values to look at: one round stands for all of them.
        rounds(places)
        return values.reshape(tuple(shape))
    while places.numel() > 0:
        drawn, counts = rounds(places)
        values[places[counts]] = drawn[counts]
        places = places[~counts]
    return values.reshape(tuple(shape))


def _gamma(alpha: Tensor, generator: Any) -> Tensor:
    """Marsaglia and Tsang (2000): a cube of a shifted normal draw, kept or not by a uniform one."""
    asked = alpha.detach().to(_plimsoll.float64).reshape(-1)
    # Of what is no concentration (NaN, negative, infinite) no draw would ever count.
    has_draws = (asked > 0) & (asked < math.inf)
    given = _plimsoll.where(has_draws, asked, _plimsoll.ones_like(asked))
    # Below 1 a draw for one more is made smaller.
    small = given < 1
    raised = _plimsoll.where(small, given + 1, given)
    shift = raised - 1 / 3
    step = (9 * shift).rsqrt()

    def rounds(places: Tensor) -> tuple[Tensor, Tensor]:
        normal = _plimsoll.empty(places.shape, dtype=_plimsoll.float64, device=places.device).normal_(generator=generator)
        d, c = shift[places], step[places]
        cube = (1 + c * normal) ** 3
        below = _uniform_of(places, generator).log() < 0.5 * normal**2 + d * (1 - cube + cube.clamp(min=1e-300).log())
        return d * cube, (cube > 0) & below

    values = _drawn(alpha.shape, alpha, rounds).reshape(-1)
    factor = _uniform_of(given, generator).log() / given.clamp(min=1e-300)
    values = values * _plimsoll.where(small, factor.exp(), _plimsoll.ones_like(factor))
    # As in PyTorch, no draw is 0 unless the parameter is; an infinite one gives itself, and others the least.
    zero = _plimsoll.zeros_like(asked)
    values = _plimsoll.where(has_draws, values, _plimsoll.where(asked == math.inf, asked, zero))
    floor = _plimsoll.where(asked == 0, zero, _plimsoll.full_like(asked, finfo(alpha.dtype).tiny))
    return _plimsoll.maximum(values, floor).reshape(alpha.shape).to(alpha.dtype)


def _uniform_of(like: Tensor, generator: Any) -> Tensor:
    """Above 0, and up to 1, one for each element."""
    made = _plimsoll.empty(like.shape, dtype=_plimsoll.float64, device=like.device)
    return 1 - made.uniform_(generator=generator)


class _StandardGamma(Function):
    @staticmethod
    def forward(ctx: Any, alpha: Tensor, generator: Any) -> Tensor:
        drawn = _gamma(alpha, generator)
        ctx.save_for_backward(alpha, drawn)
        return drawn

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        alpha, drawn = ctx.saved_tensors
        return grad * _standard_gamma_grad(alpha, drawn), None


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Draws of gamma distributions of rate 1, one for each concentration; gradients say how a draw moves with it.

    >>> import plimsoll as pm
    >>> bool((pm._standard_gamma(pm.ones(3)) > 0).all())
    True
    """
    return _StandardGamma.apply(self, generator)  # type: ignore[no-any-return]


def _sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    """Draws of Dirichlet distributions, whose concentrations are along the last dimension."""
    drawn = _gamma(self.to(_plimsoll.float64), generator)
    facts = finfo(self.dtype)
    # Neither 0 nor 1, of which densities are not finite.
    return (drawn / drawn.sum(-1, keepdim=True)).clamp(facts.tiny, 1 - facts.eps / 2).to(self.dtype)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """How often something happens that is expected this often: a draw for each element.

    >>> import plimsoll as pm
    >>> pm.poisson(pm.zeros(2))
    tensor([0., 0.])
    """
    if not input.is_floating_point():
        raise NotImplementedError(f"poisson: rates are floating point, not {input.dtype}")
    rate = input.detach().to(_plimsoll.float64).reshape(-1)
    if not input.device._is_dry and not bool((rate >= 0).all()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    few = rate < _FEW
    values = _plimsoll.where(few, _few_events(rate.clamp(max=_FEW), generator), _many_events(rate.clamp(min=_FEW), generator))
    return values.reshape(input.shape).to(input.dtype)


def _few_events(rate: Tensor, generator: Any) -> Tensor:
    """Events come after exponential times: those within one unit of time count."""
    count, time = _plimsoll.zeros_like(rate), _plimsoll.zeros_like(rate)
    while True:
        time = time - _uniform_of(rate, generator).log()
        before = time < rate
        if rate.device._is_dry or not bool(before.any()):
            return count
        count = count + before


def _many_events(rate: Tensor, generator: Any) -> Tensor:
    """Hörmann (1993), transformed rejection with squeeze, for rates of 10 and more."""
    width = 0.931 + 2.53 * rate.sqrt()
    tail = -0.059 + 0.02483 * width
    inverse = 1.1239 + 1.1328 / (width - 3.4)
    surely = 0.9277 - 3.6224 / (width - 2)

    def rounds(places: Tensor) -> tuple[Tensor, Tensor]:
        mean, b, a = rate[places], width[places], tail[places]
        across, up = _uniform_of(places, generator) - 0.5, _uniform_of(places, generator)
        edge = (0.5 - across.abs()).clamp(min=1e-300)
        count = ((2 * a / edge + b) * across + mean + 0.43).floor()
        height = up.log() + inverse[places].log() - (a / edge**2 + b).log()
        within = height <= count * mean.log() - mean - (count.clamp(min=0) + 1).lgamma()
        quick = (edge >= 0.07) & (up <= surely[places])
        outside = (count < 0) | ((edge < 0.013) & (up > edge))
        return count, quick | (within & ~outside)

    return _drawn(rate.shape, rate, rounds)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`: a draw for each element.

    >>> import plimsoll as pm
    >>> pm.binomial(pm.tensor([3.0, 5.0]), pm.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """
    if not count.is_floating_point() or not prob.is_floating_point():
        raise ValueError(f"binomial only supports floating-point dtypes for count and prob, got: {count.dtype} and {prob.dtype}")
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype} but expected {count.dtype}")
    trials, chance = (one.detach().to(_plimsoll.float64) for one in _plimsoll.broadcast_tensors(count, prob))
    shape, trials, chance = trials.shape, trials.reshape(-1), chance.reshape(-1)
    # Of what is no number of trials or no chance no draw would ever count.
    has_draws = trials.isfinite() & (chance == chance)
    trials, chance = trials.where(has_draws, _plimsoll.zeros_like(trials)), chance.where(has_draws, _plimsoll.zeros_like(chance))
    # Of the rarer of success and failure.
    rare = chance.clamp(max=1).minimum(1 - chance).clamp(min=0)
    few = trials * rare < _FEW
    zero, half = _plimsoll.zeros_like(trials), _plimsoll.full_like(rare, 0.5)
    by_one = _few_successes(_plimsoll.where(few, trials, zero), _plimsoll.where(few, rare, half), generator)
    at_once = _many_successes(_plimsoll.where(few, zero + 4 * _FEW, trials), _plimsoll.where(few, half, rare), generator)
    values = _plimsoll.where(few, by_one, at_once)
    values = _plimsoll.where(chance > 0.5, trials - values, values)
    values = _plimsoll.where(has_draws, values, _plimsoll.full_like(values, math.nan))
    return values.reshape(shape).to(count.dtype)


def _few_successes(trials: Tensor, chance: Tensor, generator: Any) -> Tensor:
    """From one success to the next there are geometrically many trials."""
    count, done = _plimsoll.zeros_like(trials), _plimsoll.zeros_like(trials)
    # A chance of 0 never comes.
    fails = (-chance).log1p().clamp(max=-1e-300)
    while True:
        done = done + (_uniform_of(trials, generator).log() / fails).floor() + 1
        within = done <= trials
        if trials.device._is_dry or not bool(within.any()):
            return count
        count = count + within


def _many_successes(trials: Tensor, chance: Tensor, generator: Any) -> Tensor:
    """Hörmann (1993), transformed rejection with squeeze, for 10 expected successes and more."""
    spread = (trials * chance * (1 - chance)).sqrt()
    width = 1.15 + 2.53 * spread
    tail = -0.0873 + 0.0248 * width + 0.01 * chance
    surely = 0.92 - 4.2 / width
    alpha = (2.83 + 5.1 / width) * spread
    odds = (chance / (1 - chance)).log()
    mode = ((trials + 1) * chance).floor()

    def rounds(places: Tensor) -> tuple[Tensor, Tensor]:
        n, b, a, m = trials[places], width[places], tail[places], mode[places]
        across, up = _uniform_of(places, generator) - 0.5, _uniform_of(places, generator)
        edge = (0.5 - across.abs()).clamp(min=1e-300)
        count = ((2 * a / edge + b) * across + n * chance[places] + 0.5).floor()
        k = count.clamp(min=0).minimum(n)
        ratio = (m + 1).lgamma() + (n - m + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma() + (k - m) * odds[places]
        within = (up * alpha[places] / (a / edge**2 + b)).log() <= ratio
        quick = (edge >= 0.07) & (up <= surely[places])
        return count, (count == k) & (quick | within)

    return _drawn(trials.shape, trials, rounds)


__all__ = ["_dirichlet_grad", "_sample_dirichlet", "_standard_gamma", "_standard_gamma_grad", "binomial", "poisson"]
