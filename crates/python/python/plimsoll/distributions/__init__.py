"""Probability distributions: drawing, with gradients where that can be, logarithms of densities, entropies, and how far
one is from another (`kl_divergence`); functions of draws (`transforms`), and which values are allowed (`constraints`)."""

from __future__ import annotations

from . import constraints as constraints
from . import transforms as transforms
from . import utils as utils
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
from .counts import Binomial as Binomial
from .counts import NegativeBinomial as NegativeBinomial
from .counts import Poisson as Poisson
from .distribution import Distribution as Distribution
from .distribution import Independent as Independent
from .gamma import Beta as Beta
from .gamma import Chi2 as Chi2
from .gamma import Dirichlet as Dirichlet
from .gamma import FisherSnedecor as FisherSnedecor
from .gamma import Gamma as Gamma
from .gamma import InverseGamma as InverseGamma
from .gamma import StudentT as StudentT
from .heavy_tails import HalfCauchy as HalfCauchy
from .heavy_tails import Kumaraswamy as Kumaraswamy
from .heavy_tails import Pareto as Pareto
from .heavy_tails import Weibull as Weibull
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .normal import HalfNormal as HalfNormal
from .normal import LogNormal as LogNormal
from .normal import MultivariateNormal as MultivariateNormal
from .normal import Normal as Normal
from .relaxed import RelaxedBernoulli as RelaxedBernoulli
from .relaxed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from .transformed_distribution import MixtureSameFamily as MixtureSameFamily
from .transformed_distribution import TransformedDistribution as TransformedDistribution
from .transforms import AbsTransform as AbsTransform
from .transforms import AffineTransform as AffineTransform
from .transforms import ComposeTransform as ComposeTransform
from .transforms import ExpTransform as ExpTransform
from .transforms import PowerTransform as PowerTransform
from .transforms import SigmoidTransform as SigmoidTransform
from .transforms import SoftplusTransform as SoftplusTransform
from .transforms import TanhTransform as TanhTransform
from .transforms import Transform as Transform
from .transforms import identity_transform as identity_transform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "SigmoidTransform",
    "SoftplusTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "identity_transform",
    "kl_divergence",
    "register_kl",
]
