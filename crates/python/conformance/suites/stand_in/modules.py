"""The modules of `torch.testing` as the test files see them, by name: each a list of names and what they are here."""

from __future__ import annotations

import contextlib
import functools
import gc
import platform
import re
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing import make_tensor

from stand_in import dtypes as dtype_lists
from stand_in import common_names, variants
from stand_in.nn_case import NN
from stand_in.test_case import TestCase

NATIVE = ("cpu", "cuda", "xpu", "meta", "mps", "mtia")


def as_it_is(*options: Any, **more: Any) -> Any:
    """A decorator that changes nothing on a CPU, with arguments or without."""
    if len(options) == 1 and not more and callable(options[0]):
        return options[0]
    return lambda test: test


def only_on_list(devices: str | list[str]) -> Callable:
    return variants.only_on(*([devices] if isinstance(devices, str) else devices))


def checked(name: str) -> Callable:
    """`gradcheck` as the tests call it: fast by default. Batched gradients are vmap's, and are left out."""

    def check(fn: Callable, inputs: Any, *more: Any, **options: Any) -> bool:
        options.pop("check_batched_grad", None)
        if options.get("fast_mode") is None:
            options["fast_mode"] = True
        return getattr(torch.autograd, name)(fn, inputs, *more, **options)

    return check


@contextlib.contextmanager
def disable_gc() -> Iterator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def set_warn_always_context(new: bool) -> Iterator[None]:
    old = torch.is_warn_always_enabled()
    torch.set_warn_always(new)
    try:
        yield
    finally:
        torch.set_warn_always(old)


class DeterministicGuard:
    """Sets whether only deterministic algorithms are allowed, for a block."""

    def __init__(self, deterministic: bool, *, warn_only: bool = False, fill_uninitialized_memory: bool = True) -> None:
        self.new = (deterministic, warn_only)

    def __enter__(self) -> None:
        self.old = (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
        torch.use_deterministic_algorithms(self.new[0], warn_only=self.new[1])

    def __exit__(self, *error: object) -> None:
        torch.use_deterministic_algorithms(self.old[0], warn_only=self.old[1])


def suppress_warnings(test: Callable) -> Callable:
    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return test(*args, **named)

    return run


def mask_not_all_zeros(shape: Any) -> Any:
    """A random mask of the shape with at least one element that is set."""
    while True:
        mask = torch.randn(shape).gt(0)
        if mask.sum() > 0:
            return mask


def freeze_rng_state() -> Any:
    return torch.random.fork_rng()


COMMON = {
    "TestCase": TestCase,
    "run_tests": lambda *args: None,
    "parametrize": variants.parametrize,
    "subtest": variants.subtest,
    "instantiate_parametrized_tests": variants.instantiate_parametrized_tests,
    "gradcheck": checked("gradcheck"),
    "gradgradcheck": checked("gradgradcheck"),
    "make_tensor": make_tensor,
    "disable_gc": disable_gc,
    "freeze_rng_state": freeze_rng_state,
    "set_warn_always_context": set_warn_always_context,
    "suppress_warnings": suppress_warnings,
    "DeterministicGuard": DeterministicGuard,
    "numpy_to_torch_dtype_dict": {
        np.bool_: torch.bool,
        np.uint8: torch.uint8,
        np.int8: torch.int8,
        np.int16: torch.int16,
        np.int32: torch.int32,
        np.int64: torch.int64,
        np.float16: torch.float16,
        np.float32: torch.float32,
        np.float64: torch.float64,
        np.complex64: dtype_lists.by_name("complex64"),
        np.complex128: dtype_lists.by_name("complex128"),
    },
    # The files switch off by these what is broken or slow in PyTorch's own runs; here all of it runs.
    "IS_LINUX": False,
    "IS_MACOS": False,
    "IS_WINDOWS": False,
    "IS_ARM64": platform.machine() in ("arm64", "aarch64"),
    "IS_FBCODE": False,
    "TEST_CUDA": False,
    "TEST_MPS": False,
    "TEST_XPU": False,
    "TEST_WITH_ASAN": False,
    "TEST_WITH_TORCHDYNAMO": False,
    "TEST_WITH_SLOW": False,
    "slowTest": as_it_is,
    "serialTest": as_it_is,
    "skipIfMPS": as_it_is,
    "skipIfXpu": as_it_is,
    "skipIfWindows": as_it_is,
    "skipIfNoLapack": as_it_is,
    "skipIfTorchDynamo": as_it_is,
    "skipIfSlowGradcheckEnv": as_it_is,
    "skipCUDANonDefaultStreamIf": as_it_is,
    "xfailIfTorchDynamo": as_it_is,
    **common_names.COMMON,
    **dict.fromkeys(common_names.CHANGE_NOTHING, as_it_is),
    **dict.fromkeys(common_names.OFF, False),
}
DEVICES = {
    "instantiate_device_type_tests": variants.instantiate_device_type_tests,
    "dtypes": variants.dtypes,
    "dtypesIfCPU": variants.dtypesIfCPU,
    "dtypesIfCUDA": variants.dtypesIfCUDA,
    "dtypesIfMPS": variants.dtypesIfMPS,
    "dtypesIfXPU": variants.dtypesIfXPU,
    "deviceCountAtLeast": variants.device_count_at_least,
    "onlyCPU": variants.only_on("cpu"),
    "onlyCUDA": variants.only_on("cuda"),
    "onlyOn": only_on_list,
    "onlyNativeDeviceTypes": variants.only_on(*NATIVE),
    "expectedFailureMPS": as_it_is,
    "skipMeta": as_it_is,
    "skipLazy": as_it_is,
    "skipXLA": as_it_is,
    "skipXPUIf": as_it_is,
    "precisionOverride": variants.precisionOverride,
    "toleranceOverride": variants.toleranceOverride,
    "tol": variants.tol,
    "onlyAccelerator": variants.only_on("cuda"),
    "largeTensorTest": common_names.large_tensor_test,
    "get_all_device_types": lambda: ["cpu"],
    "skipCPUIf": unittest.skipIf,
    "skipIf": unittest.skipIf,
    "TEST_WITH_ROCM": False,
    "PYTORCH_CUDA_MEMCHECK": False,
    **dict.fromkeys(common_names.CHANGE_NOTHING_BY_DEVICE, as_it_is),
}
MODULES: dict[str, dict[str, Any]] = {
    "torch.testing._internal": {},
    "torch.testing._internal.common_utils": COMMON,
    "torch.testing._internal.common_device_type": DEVICES,
    "torch.testing._internal.common_cuda": common_names.CUDA | {"tf32_on_and_off": as_it_is, "xfailCUDAIfSM89OrLaterOnWindows": as_it_is},
    "torch.testing._internal.common_mkldnn": {"reduced_f32_on_and_off": as_it_is},
    "torch.testing._internal.common_nn": NN | {"freeze_rng_state": freeze_rng_state},
    "torch.testing._internal.common_dtype": {name: value for name, value in vars(dtype_lists).items() if re.search("type|highest", name)},
    "torch.testing._internal.logging_utils": {"LoggingTestCase": TestCase},
    "torch.testing._internal.common_methods_invocations": {"mask_not_all_zeros": mask_not_all_zeros},
}


def install() -> None:
    """Puts the modules where imports look first."""
    for name, members in MODULES.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        module.__path__ = []
        sys.modules[name] = module
    torch.testing._internal = sys.modules["torch.testing._internal"]
