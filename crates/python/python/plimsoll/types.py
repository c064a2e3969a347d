"""Names of types for annotations, as programs import them from PyTorch."""

from __future__ import annotations

import os
from typing import IO, Sequence, Union

from ._plimsoll import Tensor as Tensor
from ._plimsoll import device as _device
from ._plimsoll import dtype as _dtype
from ._size import Size as Size

Number = Union[int, float, bool]
Device = Union[_device, str, int, None]
FileLike = Union[str, "os.PathLike[str]", IO[bytes]]
_int, _float, _bool = int, float, bool
_size = Union[Size, list[int], tuple[int, ...]]
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_dtype = _dtype
