"""Normalization: of batches, instances, groups, layers and neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .. import _plimsoll
from .._listed import listed
from .._modes import no_grad
from .._plimsoll import Tensor
from . import _functional

# What 1 can be told apart from, by PyTorch's names.
EPSILON = {
    _plimsoll.float16: 2.0**-10,
    _plimsoll.bfloat16: 2.0**-7,
    _plimsoll.float32: 2.0**-23,
    _plimsoll.float64: 2.0**-52,
}


def _check_batch(sizes: Sequence[int]) -> None:
    if sizes[0] * prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(sizes)}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 for each channel, of the batch in training, else of the running statistics."""
    if input.dim() == 1 and input.numel() == 0:
        return input.clone()
    if training:
        _check_batch(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return _plimsoll.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _repeated(channels: Tensor | None, batch: int) -> Tensor | None:
    if channels is None:
        return None
    return channels.unsqueeze(0).expand(batch, channels.size(0)).reshape(batch * channels.size(0))


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 for each channel of each sample: a batch norm in which samples are channels."""
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {tuple(input.shape)}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("instance_norm: without the input's statistics it needs running_mean and running_var")
    batch, channels = input.shape[:2]
    mean, var = _repeated(running_mean, batch), _repeated(running_var, batch)
    result = _plimsoll.batch_norm(
        input.contiguous().reshape([1, batch * channels, *input.shape[2:]]),
        mean,
        var,
        _repeated(weight, batch),
        _repeated(bias, batch),
        use_input_stats,
        momentum,
        eps,
    )
    with no_grad():
        for running, used in ((running_mean, mean), (running_var, var)):
            if running is not None and used is not None and use_input_stats:
                running.copy_(used.reshape(batch, channels).mean(0))
    return result.reshape(input.shape)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Mean 0 and variance 1 over groups of channels of each sample."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups > 0:
        _check_batch([input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]])
    return _functional.group_norm(input, num_groups, weight, bias, eps)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions."""
    return _plimsoll.layer_norm(input, normalized_shape, weight, bias, eps)


@listed
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The input over the root of its mean square, over the last dimensions."""
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[len(input.shape) - len(shape) :]) != shape:
        raise RuntimeError(
            f"rms_norm: the normalized shape {list(shape)} must be the last dimensions of the input, whose shape is "
            f"{list(input.shape)}"
        )
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(f"rms_norm: the weight has shape {list(weight.shape)}, but the normalized shape is {list(shape)}")
    half = input.dtype in (_plimsoll.float16, _plimsoll.bfloat16)
    wide = input.float() if half else input
    dims = tuple(range(-len(shape), 0))
    # PyTorch's default is the precision of what it computes in.
    least = EPSILON[wide.dtype] if eps is None else eps
    result = wide * ((wide * wide).mean(dims, True) + least).rsqrt()
    if weight is not None:
        result = result * weight
    return result.to(input.dtype) if half else result


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Each element over a power of the mean square of its neighbours in `size` channels."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = input * input
    channels = input.size(1)
    total = None
    for offset in range(-(size // 2), (size - 1) // 2 + 1):
        kept = channels - abs(offset)
        if kept <= 0:
            continue
        shape = list(input.shape)
        shape[1] = abs(offset)
        zeros = _plimsoll.zeros(shape, dtype=input.dtype, device=input.device)
        shifted = squares.narrow(1, max(offset, 0), kept)
        shifted = _plimsoll.cat([shifted, zeros] if offset > 0 else [zeros, shifted], 1)
        total = shifted if total is None else total + shifted
    if total is None:
        raise RuntimeError(f"local_response_norm: a size of {size} channels has no middle")
    mean = total / size if input.dtype.is_floating_point else _plimsoll.div(total, size, rounding_mode="trunc")
    return input / (mean * alpha + k) ** beta
