"""Schedulers of learning rates, under PyTorch's names: `scheduler.step()` after `optimizer.step()`."""

from ._by_factor import ConstantLR as ConstantLR
from ._by_factor import ExponentialLR as ExponentialLR
from ._by_factor import LinearLR as LinearLR
from ._by_factor import MultiStepLR as MultiStepLR
from ._by_factor import PolynomialLR as PolynomialLR
from ._by_factor import StepLR as StepLR
from ._by_function import LambdaLR as LambdaLR
from ._by_function import MultiplicativeLR as MultiplicativeLR
from ._combined import ChainedScheduler as ChainedScheduler
from ._combined import SequentialLR as SequentialLR
from ._cosine import CosineAnnealingLR as CosineAnnealingLR
from ._cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from ._cyclic import CyclicLR as CyclicLR
from ._one_cycle import OneCycleLR as OneCycleLR
from ._plateau import ReduceLROnPlateau as ReduceLROnPlateau
from ._scheduler import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from ._scheduler import LRScheduler as LRScheduler
from ._scheduler import _LRScheduler as _LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
