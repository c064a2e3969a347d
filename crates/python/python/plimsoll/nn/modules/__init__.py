"""PyTorch's `nn.modules`: every kind of layer, container and loss. A file is loaded when one of its classes is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .module import Module as Module
    from .container import Sequential as Sequential
    from .container import ModuleList as ModuleList
    from .container import ModuleDict as ModuleDict
    from .parameter_container import ParameterList as ParameterList
    from .parameter_container import ParameterDict as ParameterDict
    from .linear import Identity as Identity
    from .linear import Linear as Linear
    from .linear import Bilinear as Bilinear
    from .linear import Flatten as Flatten
    from .linear import Unflatten as Unflatten
    from .conv import Conv1d as Conv1d
    from .conv import Conv2d as Conv2d
    from .conv import Conv3d as Conv3d
    from .conv import ConvTranspose1d as ConvTranspose1d
    from .conv import ConvTranspose2d as ConvTranspose2d
    from .conv import ConvTranspose3d as ConvTranspose3d
    from .activation import Threshold as Threshold
    from .activation import ReLU as ReLU
    from .activation import RReLU as RReLU
    from .activation import Hardtanh as Hardtanh
    from .activation import ReLU6 as ReLU6
    from .activation import Sigmoid as Sigmoid
    from .activation import Hardsigmoid as Hardsigmoid
    from .activation import Tanh as Tanh
    from .activation import SiLU as SiLU
    from .activation import Mish as Mish
    from .activation import Hardswish as Hardswish
    from .activation import ELU as ELU
    from .activation import CELU as CELU
    from .activation import SELU as SELU
    from .activation import GLU as GLU
    from .activation import GELU as GELU
    from .activation import Hardshrink as Hardshrink
    from .activation import LeakyReLU as LeakyReLU
    from .activation import LogSigmoid as LogSigmoid
    from .activation import Softplus as Softplus
    from .activation import Softshrink as Softshrink
    from .activation import PReLU as PReLU
    from .activation import Softsign as Softsign
    from .activation import Tanhshrink as Tanhshrink
    from .activation import Softmin as Softmin
    from .activation import Softmax as Softmax
    from .activation import LogSoftmax as LogSoftmax
    from .activation import Softmax2d as Softmax2d
    from .attention import MultiheadAttention as MultiheadAttention
    from .loss import L1Loss as L1Loss
    from .loss import MSELoss as MSELoss
    from .loss import NLLLoss as NLLLoss
    from .loss import NLLLoss2d as NLLLoss2d
    from .loss import PoissonNLLLoss as PoissonNLLLoss
    from .loss import GaussianNLLLoss as GaussianNLLLoss
    from .loss import KLDivLoss as KLDivLoss
    from .loss import BCELoss as BCELoss
    from .loss import BCEWithLogitsLoss as BCEWithLogitsLoss
    from .loss import SmoothL1Loss as SmoothL1Loss
    from .loss import HuberLoss as HuberLoss
    from .loss import CrossEntropyLoss as CrossEntropyLoss
    from .loss import CTCLoss as CTCLoss
    from .margin_loss import HingeEmbeddingLoss as HingeEmbeddingLoss
    from .margin_loss import MultiLabelMarginLoss as MultiLabelMarginLoss
    from .margin_loss import SoftMarginLoss as SoftMarginLoss
    from .margin_loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
    from .margin_loss import CosineEmbeddingLoss as CosineEmbeddingLoss
    from .margin_loss import MarginRankingLoss as MarginRankingLoss
    from .margin_loss import MultiMarginLoss as MultiMarginLoss
    from .margin_loss import TripletMarginLoss as TripletMarginLoss
    from .margin_loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
    from .linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions
    from .linear_cross_entropy import LinearCrossEntropyLoss as LinearCrossEntropyLoss
    from .pooling import MaxPool1d as MaxPool1d
    from .pooling import MaxPool2d as MaxPool2d
    from .pooling import MaxPool3d as MaxPool3d
    from .pooling import MaxUnpool1d as MaxUnpool1d
    from .pooling import MaxUnpool2d as MaxUnpool2d
    from .pooling import MaxUnpool3d as MaxUnpool3d
    from .pooling import AvgPool1d as AvgPool1d
    from .pooling import AvgPool2d as AvgPool2d
    from .pooling import AvgPool3d as AvgPool3d
    from .pooling import LPPool1d as LPPool1d
    from .pooling import LPPool2d as LPPool2d
    from .pooling import LPPool3d as LPPool3d
    from .adaptive_pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
    from .adaptive_pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
    from .adaptive_pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
    from .adaptive_pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
    from .adaptive_pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
    from .adaptive_pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
    from .adaptive_pooling import FractionalMaxPool2d as FractionalMaxPool2d
    from .adaptive_pooling import FractionalMaxPool3d as FractionalMaxPool3d
    from .padding import CircularPad1d as CircularPad1d
    from .padding import CircularPad2d as CircularPad2d
    from .padding import CircularPad3d as CircularPad3d
    from .padding import ConstantPad1d as ConstantPad1d
    from .padding import ConstantPad2d as ConstantPad2d
    from .padding import ConstantPad3d as ConstantPad3d
    from .padding import ReflectionPad1d as ReflectionPad1d
    from .padding import ReflectionPad2d as ReflectionPad2d
    from .padding import ReflectionPad3d as ReflectionPad3d
    from .padding import ReplicationPad1d as ReplicationPad1d
    from .padding import ReplicationPad2d as ReplicationPad2d
    from .padding import ReplicationPad3d as ReplicationPad3d
    from .padding import ZeroPad1d as ZeroPad1d
    from .padding import ZeroPad2d as ZeroPad2d
    from .padding import ZeroPad3d as ZeroPad3d
    from .batchnorm import BatchNorm1d as BatchNorm1d
    from .batchnorm import BatchNorm2d as BatchNorm2d
    from .batchnorm import BatchNorm3d as BatchNorm3d
    from .batchnorm import SyncBatchNorm as SyncBatchNorm
    from .instancenorm import InstanceNorm1d as InstanceNorm1d
    from .instancenorm import InstanceNorm2d as InstanceNorm2d
    from .instancenorm import InstanceNorm3d as InstanceNorm3d
    from .normalization import LocalResponseNorm as LocalResponseNorm
    from .normalization import CrossMapLRN2d as CrossMapLRN2d
    from .normalization import LayerNorm as LayerNorm
    from .normalization import GroupNorm as GroupNorm
    from .normalization import RMSNorm as RMSNorm
    from .dropout import Dropout as Dropout
    from .dropout import Dropout1d as Dropout1d
    from .dropout import Dropout2d as Dropout2d
    from .dropout import Dropout3d as Dropout3d
    from .dropout import AlphaDropout as AlphaDropout
    from .dropout import FeatureAlphaDropout as FeatureAlphaDropout
    from .sparse import Embedding as Embedding
    from .sparse import EmbeddingBag as EmbeddingBag
    from .rnn import RNNBase as RNNBase
    from .rnn import RNN as RNN
    from .rnn import GRU as GRU
    from .rnn import LSTM as LSTM
    from .rnn_cell import RNNCellBase as RNNCellBase
    from .rnn_cell import RNNCell as RNNCell
    from .rnn_cell import LSTMCell as LSTMCell
    from .rnn_cell import GRUCell as GRUCell
    from .transformer_layer import TransformerEncoderLayer as TransformerEncoderLayer
    from .transformer_layer import TransformerDecoderLayer as TransformerDecoderLayer
    from .transformer import TransformerEncoder as TransformerEncoder
    from .transformer import TransformerDecoder as TransformerDecoder
    from .transformer import Transformer as Transformer
    from .upsampling import Upsample as Upsample
    from .upsampling import UpsamplingNearest2d as UpsamplingNearest2d
    from .upsampling import UpsamplingBilinear2d as UpsamplingBilinear2d
    from .shuffling import PixelShuffle as PixelShuffle
    from .shuffling import PixelUnshuffle as PixelUnshuffle
    from .shuffling import ChannelShuffle as ChannelShuffle
    from .shuffling import Fold as Fold
    from .shuffling import Unfold as Unfold
    from .distance import PairwiseDistance as PairwiseDistance
    from .distance import CosineSimilarity as CosineSimilarity
    from .adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
    from .lazy_layers import LazyLinear as LazyLinear
    from .lazy_layers import LazyBatchNorm1d as LazyBatchNorm1d
    from .lazy_layers import LazyBatchNorm2d as LazyBatchNorm2d
    from .lazy_layers import LazyBatchNorm3d as LazyBatchNorm3d
    from .lazy_layers import LazyInstanceNorm1d as LazyInstanceNorm1d
    from .lazy_layers import LazyInstanceNorm2d as LazyInstanceNorm2d
    from .lazy_layers import LazyInstanceNorm3d as LazyInstanceNorm3d
    from .lazy_conv import LazyConv1d as LazyConv1d
    from .lazy_conv import LazyConv2d as LazyConv2d
    from .lazy_conv import LazyConv3d as LazyConv3d
    from .lazy_conv import LazyConvTranspose1d as LazyConvTranspose1d
    from .lazy_conv import LazyConvTranspose2d as LazyConvTranspose2d
    from .lazy_conv import LazyConvTranspose3d as LazyConvTranspose3d

# The file of each class.
_FILES = {
    "module": (
        "Module",
    ),
    "container": (
        "Sequential", "ModuleList", "ModuleDict",
    ),
    "parameter_container": (
        "ParameterList", "ParameterDict",
    ),
    "linear": (
        "Identity", "Linear", "Bilinear", "Flatten", "Unflatten",
    ),
    "conv": (
        "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    ),
    "activation": (
        "Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish",
        "Hardswish", "ELU", "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus",
        "Softshrink", "PReLU", "Softsign", "Tanhshrink", "Softmin", "Softmax", "LogSoftmax", "Softmax2d",
    ),
    "attention": (
        "MultiheadAttention",
    ),
    "loss": (
        "L1Loss", "MSELoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "GaussianNLLLoss", "KLDivLoss", "BCELoss",
        "BCEWithLogitsLoss", "SmoothL1Loss", "HuberLoss", "CrossEntropyLoss", "CTCLoss",
    ),
    "margin_loss": (
        "HingeEmbeddingLoss", "MultiLabelMarginLoss", "SoftMarginLoss", "MultiLabelSoftMarginLoss",
        "CosineEmbeddingLoss", "MarginRankingLoss", "MultiMarginLoss", "TripletMarginLoss",
        "TripletMarginWithDistanceLoss",
    ),
    "linear_cross_entropy": (
        "LinearCrossEntropyOptions", "LinearCrossEntropyLoss",
    ),
    "pooling": (
        "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d", "AvgPool2d",
        "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
    ),
    "adaptive_pooling": (
        "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    ),
    "padding": (
        "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
        "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
        "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
    ),
    "batchnorm": (
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm",
    ),
    "instancenorm": (
        "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    ),
    "normalization": (
        "LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm",
    ),
    "dropout": (
        "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout",
    ),
    "sparse": (
        "Embedding", "EmbeddingBag",
    ),
    "rnn": (
        "RNNBase", "RNN", "GRU", "LSTM",
    ),
    "rnn_cell": (
        "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell",
    ),
    "transformer_layer": (
        "TransformerEncoderLayer", "TransformerDecoderLayer",
    ),
    "transformer": (
        "TransformerEncoder", "TransformerDecoder", "Transformer",
    ),
    "upsampling": (
        "Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d",
    ),
    "shuffling": (
        "PixelShuffle", "PixelUnshuffle", "ChannelShuffle", "Fold", "Unfold",
    ),
    "distance": (
        "PairwiseDistance", "CosineSimilarity",
    ),
    "adaptive": (
        "AdaptiveLogSoftmaxWithLoss",
    ),
    "lazy_layers": (
        "LazyLinear", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyInstanceNorm1d",
        "LazyInstanceNorm2d", "LazyInstanceNorm3d",
    ),
    "lazy_conv": (
        "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    ),
}  # fmt: skip
_PLACES = {name: file for file, names in _FILES.items() for name in names}
__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss",
    "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "CELU", "CTCLoss", "ChannelShuffle",
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d",
    "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss",
    "CosineSimilarity", "CrossEntropyLoss", "CrossMapLRN2d", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU",
    "Embedding", "EmbeddingBag", "FeatureAlphaDropout", "Flatten", "Fold", "FractionalMaxPool2d",
    "FractionalMaxPool3d", "GELU", "GLU", "GRU", "GRUCell", "GaussianNLLLoss", "GroupNorm", "Hardshrink",
    "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d", "LSTM", "LSTMCell",
    "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear", "LeakyReLU", "Linear", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions",
    "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MSELoss", "MarginRankingLoss", "MaxPool1d", "MaxPool2d",
    "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "Mish", "Module", "ModuleDict", "ModuleList",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "MultiheadAttention", "NLLLoss",
    "NLLLoss2d", "PReLU", "PairwiseDistance", "ParameterDict", "ParameterList", "PixelShuffle", "PixelUnshuffle",
    "PoissonNLLLoss", "RMSNorm", "RNN", "RNNBase", "RNNCell", "RNNCellBase", "RReLU", "ReLU", "ReLU6",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "SELU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold",
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip
_SUBMODULES = (*_FILES, "channelshuffle", "flatten", "fold", "lazy", "pixelshuffle", "utils")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PLACES:
        found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = found
        return found
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_SUBMODULES})
