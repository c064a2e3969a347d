"""Probability distributions: drawing, with gradients where that can be, logarithms of densities, entropies, and how far
one is from another (`kl_divergence`). Those that programs use most are here; transforms are not."""

from __future__ import annotations

from .bernoulli import Bernoulli as Bernoulli
from .bernoulli import Geometric as Geometric
from .categorical import Categorical as Categorical
from .categorical import Multinomial as Multinomial
from .categorical import OneHotCategorical as OneHotCategorical
from .categorical import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from .continuous import Cauchy as Cauchy
from .continuous import Exponential as Exponential
from .continuous import Gumbel as Gumbel
from .continuous import Laplace as Laplace
from .continuous import Uniform as Uniform
from .distribution import Distribution as Distribution
from .distribution import Independent as Independent
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .normal import HalfNormal as HalfNormal
from .normal import LogNormal as LogNormal
from .normal import MultivariateNormal as MultivariateNormal
from .normal import Normal as Normal

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
