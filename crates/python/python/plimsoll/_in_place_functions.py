"""Functions that write to their argument, `torch.relu_(x)`: each is the method of its name."""

from __future__ import annotations

from typing import Any, Callable

from ._plimsoll import Tensor

NAMES = (
    "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ atanh_ "
    "ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ "
    "fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ "
    "rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_"
).split()


def _function(name: str) -> Callable[..., Tensor]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(input, name)(*args, **kwargs)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__module__ = "plimsoll"
    call.__doc__ = f"`input.{name}(…)`: writes the result to `input`."
    return call


FUNCTIONS = {name: _function(name) for name in NAMES}
