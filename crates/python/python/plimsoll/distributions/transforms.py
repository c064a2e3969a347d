"""Functions of draws with inverses, and how much they stretch: what `TransformedDistribution` is made of."""

from __future__ import annotations

from ._elementwise_transforms import AbsTransform as AbsTransform
from ._elementwise_transforms import AffineTransform as AffineTransform
from ._elementwise_transforms import ExpTransform as ExpTransform
from ._elementwise_transforms import PowerTransform as PowerTransform
from ._elementwise_transforms import SigmoidTransform as SigmoidTransform
from ._elementwise_transforms import SoftplusTransform as SoftplusTransform
from ._elementwise_transforms import TanhTransform as TanhTransform
from ._transform import ComposeTransform as ComposeTransform
from ._transform import Transform as Transform
from ._transform import identity_transform as identity_transform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
