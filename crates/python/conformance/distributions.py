"""Holds the distributions made of gamma, Poisson, binomial and uniform draws, and those put through transforms, to PyTorch's. With
PyTorch at hand:

    PYTHONPATH=crates/python/python python crates/python/conformance/distributions.py

Both get the same parameters and the same values, drawn by PyTorch. Compared are densities and their gradients, moments, entropies,
distribution functions and divergences; of draws, whose random numbers are not the same, the moments; and how draws of gamma and
Dirichlet distributions move with their parameters, which PyTorch gives to three digits or more. Fails if something differs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import plimsoll
import plimsoll.distributions as ours
import torch
import torch.distributions as theirs

DRAWS = 60_000
F64 = torch.float64


def positive(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, dtype=F64) * 3 + 0.2


def inside(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, dtype=F64) * 0.8 + 0.1


def cases() -> dict[str, tuple[torch.Tensor, ...]]:
    """Parameters, by the class."""
    cold = torch.tensor(0.7, dtype=F64)
    return {
        "Beta": (positive(4), positive(4)),
        "Binomial": (torch.full((4,), 3.0, dtype=F64), inside(4)),
        "Cauchy": (positive(4), positive(4)),
        "Chi2": (positive(4),),
        "Dirichlet": (positive(3, 4),),
        "Exponential": (positive(4),),
        "FisherSnedecor": (positive(4) + 4, positive(4) + 5),
        "Gamma": (positive(4), positive(4)),
        "Gumbel": (positive(4), positive(4)),
        "HalfCauchy": (positive(4),),
        "HalfNormal": (positive(4),),
        "InverseGamma": (positive(4), positive(4)),
        "Kumaraswamy": (positive(4), positive(4)),
        "Laplace": (positive(4), positive(4)),
        "LogNormal": (positive(4), positive(4)),
        "NegativeBinomial": (positive(4), inside(4)),
        "Normal": (positive(4), positive(4)),
        "Pareto": (positive(4), positive(4) + 2),
        "Poisson": (positive(4) * 10,),
        "RelaxedBernoulli": (cold, inside(4)),
        "RelaxedOneHotCategorical": (cold, inside(3, 4)),
        "StudentT": (positive(4) + 2, positive(4), positive(4)),
        "Weibull": (positive(4), positive(4)),
    }


def own(tensor: torch.Tensor) -> Any:
    return plimsoll.tensor(tensor.tolist(), dtype=plimsoll.float64)


class Comparison:
    def __init__(self) -> None:
        self.same, self.different = 0, 0

    def check(self, what: str, found: Any, expected: torch.Tensor, tolerance: float = 1e-8) -> None:
        found = torch.tensor(found.tolist(), dtype=F64)
        if found.shape == expected.shape and torch.allclose(found, expected, tolerance, tolerance, equal_nan=True):
            self.same += 1
            return
        self.different += 1
        print(f"{what}: {found.tolist()}, PyTorch {expected.tolist()}")

    def attempt(self, what: str, of_ours: Callable[[], Any], of_theirs: Callable[[], torch.Tensor]) -> None:
        """Compares what both give; what PyTorch does not have need not be here."""
        try:
            expected = of_theirs()
        except NotImplementedError:
            return
        try:
            self.check(what, of_ours(), expected)
        except NotImplementedError as missing:
            self.different += 1
            print(f"{what}: {missing or 'not there'}")


def densities(told: Comparison, name: str, parameters: tuple[torch.Tensor, ...], values: torch.Tensor) -> None:
    leaves = [one.clone().requires_grad_() for one in parameters]
    own_leaves = [own(one).requires_grad_() for one in parameters]
    expected = getattr(theirs, name)(*leaves).log_prob(values)
    found = getattr(ours, name)(*own_leaves).log_prob(own(values))
    told.check(f"{name}.log_prob", found, expected.detach())
    slopes = torch.autograd.grad(expected.sum(), leaves, allow_unused=True)
    own_slopes = plimsoll.autograd.grad(found.sum(), own_leaves, allow_unused=True)
    for at, (one, other) in enumerate(zip(own_slopes, slopes, strict=True)):
        if other is not None:
            told.check(f"{name}.log_prob, gradient {at}", one, other)


def compare(told: Comparison, name: str, parameters: tuple[torch.Tensor, ...]) -> None:
    expected, found = getattr(theirs, name)(*parameters), getattr(ours, name)(*map(own, parameters))
    values, chances = expected.sample((5,)), inside(5, *expected.batch_shape)
    densities(told, name, parameters, values)
    for what in ("mean", "variance", "stddev", "mode"):
        told.attempt(f"{name}.{what}", lambda: getattr(found, what), lambda: getattr(expected, what))
    told.attempt(f"{name}.entropy", found.entropy, expected.entropy)
    told.attempt(f"{name}.cdf", lambda: found.cdf(own(values)), lambda: expected.cdf(values))
    told.attempt(f"{name}.icdf", lambda: found.icdf(own(chances)), lambda: expected.icdf(chances))
    # Others that are distributions too: of a count, a temperature or a chance the same.
    others = tuple(one if name in ("Binomial", "NegativeBinomial") or name.startswith("Relaxed") else one * 0.9 for one in parameters)
    own_other, other = getattr(ours, name)(*map(own, others)), getattr(theirs, name)(*others)
    told.attempt(f"{name}, divergence", lambda: ours.kl_divergence(found, own_other), lambda: theirs.kl_divergence(expected, other))
    moments(told, name, found, expected)


def moments(told: Comparison, name: str, found: Any, expected: Any) -> None:
    """The means of draws, within what so many of them may be off."""
    try:
        mean, deviation = expected.mean, expected.stddev
    except NotImplementedError:
        return
    if not torch.isfinite(deviation).all():
        return
    plimsoll.manual_seed(1)
    drawn = torch.tensor(found.sample((DRAWS,)).mean(0).tolist(), dtype=F64)
    off = ((drawn - mean) / (deviation / math.sqrt(DRAWS))).abs().max().item()
    if off < 4.5:
        told.same += 1
    else:
        told.different += 1
        print(f"{name}: the mean of draws is off by {off:.1f} of its deviation")


def transformed(told: Comparison) -> None:
    zero, one = torch.zeros(2, 3, dtype=F64), torch.ones(2, 3, dtype=F64)
    for names in (["TanhTransform"], ["ExpTransform"], ["SigmoidTransform", "ExpTransform"], ["SoftplusTransform"]):
        expected = theirs.TransformedDistribution(theirs.Independent(theirs.Normal(zero, one), 1), [getattr(theirs, name)() for name in names])
        base = ours.Independent(ours.Normal(own(zero), own(one)), 1)
        found = ours.TransformedDistribution(base, [getattr(ours, name)() for name in names])
        values = expected.sample((5,))
        told.check(f"{names}.log_prob", found.log_prob(own(values)), expected.log_prob(values))
    weights, loc, scale = inside(3), positive(3, 2), positive(3, 2)
    expected = theirs.MixtureSameFamily(theirs.Categorical(weights), theirs.Independent(theirs.Normal(loc, scale), 1))
    found = ours.MixtureSameFamily(ours.Categorical(own(weights)), ours.Independent(ours.Normal(own(loc), own(scale)), 1))
    values = expected.sample((5,))
    told.check("MixtureSameFamily.log_prob", found.log_prob(own(values)), expected.log_prob(values))
    told.check("MixtureSameFamily.variance", found.variance, expected.variance)


def moved(told: Comparison) -> None:
    """How draws move with their parameters, by one formula for each side."""
    alpha = torch.cat([torch.rand(200, dtype=F64) * 2 + 0.05, torch.rand(200, dtype=F64) * 30, torch.rand(200, dtype=F64) * 500 + 30])
    drawn = torch._standard_gamma(alpha).clamp(min=1e-30)
    told.check("_standard_gamma_grad", plimsoll._standard_gamma_grad(own(alpha), own(drawn)), torch._standard_gamma_grad(alpha, drawn), 2e-3)
    one, other = torch.rand(500, dtype=F64) * 20 + 0.1, torch.rand(500, dtype=F64) * 20 + 0.1
    part = theirs.Beta(one, other).sample().clamp(1e-6, 1 - 1e-6)
    given = (part, one, one + other)
    told.check("_dirichlet_grad", plimsoll._dirichlet_grad(*map(own, given)), torch._dirichlet_grad(*given), 2e-3)


def main() -> None:
    torch.manual_seed(0)
    told = Comparison()
    for name, parameters in cases().items():
        compare(told, name, parameters)
    transformed(told)
    moved(told)
    print(f"{told.same} the same, {told.different} different")
    sys.exit(told.different > 0)


if __name__ == "__main__":
    main()
