"""Entries that are judged in a way of their own, each with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def always(_sample: Any) -> bool:
    return True


def dropout_p(sample: Any) -> bool:
    return sample.kwargs.get("dropout_p", 0.0) > 0.0


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
    "nn.functional.multi_head_attention_forward": dropout_p,
    "nn.functional.rrelu": always,
    "nn.functional.scaled_dot_product_attention": dropout_p,
    "normal": always,
    "rand_like": always,
    "randint": always,
    "randint_like": always,
    "randn": always,
    "randn_like": always,
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

# Random entries whose numbers are drawn together: a whole channel or window at a time.
DRAWN_TOGETHER = {
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "multinomial",
}
