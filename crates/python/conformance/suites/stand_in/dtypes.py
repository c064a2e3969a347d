"""Dtypes by name, those that are missing here among them, and PyTorch's lists of dtypes: `floating_types_and(...)` and so on."""

from __future__ import annotations

from typing import Any

import torch

# By the names that PyTorch documents; a second name stands for the first.
NAMES = [
    *["uint8", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32", "float64"],
    *["complex32", "complex64", "complex128", "uint16", "uint32", "uint64"],
    *["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"],
    *["quint8", "qint8", "qint32", "quint4x2", "quint2x4"],
]
SECOND = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32", "long": "int64"}
SECOND |= {"chalf": "complex32", "cfloat": "complex64", "cdouble": "complex128"}


class AbsentDtype:
    """A dtype that does not exist here, so that a variant for it can be named."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_complex = name.startswith("complex")
        self.is_floating_point = name.startswith("float")

    def __repr__(self) -> str:
        return f"torch.{self.name}"


ABSENT = {name: AbsentDtype(name) for name in NAMES if not hasattr(torch, name)}


def by_name(name: str) -> Any:
    name = SECOND.get(name, name)
    return ABSENT.get(name) or getattr(torch, name)


def is_dtype(value: Any) -> bool:
    return isinstance(value, (torch.dtype, AbsentDtype))


def dtype_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


_FLOATING = [by_name(name) for name in ("float32", "float64")]
_INTEGRAL = [by_name(name) for name in ("uint8", "int8", "int16", "int32", "int64")]
_COMPLEX = [by_name(name) for name in ("complex64", "complex128")]
_FLOAT8 = [by_name(name) for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")]


def complex_types() -> tuple:
    return tuple(_COMPLEX)


def floating_types() -> tuple:
    return tuple(_FLOATING)


def floating_types_and(*more: Any) -> tuple:
    return (*_FLOATING, *more)


def floating_and_complex_types() -> tuple:
    return (*_FLOATING, *_COMPLEX)


def floating_and_complex_types_and(*more: Any) -> tuple:
    return (*_FLOATING, *_COMPLEX, *more)


def integral_types() -> tuple:
    return tuple(_INTEGRAL)


def integral_types_and(*more: Any) -> tuple:
    return (*_INTEGRAL, *more)


def all_types() -> tuple:
    return (*_FLOATING, *_INTEGRAL)


def all_types_and(*more: Any) -> tuple:
    return (*_FLOATING, *_INTEGRAL, *more)


def all_types_and_complex() -> tuple:
    return (*_FLOATING, *_INTEGRAL, *_COMPLEX)


def all_types_and_complex_and(*more: Any) -> tuple:
    return (*_FLOATING, *_INTEGRAL, *_COMPLEX, *more)


def all_types_complex_float8_and(*more: Any) -> tuple:
    return (*_FLOATING, *_INTEGRAL, *_COMPLEX, *_FLOAT8, *more)


def all_mps_types_and(*more: Any) -> tuple:
    return tuple(by_name(name) for name in ("float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")) + more


def highest_precision_float(device: Any) -> Any:
    return torch.float64


def get_all_dtypes(include_half=True, include_bfloat16=True, include_bool=True, include_complex=True, include_complex32=False, include_qint=False) -> list:
    more = {"bool": include_bool, "float16": include_half, "bfloat16": include_bfloat16, "complex32": include_complex32}
    return [*get_all_int_dtypes(), *_FLOATING, *(_COMPLEX if include_complex else []), *(by_name(name) for name, wanted in more.items() if wanted)]


def get_all_math_dtypes(device: Any) -> list:
    return [*get_all_int_dtypes(), *_FLOATING, *_COMPLEX]


def get_all_int_dtypes() -> list:
    return list(_INTEGRAL)


def get_all_qint_dtypes() -> list:
    return [by_name(name) for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4")]


float_to_corresponding_complex_type_map = {
    by_name(real): by_name(pair) for real, pair in (("float16", "complex32"), ("float32", "complex64"), ("float64", "complex128"))
}
