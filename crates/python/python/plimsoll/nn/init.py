"""First values of parameters, in place: PyTorch's `nn.init`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._modes import no_grad
from .._plimsoll import Tensor, empty_like, float32, float64, where

_PLAIN = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """What deviations are multiplied by so that a nonlinearity keeps them."""
    if nonlinearity in _PLAIN:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        else:
            slope = param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from a to b."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from a normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draws from a normal distribution of which only what lies from a to b is left."""
    is_far = mean < a - 2 * std or mean > b + 2 * std
    if is_far:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with no_grad():
        # A dry run's tensor has no values to take or refuse.
        if is_far and not tensor.device._is_dry:
            return _far_out_(tensor, mean, std, a, b, generator)
        if tensor.dtype not in (float32, float64):
            # Halves have too few numbers near the ends of the even distribution that is drawn first.
            return tensor.copy_(trunc_normal_(tensor.to(float32), mean, std, a, b, generator))
        # By the inverse of the distribution function.
        low, high = below((a - mean) / std), below((b - mean) / std)
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0)).add_(mean)
        return tensor.clamp_(min=a, max=b)


def _far_out_(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """The same where the mean is so far outside that both ends round to the same value of the distribution function:
    values of an even distribution, each taken as often as the normal one has it, drawn again until all are taken."""
    if tensor.dtype not in (float32, float64):
        # Squares of fewer bits would take many values of the far end.
        drawn = tensor.to(float32)
        return tensor.copy_(_far_out_(drawn, mean, std, a, b, generator))
    highest = min(max(mean, a), b)
    tensor.uniform_(a, b, generator=generator)
    candidate, chance = tensor.clone(), empty_like(tensor)
    waiting = None
    while True:
        # Of both densities only the ratio counts, and of it the logarithm, which does not round to 0.
        ratio = candidate.sub_(mean).div_(std).square_().neg_().add_(((highest - mean) / std) ** 2).mul_(0.5)
        refused = chance.uniform_(generator=generator).log_() > ratio
        waiting = refused if waiting is None else waiting.logical_and_(refused)
        if not waiting.any():
            return tensor
        candidate.uniform_(a, b, generator=generator)
        tensor.copy_(where(waiting, candidate, tensor))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Writes one value everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Writes ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Writes zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Writes the identity to a matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1.0)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Writes a convolution's weight that gives channels on as they are."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    channels = tensor.size(0)
    if channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    each = channels // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for at in range(min(each, tensor.size(1))):
                tensor[(group * each + at, at, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's uniform distribution."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's normal distribution."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def _nothing_to_do(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """He's uniform distribution."""
    if _nothing_to_do(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(fan)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """He's normal distribution."""
    if _nothing_to_do(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Draws a matrix whose rows or columns, whichever are fewer, are orthogonal to each other and of length `gain`."""
    from .._plimsoll import empty

    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    short, long = min(rows, columns), max(rows, columns)
    with no_grad():
        drawn = empty((short, long), dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
        for at in range(short):
            vector, done = drawn[at], drawn[:at]
            # Twice, since what rounding leaves of the others is taken out only then.
            for _ in range(2 if at else 0):
                vector -= done.T.mv(done.mv(vector))
            vector /= vector.norm()
        found = drawn if rows <= columns else drawn.T
        return tensor.copy_(found.reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draws from a normal distribution, and writes zeros to a share of each column."""
    from .._plimsoll import randperm

    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor


_OLD = (
    "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal", "sparse",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """The names of old, without the underscore."""
    if name not in _OLD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = globals()[name + "_"]

    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2
        )
        return new(*args, **kwargs)

    return old
