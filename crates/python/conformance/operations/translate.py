"""What PyTorch's operator database names, in Plimsoll: its callables, and its arguments with their strides kept.

An entry's callable is found by its name. Where it is a function of the database itself (most are lambdas around `torch.X`),
the same code runs with another meaning of `torch`: the names of Plimsoll."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import plimsoll
import torch

REAL_DTYPES = ["float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool"]
# Those that both have, in PyTorch's words and in ours. Samples are of the real ones.
DTYPES: dict[torch.dtype, Any] = {
    getattr(torch, name): getattr(plimsoll, name)
    for name in [*REAL_DTYPES, "complex64", "complex128"]
    if isinstance(getattr(plimsoll, name, None), type(plimsoll.float32))
}
TORCH_DTYPES: dict[Any, torch.dtype] = {ours: theirs for theirs, ours in DTYPES.items()}

# Modules whose functions run here as they are, with `torch` meaning Plimsoll.
RUN_AS_WRITTEN = ("torch.testing._internal", "torch.nn.modules")


class Absent(AttributeError):
    """A name that Plimsoll does not have."""


class Unconvertible(Exception):
    """An argument that Plimsoll has no value for."""


class Names:
    """Stands for the module `torch` in functions of the database."""

    def __init__(self, module: Any, path: str) -> None:
        self._module, self._path = module, path

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if isinstance(found, types.ModuleType):
            return Names(found, f"{self._path}.{name}")
        if found is None and name in ("ops", "aten"):
            return self if name == "ops" else Aten(self)
        if found is None:
            raise Absent(f"{self._path} has no {name}")
        return found


class Aten:
    """Stands for `torch.ops.aten`, whose operations have their overloads as attributes: here each is the operation itself."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._names, name)

        def overload(*args: Any, **kwargs: Any) -> Any:
            return operation(*args, **kwargs)

        overload.default = overload  # type: ignore[attr-defined]
        return overload


TORCH = Names(plimsoll, "plimsoll")


def lookup(path: str) -> Any:
    """What stands at a dotted path below the package."""
    return functools.reduce(getattr, path.split("."), TORCH)


def seeded(operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The database's `wrapper_set_seed`; random entries are judged over many calls, so it sets none."""
    return operation(*args, **kwargs)


def unseeded(function: Any) -> Any:
    """PyTorch's function without `wrapper_set_seed`, which would make all its calls draw the same numbers."""
    if not isinstance(function, types.FunctionType) or "wrapper_set_seed" not in function.__globals__:
        return function
    here = {**function.__globals__, "wrapper_set_seed": seeded}
    return types.FunctionType(function.__code__, here, function.__name__, function.__defaults__, function.__closure__)


def rebound(function: types.FunctionType, self: Any = None) -> Callable[..., Any]:
    """The same code with every global, default and captured variable translated."""
    names = used_names(function.__code__)
    here = {name: translated(value) for name, value in function.__globals__.items() if name in names}
    here["__builtins__"] = function.__globals__["__builtins__"]
    cells = tuple(types.CellType(translated(cell.cell_contents)) for cell in function.__closure__ or ())
    defaults = tuple(map(translated, function.__defaults__ or ()))
    found = types.FunctionType(function.__code__, here, function.__name__, defaults, cells)
    found.__kwdefaults__ = {key: translated(value) for key, value in (function.__kwdefaults__ or {}).items()}
    return found if self is None else functools.partial(found, self)


def used_names(code: types.CodeType) -> set[str]:
    inner = [used_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


def translated(value: Any) -> Any:
    """A global or captured variable of the database's code. A name that is absent here raises when it is used."""
    if value is torch:
        return TORCH
    if isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
        return lookup(value.__name__.removeprefix("torch.")) if reachable(value.__name__) else value
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, functools.partial)):
        try:
            return callable_here(value)
        except Absent as absent:
            return raises(absent)
    try:
        return constant(value)
    except Unconvertible:
        return value


def reachable(path: str) -> bool:
    try:
        lookup(path.removeprefix("torch."))
    except Absent:
        return False
    return True


def raises(error: Exception) -> Callable[..., Any]:
    def call(*_args: Any, **_kwargs: Any) -> Any:
        raise error

    return call


def callable_here(function: Any, path: str | None = None) -> Callable[..., Any]:
    """Our twin of a callable of PyTorch; `path` is its public name where that is known."""
    if isinstance(function, functools.partial):
        return functools.partial(callable_here(function.func), *function.args, **function.keywords)
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or ""
    if name == "wrapper_set_seed":
        return seeded
    descriptors = (types.MethodDescriptorType, types.WrapperDescriptorType)
    if isinstance(function, descriptors) or getattr(function, "__qualname__", "").startswith("Tensor."):
        return method_here(name)
    if isinstance(function, types.FunctionType) and module.startswith(RUN_AS_WRITTEN):
        return rebound(function)
    if path is not None:
        return lookup_operation(path)
    if module.startswith("torch.") and not module.startswith("torch._"):
        return lookup(f"{module.removeprefix('torch.')}.{name}")
    return lookup(name) if module.startswith("torch") else function


def method_here(name: str) -> Callable[..., Any]:
    # What every class has is not meant: `type` itself has `__or__`.
    if not any(name in vars(kind) for kind in plimsoll.Tensor.__mro__[:-1]):
        raise Absent(f"Tensor has no {name}")
    return getattr(plimsoll.Tensor, name)


def lookup_operation(path: str) -> Callable[..., Any]:
    """An entry by its name. Operations that PyTorch keeps in `torch.ops.aten` may be methods here."""
    path = path.removeprefix("torch.ops.aten.").removesuffix(".default")
    try:
        return lookup(path)
    except Absent:
        if "." in path or hasattr(torch, path):
            raise
        return method_here(path)


def constant(value: Any) -> Any:
    """An argument that is no tensor."""
    if isinstance(value, torch.dtype):
        if value not in DTYPES:
            raise Unconvertible(f"{value} is no dtype here")
        return DTYPES[value]
    if isinstance(value, torch.device):
        return plimsoll.device(str(value))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (torch.memory_format, torch.layout)):
        found = getattr(plimsoll, str(value).removeprefix("torch."), None)
        if found is None:
            raise Unconvertible(f"there is no {str(value).removeprefix('torch.')}")
        return found
    if isinstance(value, torch.Generator):
        return plimsoll.Generator().manual_seed(value.initial_seed())
    if isinstance(value, torch.nn.Module):
        return rebound(type(value).forward, value)
    if isinstance(value, types.FunctionType) and (value.__module__ or "").startswith("torch"):
        return callable_here(value)
    return value


def tree(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Arguments with every leaf replaced."""
    if isinstance(value, torch.Size):
        return leaf(value)
    if isinstance(value, (list, tuple)):
        return type(value)(tree(item, leaf) for item in value)
    if isinstance(value, dict):
        return {key: tree(item, leaf) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(tree(part, leaf) for part in (value.start, value.stop, value.step)))
    return leaf(value)


class Arguments:
    """One call's arguments, twice: copies in PyTorch's memory and in ours, with the same strides, offsets and sharing of
    memory, so that a call may write to them. `tensors` pairs those that are the same argument."""

    def __init__(self, sample: Any, requires_grad: bool) -> None:
        self._requires_grad = requires_grad
        self._storages: dict[tuple[int, torch.dtype], tuple[torch.Tensor, Any]] = {}
        self._seen: dict[int, tuple[torch.Tensor, Any]] = {}
        values = (sample.input, sample.args, sample.kwargs)
        self.theirs = tree(values, lambda leaf: self._pair(leaf)[0] if isinstance(leaf, torch.Tensor) else leaf)
        self.ours = tree(values, lambda leaf: self._pair(leaf)[1] if isinstance(leaf, torch.Tensor) else constant(leaf))

    @property
    def tensors(self) -> Iterator[tuple[torch.Tensor, Any]]:
        return iter(self._seen.values())

    @property
    def leaves(self) -> list[tuple[torch.Tensor, Any]]:
        return [pair for pair in self._seen.values() if pair[0].requires_grad and pair[0].is_leaf]

    def _pair(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if id(tensor) not in self._seen:
            self._seen[id(tensor)] = self._copy(tensor)
        return self._seen[id(tensor)]

    def _copy(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if tensor.layout != torch.strided or tensor.device.type != "cpu":
            raise Unconvertible(f"a tensor on {tensor.device} of layout {tensor.layout}")
        if tensor.dtype not in DTYPES:
            raise Unconvertible(f"a tensor of {tensor.dtype}")
        wants = self._requires_grad and tensor.requires_grad
        tensor = tensor.detach().resolve_neg().resolve_conj()
        size, stride, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
        whole = offset == 0 and tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes
        flat, base = self._storage(tensor, whole)
        theirs = torch.empty(0, dtype=tensor.dtype).set_(flat.untyped_storage(), offset, size, stride)
        # A tensor that is all of its memory is no view here either; others are views of one that is.
        same = whole and base.shape == tuple(size)
        ours = base if same else base.as_strided(list(size), list(stride), offset)
        if wants:
            ours = ours.detach().requires_grad_()
        return theirs.requires_grad_(wants), ours

    def _storage(self, tensor: torch.Tensor, whole: bool) -> tuple[torch.Tensor, Any]:
        storage = tensor.untyped_storage()
        # Memory of no bytes is shared with nobody.
        key = (storage.data_ptr() or -len(self._storages) - 1, tensor.dtype)
        if key not in self._storages:
            length = storage.nbytes() // tensor.element_size()
            flat = torch.empty(0, dtype=tensor.dtype).set_(storage.clone(), 0, (length,))
            shaped = flat.view(tensor.shape) if whole else flat
            self._storages[key] = (flat, plimsoll.from_dlpack(shaped).clone())
        return self._storages[key]


def to_torch(tensor: Any) -> torch.Tensor:
    """Our tensor as PyTorch sees it: the same memory, for comparisons."""
    detached = tensor.detach()
    # PyTorch stands in for Plimsoll where the checks themselves are checked.
    return detached if isinstance(detached, torch.Tensor) else torch.from_dlpack(detached)


def to_ours(tensor: torch.Tensor) -> Any:
    return plimsoll.from_dlpack(tensor.detach()).clone()
