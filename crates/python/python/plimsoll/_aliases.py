"""PyTorch's other names of operations, most of them NumPy's."""

from __future__ import annotations

from ._plimsoll import Tensor
from ._plimsoll import abs as absolute
from ._plimsoll import acos as arccos
from ._plimsoll import acosh as arccosh
from ._plimsoll import asin as arcsin
from ._plimsoll import asinh as arcsinh
from ._plimsoll import atan as arctan
from ._plimsoll import atan2 as arctan2
from ._plimsoll import atanh as arctanh
from ._plimsoll import clamp as clip
from ._plimsoll import div as divide
from ._plimsoll import ge as greater_equal
from ._plimsoll import gt as greater
from ._plimsoll import le as less_equal
from ._plimsoll import lt as less
from ._plimsoll import mul as multiply
from ._plimsoll import ne as not_equal
from ._plimsoll import neg as negative
from ._plimsoll import sub as subtract
from ._plimsoll import trunc as fix

__all__ = [
    "absolute",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "clip",
    "divide",
    "fix",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "multiply",
    "negative",
    "not_equal",
    "subtract",
]

# Methods are functions' namesakes: each has a form in place too.
for _alias in __all__:
    _name = globals()[_alias].__name__
    for _ending in ("", "_"):
        setattr(Tensor, _alias + _ending, getattr(Tensor, _name + _ending))
