"""Tensors of a module that are computed of others: each time they are read, by modules of the user's."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._modes import no_grad
from ..._plimsoll import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

_cache_enabled = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within it, a parametrized tensor is computed once and kept."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register_parameter_or_buffer(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(destination: Tensor, source: Tensor) -> None:
    """Makes a tensor another, if it is not it already; it stays the same object."""
    same = destination.shape == source.shape and destination.dtype == source.dtype
    if not same or destination.data_ptr() != source.data_ptr():
        destination.data = source.data


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, one after another, and what they begin with: `original`, or `original0`,
    `original1` and so on."""

    is_tensor: bool
    ntensors: int

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = (original.shape, original.dtype)
        begun = self._begun(modules, original)
        self.is_tensor = isinstance(begun, Tensor)
        self.ntensors = 1 if self.is_tensor else len(begun)
        if self.is_tensor:
            if begun.dtype != original.dtype and not unsafe:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {begun.dtype}"
                )
            if begun.device != original.device and not unsafe:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\nright_inverse(original).device: {begun.device}"
                )
            with no_grad():
                _set(original, begun)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for at, part in enumerate(begun):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "right_inverse must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {at} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _register_parameter_or_buffer(self, f"original{at}", part)
        if not unsafe:
            self._check_result(before)

    def _begun(self, modules: Sequence[Module], original: Tensor) -> Any:
        """What the chain begins with, so that it gives the tensor that was there."""
        begun: Any = original
        with no_grad():
            for module in reversed(list(modules)):
                if hasattr(module, "right_inverse"):
                    try:
                        begun = module.right_inverse(begun)
                    except NotImplementedError:
                        pass
        if not isinstance(begun, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(begun).__name__}"
            )
        return begun

    def _check_result(self, before: tuple[Any, Any]) -> None:
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, was, now in zip(("shape", "dtype"), before, (result.shape, result.dtype)):
            if was != now:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {was}\nparametrized {what}: {now}"
                )

    def originals(self) -> list[Any]:
        """What the chain begins with."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{at}") for at in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets what the chain begins with so that it gives a value."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            parts: Any = [value] if self.is_tensor else value
            if len(parts) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length " f"{self.ntensors}. Got {len(parts)}."
                )
            for original, part in zip(self.originals(), parts):
                if not isinstance(part, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(part).__name__}")
                if original.dtype != part.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {part.dtype} while `original` has dtype "
                        f"{original.dtype}"
                    )
                _set(original, part)

    def forward(self) -> Any:
        first, *rest = self
        result = first(*self.originals())
        for module in rest:
            result = module(result)
        return result


def _inject_new_class(module: Module) -> None:
    """Gives a module a class of its own, to which properties can be added."""
    kind = type(module)

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). Save the state_dict, and "
            "load it into a module that is parametrized the same way."
        )

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        made = memo.get(id(self))
        if made is None:
            made = object.__new__(type(self))
            memo[id(self)] = made
            made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    body: dict[str, Any] = {"__getstate__": refuse, "__module__": __name__}
    if not hasattr(kind, "__deepcopy__"):
        body["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), body)


def _inject_property(module: Module, tensor_name: str) -> None:
    def read(self: Any) -> Any:
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Computes a parameter or buffer by a module from now on. What was there is kept as `original` below
    `parametrizations`; a `right_inverse` says what it becomes."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        own: Any = module.parametrizations[tensor_name]
        if not unsafe:
            _check_addition(getattr(module, tensor_name), parametrization)
        # What the chain begins with stays: the value changes, as in PyTorch.
        own.append(parametrization)
        own.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _check_addition(value: Tensor, parametrization: Module) -> None:
    result = parametrization(value)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        was, now = getattr(value, what), getattr(result, what)
        if was != now:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{what}: {was}\nparametrization(module).{what}: {now}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, is parametrized."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a tensor a parameter or buffer again: the value it has now, or what its chain began with."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    own: Any = module.parametrizations[tensor_name]
    if own.is_tensor:
        original = own.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrizes a module as another is, and takes its parameters."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        source: Any = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for one in source:
            register_parametrization(to_module, name, one, unsafe=source.unsafe)
        target: Any = to_module.parametrizations[name]
        labels = ["original"] if source.is_tensor else [f"original{at}" for at in range(source.ntensors)]
        for label in labels:
            setattr(target, label, getattr(source, label))
    return to_module
