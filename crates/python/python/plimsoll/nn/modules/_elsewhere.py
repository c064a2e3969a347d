"""Names that PyTorch has in one file and this package in another: `from torch.nn.modules.pooling import AdaptiveAvgPool2d`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: By PyTorch's file, then by ours.
_PLACES: dict[str, dict[str, tuple[str, ...]]] = {
    "activation": {"attention": ("MultiheadAttention",)},
    "batchnorm": {"lazy_layers": ("LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d")},
    "container": {"parameter_container": ("ParameterDict", "ParameterList")},
    "conv": {
        "lazy_conv": (
            "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
        ),
    },
    "instancenorm": {"lazy_layers": ("LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d")},
    "linear": {"lazy_layers": ("LazyLinear",)},
    "loss": {
        "linear_cross_entropy": ("LinearCrossEntropyLoss",),
        "margin_loss": (
            "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
            "MultiMarginLoss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
        ),
    },
    "pooling": {
        "adaptive_pooling": (
            "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
            "AdaptiveMaxPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "_AdaptiveAvgPoolNd", "_AdaptiveMaxPoolNd",
        ),
    },
    "rnn": {"rnn_cell": ("GRUCell", "LSTMCell", "RNNCell", "RNNCellBase")},
}  # fmt: skip


def of(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of one of PyTorch's files."""
    package, _, file = module.rpartition(".")
    places = {name: place for place, names in _PLACES[file].items() for name in names}

    def __getattr__(name: str) -> Any:
        if name in places:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
