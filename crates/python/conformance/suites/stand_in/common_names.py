"""Small things that test files import from `torch.testing._internal.common_utils`: temporary files, default dtypes, switches."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import os
import random
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from stand_in import variants
from stand_in.dtypes import by_name, dtype_name

TEST_SCIPY = importlib.util.find_spec("scipy") is not None


@contextlib.contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    was = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(was)


@contextlib.contextmanager
def set_default_tensor_type(kind: Any) -> Iterator[None]:
    was = torch.tensor([]).type()
    torch.set_default_tensor_type(kind)
    try:
        yield
    finally:
        torch.set_default_tensor_type(was)


@contextlib.contextmanager
def TemporaryFileName(*args: Any, **named: Any) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        handle, path = tempfile.mkstemp(dir=folder, suffix=named.get("suffix"))
        os.close(handle)
        yield path


@contextlib.contextmanager
def TemporaryDirectoryName(suffix: str | None = None) -> Iterator[str]:
    with tempfile.TemporaryDirectory(suffix=suffix) as folder:
        yield folder


class BytesIOContext(io.BytesIO):
    """A file in memory that stays open after its block."""

    def __exit__(self, *error: object) -> None:
        pass


def both_checks(test: Any, function: Callable, inputs: Any, **options: Any) -> None:
    options.pop("check_batched_grad", None)
    options.setdefault("fast_mode", True)
    test.assertTrue(torch.autograd.gradcheck(function, inputs, **options))
    test.assertTrue(torch.autograd.gradgradcheck(function, inputs, **options))


def noncontiguous_like(tensor: Any) -> Any:
    """The same values with a step of two in memory."""
    if not tensor.is_contiguous() or tensor.numel() <= 1:
        return tensor
    made = torch.stack([tensor.detach(), torch.full_like(tensor, 12)], dim=-1)[..., 0]
    return made.requires_grad_(tensor.requires_grad)


def bytes_to_scalar(byte_list: list[int], dtype: Any, device: Any) -> Any:
    """The number whose bytes these are."""
    return torch.frombuffer(bytearray(byte_list), dtype=dtype).to(device)[0]


def set_rng_seed(seed: int | None = None) -> None:
    seed = 1234 if seed is None else seed
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def large_tensor_test(size: Any, device: Any = None, inductor: bool = False) -> Callable:
    """A test of gigabytes does not run."""
    return unittest.skip("only runs on a machine with much memory")


def skip_if_no_scipy(test: Callable) -> Callable:
    return test if TEST_SCIPY else unittest.skip("only runs on a machine with SciPy")(test)


def xfail_if(condition: bool) -> Callable:
    return unittest.expectedFailure if condition else lambda test: test


def iter_indices(tensor: Any) -> Any:
    if tensor.dim() == 0:
        return range(0)
    return range(tensor.size(0)) if tensor.dim() == 1 else itertools.product(*(range(size) for size in tensor.size()))


NUMPY = {
    "bool": np.bool_,
    "bfloat16": np.float32,
    **{name: getattr(np, name) for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")},
    **{name: getattr(np, name) for name in ("float16", "float32", "float64", "complex64", "complex128")},
    "complex32": np.complex64,
}
COMMON: dict[str, Any] = {
    "dtype_name": dtype_name,
    "set_default_dtype": set_default_dtype,
    "set_default_tensor_type": set_default_tensor_type,
    "swap": variants.swap,
    "_assertGradAndGradgradChecks": both_checks,
    "GRADCHECK_NONDET_TOL": 0.0,
    "dtype2prec_DONTUSE": {torch.float32: 1e-5, torch.float64: 1e-5, torch.float16: 1e-2, torch.bfloat16: 1e-1},
    "TemporaryFileName": TemporaryFileName,
    "TemporaryDirectoryName": TemporaryDirectoryName,
    "BytesIOContext": BytesIOContext,
    "noncontiguous_like": noncontiguous_like,
    "bytes_to_scalar": bytes_to_scalar,
    "torch_to_numpy_dtype_dict": {by_name(name): made for name, made in NUMPY.items()},
    "iter_indices": iter_indices,
    "is_iterable_of_tensors": lambda given: isinstance(given, (list, tuple)) and all(isinstance(each, torch.Tensor) for each in given),
    "set_rng_seed": set_rng_seed,
    "skipIfNoSciPy": skip_if_no_scipy,
    "xfailIf": xfail_if,
    "TEST_NUMPY": True,
    "TEST_SCIPY": TEST_SCIPY,
    "IS_FILESYSTEM_UTF8_ENCODING": True,
    "MACOS_VERSION": 0.0,
    "MI200_ARCH": (),
    "MI300_ARCH": (),
    "isRocmArchAnyOf": lambda *archs: False,
    "load_tests": None,
}
CHANGE_NOTHING = [
    *["skipIfRocm", "skipIfRocmArch", "skipIfCrossRef", "skipIfTorchInductor", "skipIfNoDill", "skipCUDAMemoryLeakCheckIf"],
    *["gcIfJetson", "xfailIfNoAcceleratorTriton", "xfailIfS390X", "slowTestIf", "decorateIf", "markDynamoStrictTest"],
    *["wrapDeterministicFlagAPITest"],
]
OFF = [
    *["TEST_WITH_CROSSREF", "TEST_WITH_ROCM", "TEST_WITH_UBSAN", "TEST_WITH_TSAN", "TEST_WITH_MTIA", "TEST_WITH_TORCHINDUCTOR"],
    *["TEST_PRIVATEUSE1", "TEST_PRIVATEUSE1_DEVICE_TYPE", "TEST_DILL", "IS_PPC", "IS_S390X", "IS_JETSON", "IS_SANDCASTLE"],
    *["IS_REMOTE_GPU", "IS_CI", "IS_CPU_CAPABILITY_SVE256", "IS_CPU_EXT_SVE_SUPPORTED"],
]
CHANGE_NOTHING_BY_DEVICE = [
    *["skipCUDAIf", "skipCUDAIfRocm", "skipCUDAIfNotRocm", "skipCUDAIfMiopen", "skipCUDAIfNoCudnn", "skipCUDAIfNoMiopen"],
    *["skipCUDAIfRocmHipBlasltVersionLessThan", "skipMPS", "skipXPU", "skipCPUIfNoMkldnn", "disablecuDNN", "disableMkldnn"],
    *["expectedFailureMeta", "expectedFailureXLA"],
]
CUDA: dict[str, Any] = {
    "TEST_CUDA": False,
    "TEST_MULTIGPU": False,
    "TEST_CUDNN": False,
    "CDNA3OrLater": lambda: False,
    "_get_torch_rocm_version": lambda: (0, 0),
    "tf32_off": contextlib.nullcontext,
    "tf32_on": contextlib.nullcontext,
}
