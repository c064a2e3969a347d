"""Modules that PyTorch's database leaves out, with inputs of ours, in the shape of its entries."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import FunctionInput, ModuleInput


def _ints(*values: Any) -> torch.Tensor:
    return torch.tensor(values)


class _Shapes:
    """Says of an argument that it is a float tensor of a shape."""

    def __init__(self, *shape: int, wants: bool = True) -> None:
        self.shape = shape
        self.wants = wants

    def made(self, dtype: torch.dtype) -> torch.Tensor:
        return torch.randn(self.shape, dtype=torch.float64).to(dtype).requires_grad_(self.wants)


T = _Shapes


def entry(kind: type, *samples: tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]) -> Any:
    """Samples are the constructor's arguments and keywords, and the arguments of a call."""

    def inputs(info: Any, device: str, dtype: torch.dtype, requires_grad: bool, training: bool) -> list[Any]:
        return [
            ModuleInput(
                constructor_input=FunctionInput(*copy.deepcopy(args), **kwargs),
                forward_input=FunctionInput(*(arg.made(dtype) if isinstance(arg, T) else arg for arg in call)),
            )
            for args, kwargs, call in samples
        ]

    return SimpleNamespace(name=f"nn.{kind.__name__}", module_cls=kind, module_inputs_func=inputs)


def _dropouts() -> list[Any]:
    """What is certain: nothing is dropped, or all."""
    kinds = [
        (nn.Dropout, T(3, 4)), (nn.Dropout1d, T(2, 3, 4)), (nn.Dropout2d, T(2, 3, 4, 4)),
        (nn.Dropout3d, T(2, 3, 2, 2, 2)), (nn.AlphaDropout, T(3, 4)), (nn.FeatureAlphaDropout, T(2, 3, 4)),
    ]  # fmt: skip
    return [entry(kind, ((0.0,), {}, (x,)), ((1.0,), {}, (x,))) for kind, x in kinds]


def _resizing() -> list[Any]:
    image = T(1, 4, 4, 6)
    return [
        entry(
            nn.Upsample,
            ((), {"scale_factor": 2}, (image,)),
            (((8, 9),), {"mode": "bilinear"}, (image,)),
            ((), {"scale_factor": (2.0, 1.5), "mode": "bilinear", "align_corners": True}, (image,)),
            ((7,), {"mode": "linear"}, (T(2, 3, 5),)),
            ((), {"scale_factor": 2, "mode": "trilinear"}, (T(1, 2, 2, 3, 2),)),
            ((), {"scale_factor": 2, "mode": "bicubic"}, (image,)),
        ),
        entry(nn.UpsamplingNearest2d, ((), {"scale_factor": 2}, (image,)), ((5,), {}, (image,))),
        entry(nn.UpsamplingBilinear2d, ((), {"scale_factor": 2}, (image,)), ((5,), {}, (image,))),
        entry(nn.PixelShuffle, ((2,), {}, (image,))),
        entry(nn.PixelUnshuffle, ((2,), {}, (image,))),
        entry(nn.ChannelShuffle, ((2,), {}, (image,))),
        entry(nn.Fold, (((4, 5), (2, 2)), {}, (T(1, 8, 12),))),
        entry(nn.Unfold, ((2,), {"stride": 2, "padding": 1}, (image,))),
        entry(nn.Flatten, ((), {}, (image,)), ((0, 2), {}, (image,))),
        entry(nn.Unflatten, ((1, (2, 2)), {}, (image,))),
        entry(nn.Identity, ((3,), {"any": 1}, (image,))),
    ]


def _pools() -> list[Any]:
    places = _ints([[[0, 3, 5]]]).reshape(1, 1, 3)
    return [
        entry(nn.MaxUnpool1d, ((2,), {}, (T(1, 1, 3), places))),
        entry(nn.MaxUnpool2d, ((2,), {}, (T(1, 1, 1, 3), places.reshape(1, 1, 1, 3)))),
        entry(nn.MaxUnpool3d, ((2,), {}, (T(1, 1, 1, 1, 3), places.reshape(1, 1, 1, 1, 3)))),
    ]


def _tables() -> list[Any]:
    rows, starts = _ints(1, 2, 4, 5, 4, 3, 2, 9), _ints(0, 4)
    modes = [{"mode": mode} for mode in ("sum", "mean", "max")]
    bags = [((10, 3), kwargs, (rows, starts)) for kwargs in (*modes, {"padding_idx": 2}, {"norm_type": 1.0})]
    return [
        entry(nn.EmbeddingBag, *bags, ((10, 3), {}, (rows.reshape(2, 4),))),
        entry(
            nn.Embedding,
            ((10, 3), {"padding_idx": -1}, (rows,)),
            ((10, 3), {"scale_grad_by_freq": True}, (rows,)),
            ((10, 3), {"max_norm": 0.5}, (rows,)),
        ),
        entry(
            nn.AdaptiveLogSoftmaxWithLoss,
            ((16, 20, [5, 10]), {}, (T(4, 16), _ints(0, 6, 12, 19))),
            ((16, 20, [5, 10, 15]), {"div_value": 2.0, "head_bias": True}, (T(4, 16), _ints(0, 6, 12, 17))),
            ((16, 20, [5]), {}, (T(16), torch.tensor(7))),
        ),
    ]


def _others() -> list[Any]:
    triple = (T(4, 5), T(4, 5), T(4, 5))
    channels = T(2, 7, 3, 3, wants=False)
    return [
        entry(nn.RReLU, ((0.2, 0.2), {}, (T(3, 4),))),
        entry(nn.Hardsigmoid, ((), {}, (T(3, 4),))),
        # Its gradient in PyTorch is written by hand, and not that of its result: `gradcheck` fails.
        entry(nn.CrossMapLRN2d, ((3,), {}, (channels,)), ((4, 0.1, 0.5, 2), {}, (channels,))),
        entry(nn.CosineSimilarity, ((), {}, triple[:2])),
        entry(nn.PairwiseDistance, ((), {}, triple[:2]), ((1.0, 1e-6, True), {}, triple[:2])),
        entry(nn.TripletMarginLoss, ((), {}, triple), ((), {"p": 1, "swap": True, "reduction": "sum"}, triple)),
        entry(nn.TripletMarginWithDistanceLoss, ((), {"margin": 2.0}, triple)),
        entry(nn.NLLLoss2d, ((), {}, (T(1, 3, 2, 2), _ints([[[0, 1], [2, 0]]]).reshape(1, 2, 2)))),
        entry(
            nn.TransformerDecoder,
            ((nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2, nn.LayerNorm(4)), {}, (T(3, 2, 4), T(5, 2, 4))),
        ),
        entry(nn.LazyLinear, ((3,), {}, (T(2, 5),)), ((3, False), {}, (T(2, 5),))),
        entry(nn.LazyBatchNorm1d, ((), {}, (T(4, 5),)), ((), {"affine": False}, (T(4, 5, 2),))),
        entry(nn.LazyBatchNorm2d, ((), {}, (T(4, 5, 2, 2),)), ((), {"bias": False}, (T(4, 5, 2, 2),))),
        entry(nn.LazyBatchNorm3d, ((), {"momentum": None}, (T(4, 5, 2, 2, 2),))),
        entry(nn.LazyInstanceNorm1d, ((), {}, (T(4, 5, 3),))),
        entry(nn.LazyInstanceNorm2d, ((), {"track_running_stats": False}, (T(4, 5, 2, 2),))),
        entry(nn.LazyInstanceNorm3d, ((), {"affine": False}, (T(4, 5, 2, 2, 2),))),
        entry(nn.Sequential, ((nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4)), {}, (T(2, 3),))),
    ]


ENTRIES = [*_dropouts(), *_resizing(), *_pools(), *_tables(), *_others()]
