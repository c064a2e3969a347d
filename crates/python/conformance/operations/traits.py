"""Entries that are judged in a way of their own, each with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.common_device_type import precisionOverride

from judge import TOLERANCES, Invariants


def looseness(op: Any) -> float:
    """How many times wider than usual the tolerance is that an entry states for all tests of its float64."""
    stated = [one.d.get(torch.float64) for one in op.decorators if isinstance(one, precisionOverride)]
    return max([1.0, *(precision / TOLERANCES[torch.float64][1] for precision in stated if precision)])


def always(_sample: Any) -> bool:
    return True


def dropout_p(sample: Any) -> bool:
    return sample.kwargs.get("dropout_p", 0.0) > 0.0


def drops_weights(sample: Any) -> bool:
    """Of `multi_head_attention_forward`, whose eleventh argument is the probability."""
    return sample.args[9] > 0.0 and sample.kwargs.get("training", True)


# Results are random numbers: judged by dtype, shape and distribution over many calls. The function tells which samples are.
RANDOM: dict[str, Callable[[Any], bool]] = {
    "bernoulli": always,
    "cauchy": always,
    "exponential": always,
    "geometric": always,
    "log_normal": always,
    "multinomial": always,
    "native_dropout": always,
    "nn.functional.alpha_dropout": always,
    "nn.functional.dropout": always,
    "nn.functional.dropout2d": always,
    "nn.functional.dropout3d": always,
    "nn.functional.feature_alpha_dropout": always,
    "nn.functional.fractional_max_pool2d": always,
    "nn.functional.fractional_max_pool3d": always,
    "nn.functional.multi_head_attention_forward": drops_weights,
    "nn.functional.rrelu": always,
    "nn.functional.scaled_dot_product_attention": dropout_p,
    "normal": always,
    "pca_lowrank": always,
    "rand_like": always,
    "randint": always,
    "randint_like": always,
    "randn": always,
    "randn_like": always,
    "svd_lowrank": always,
    "uniform": always,
}

# Results are memory as it was found: judged by dtype, shape and strides.
UNSET = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}

# Among equal elements any may be the one that an index names: an index other than PyTorch's is right if the element there is.
TIES = {"argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}

# Gradients that PyTorch's own `gradcheck` refutes are not compared.
REFUTED_GRADIENTS = {"as_strided_scatter"}

# Random entries whose numbers are drawn together: a whole channel or window at a time, or results that share draws.
DRAWN_TOGETHER = {
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.scaled_dot_product_attention",
    "multinomial",
    "pca_lowrank",
    "svd_lowrank",
}


def of_svd(results: list[torch.Tensor]) -> list[torch.Tensor]:
    """U, S, V: the values, the product, which the signs of the vectors do not change, and that the vectors are
    orthonormal, those beyond the values too."""
    u, s, v = results
    few = s.shape[-1]
    if not (u.numel() and v.numel()):
        return [s]
    return [s, (u[..., :few] * s.unsqueeze(-2)) @ v[..., :few].mT, u.mT @ u, v.mT @ v]


def of_linalg_svd(results: list[torch.Tensor]) -> list[torch.Tensor]:
    u, s, vh = results
    return of_svd([u, s, vh.mT])


def of_eigh(results: list[torch.Tensor]) -> list[torch.Tensor]:
    values, vectors = results
    return [values, (vectors * values.unsqueeze(-2)) @ vectors.mT, vectors.mT @ vectors]


# Entries with several right answers, by what all of them have in common.
INVARIANTS = {
    "linalg.eigh": Invariants(of_eigh, 1e-5),
    "linalg.svd": Invariants(of_linalg_svd, 1e-5),
    "svd": Invariants(of_svd, 1e-5),
}
