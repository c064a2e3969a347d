"""Which variants a test has: decorators for dtypes and parameters, and the functions that put variants into a class. Names of
variants are PyTorch's: `test_name[_parameters][_device][_dtype]`."""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from stand_in.dtypes import AbsentDtype, dtype_name, is_dtype

DEVICE = "cpu"


class subtest:
    """Values of parameters with a name and decorators of their own."""

    def __init__(self, arg_values: Any, name: str | None = None, decorators: Iterable[Callable] | None = None) -> None:
        self.arg_values = arg_values
        self.name = name
        self.decorators = list(decorators or [])


class parametrize:
    """A test for each of the values of some arguments."""

    def __init__(self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None) -> None:
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values = list(arg_values)
        self.name_fn = name_fn

    def __call__(self, test: Callable) -> Callable:
        test.parameters = [*getattr(test, "parameters", []), self]
        return test

    def cases(self) -> Iterator[tuple[str, dict[str, Any], list[Callable]]]:
        """Names of cases, their arguments and decorators."""
        for place, given in enumerate(self.values):
            case = given if isinstance(given, subtest) else subtest(given)
            values = list(case.arg_values) if len(self.names) > 1 else [case.arg_values]
            arguments = dict(zip(self.names, values, strict=True))
            made = self.name_fn(*values) if self.name_fn else "_".join(part(place, *item) for item in arguments.items())
            yield case.name or made, arguments, case.decorators


def part(place: int, name: str, value: Any) -> str:
    """What an argument adds to the name of a test."""
    if is_dtype(value):
        return dtype_name(value)
    if isinstance(value, torch.device):
        return str(value)
    return f"{name}_{str(value).replace('.', '_')}" if isinstance(value, (int, float, str)) else f"{name}{place}"


class dtypes:
    """A test for each dtype, or for each tuple of them."""

    device = "all"

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __call__(self, test: Callable) -> Callable:
        test.dtypes = {**getattr(test, "dtypes", {}), self.device: self.args}
        return test


class dtypesIfCPU(dtypes):
    device = "cpu"


class dtypesIfCUDA(dtypes):
    device = "cuda"


class dtypesIfMPS(dtypes):
    device = "mps"


class dtypesIfXPU(dtypes):
    device = "xpu"


class tol:
    """An absolute and a relative tolerance."""

    def __init__(self, atol: float, rtol: float) -> None:
        self.atol, self.rtol = atol, rtol


class toleranceOverride:
    """Least tolerances of a test for some dtypes."""

    def __init__(self, by_dtype: dict[Any, tol]) -> None:
        self.by_dtype = by_dtype

    def __call__(self, test: Callable) -> Callable:
        test.tolerances = {**getattr(test, "tolerances", {}), **self.by_dtype}
        return test


def precisionOverride(by_dtype: dict[Any, float]) -> toleranceOverride:
    return toleranceOverride({dtype: tol(value, 0.0) for dtype, value in by_dtype.items()})


class swap:
    """A test with and without modules' parameters being swapped when they are converted."""

    def __init__(self, values: Iterable[bool]) -> None:
        self.cases = lambda: ((f"swap_{value}", {}, [functools.partial(swapping, value)]) for value in list(values))

    def __call__(self, test: Callable) -> Callable:
        test.parameters = [*getattr(test, "parameters", []), self]
        return test


def swapping(value: bool, test: Callable) -> Callable:
    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> Any:
        was = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(value)
        try:
            return test(*args, **named)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(was)

    return run


def variants(name: str, test: Callable, device: str | None) -> Iterator[tuple[str, dict[str, Any], list[Callable]]]:
    """Every variant of a test: its name, its arguments, decorators that it alone has."""
    cases: list[tuple[str, dict[str, Any], list[Callable]]] = [("", {}, [])]
    for parameter in getattr(test, "parameters", []):
        added = list(parameter.cases())
        cases = [(join(new, old), {**more, **arguments}, [*those, *these]) for old, arguments, these in cases for new, more, those in added]
    for suffix, arguments, decorators in cases:
        if device is None:
            yield join(name, suffix), arguments, decorators
            continue
        if {"device", "devices"} & set(inspect.signature(test).parameters):
            arguments = {"device": device, **arguments}
        listed = getattr(test, "dtypes", {})
        chosen = listed.get(DEVICE, listed.get("all"))
        for dtype in (None,) if chosen is None else chosen:
            several = isinstance(dtype, (list, tuple))
            names = "_".join(dtype_name(each) for each in dtype) if several else dtype and dtype_name(dtype)
            more = {} if dtype is None else {"dtypes": dtype} if several else {"dtype": dtype}
            yield join(name, suffix, device, names), arguments | more, decorators


def join(*parts: str | None) -> str:
    return "_".join(part for part in parts if part)


def put(target: type, name: str, test: Callable, arguments: dict[str, Any], decorators: list[Callable]) -> None:
    @functools.wraps(test)
    def run(self: Any) -> Any:
        for value in arguments.values():
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(each, AbsentDtype):
                    raise TypeError(f"there is no dtype {each.name} here")
        if floor := getattr(test, "tolerances", {}).get(arguments.get("dtype")):
            self.precision, self.rel_tol = floor.atol, floor.rtol
        return test(self, **arguments)

    run.generic = test.__name__
    run.arguments = arguments
    made: Any = run
    for decorator in reversed(decorators):
        made = decorator(made)
    setattr(target, name, made)


def instantiate_parametrized_tests(generic: type) -> type:
    for name, test in list(generic.__dict__.items()):
        if name.startswith("test") and hasattr(test, "parameters"):
            delattr(generic, name)
            for variant, arguments, decorators in variants(name, test, None):
                put(generic, variant, test, arguments, decorators)
    return generic


def instantiate_device_type_tests(
    generic_test_class: type,
    scope: dict[str, Any],
    except_for: Any = None,
    only_for: Any = None,
    include_lazy: bool = False,
    allow_mps: bool = False,
    allow_xpu: bool = False,
) -> None:
    """Puts the class for the CPU into the module, in place of the one for any device."""
    del scope[generic_test_class.__name__]
    if DEVICE in listed(except_for) or (only_for and DEVICE not in listed(only_for)):
        return
    members: dict[str, Any] = {"device_type": DEVICE, "__module__": generic_test_class.__module__}
    members["get_primary_device"] = classmethod(lambda cls: DEVICE)
    members["get_all_devices"] = classmethod(lambda cls: [DEVICE])
    class_name = generic_test_class.__name__ + DEVICE.upper()
    made = type(class_name, (generic_test_class,), members)
    for name, test in inspect.getmembers(generic_test_class, inspect.isfunction):
        if name.startswith("test"):
            setattr(made, name, None)
            for variant, arguments, decorators in variants(name, test, DEVICE):
                put(made, variant, test, arguments, decorators)
    scope[class_name] = made


def listed(devices: Any) -> tuple[str, ...]:
    return () if devices is None else (devices,) if isinstance(devices, str) else tuple(devices)


def only_on(*devices: str, why: str = "") -> Callable[[Callable], Callable]:
    """Skips a test whose class is for another device."""

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(self: Any, *args: Any, **named: Any) -> Any:
            if self.device_type not in devices:
                raise unittest.SkipTest(why or f"only runs on {', '.join(devices)}")
            return test(self, *args, **named)

        return run

    return decorate


def device_count_at_least(count: int) -> Callable[[Callable], Callable]:
    """Gives a test all devices, if there are so many."""

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(self: Any, *args: Any, device: str, **named: Any) -> Any:
            if count > 1:
                raise unittest.SkipTest(f"needs {count} devices of a kind")
            return test(self, *args, devices=[device], **named)

        return run

    return decorate
