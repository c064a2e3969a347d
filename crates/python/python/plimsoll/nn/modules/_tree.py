"""The tree of modules: names of what a module owns, and walks over all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ... import _plimsoll
from ..._plimsoll import Tensor, _modules_changed
from ..parameter import Buffer, Parameter
from ._registration import buffer_hooks, module_hooks, parameter_hooks, registered

if TYPE_CHECKING:
    from .module import Module

_TABLES = ("_parameters", "_buffers", "_modules")


class Tree:
    """Attributes that are parameters, buffers and modules, by name and by path."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if isinstance(value, Parameter):
            self._need_init("parameters")
            self._forget(name, but="_parameters")
            self.register_parameter(name, value)
        elif name in tables.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Tree) or name in tables.get("_modules", ()):
            self._set_module(name, value)
        elif name in tables.get("_buffers", ()) or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_module(self, name: str, value: Any) -> None:
        if isinstance(value, Tree):
            self._need_init("module")
            self._forget(name, but="_modules")
        elif value is not None:
            raise TypeError(
                f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
            )
        self._modules[name] = registered(module_hooks, self, name, value) if module_hooks else value
        _modules_changed()

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif buffer_hooks or type(self).register_buffer is not Tree.register_buffer:
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            # Statistics are set in each step: nothing else changes then.
            self._buffers[name] = value

    def _need_init(self, kind: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")

    def _forget(self, name: str, *, but: str) -> None:
        """Takes a name off where it stood before, so that it stands once."""
        for table in _TABLES:
            if table != but:
                self.__dict__.get(table, {}).pop(name, None)
        self.__dict__.pop(name, None)
        self.__dict__.get("_non_persistent_buffers_set", set()).discard(name)

    def __getattr__(self, name: str) -> Any:
        # Every layer reads its weights this way at each call: no loop, and parameters first.
        own = self.__dict__
        if "_parameters" in own:
            entries = own["_parameters"]
            if name in entries:
                return entries[name]
            entries = own["_modules"]
            if name in entries:
                return entries[name]
            entries = own["_buffers"]
            if name in entries:
                return entries[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                _modules_changed()
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({name for name in names if not name[0].isdigit()})

    def _check_name(self, kind: str, name: Any, table: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, or None to keep its place."""
        self._need_init("parameter")
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        if param is not None:
            param = registered(parameter_hooks, self, name, param) if parameter_hooks else param
            _modules_changed()
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is kept and not trained; with `persistent` it is part of the `state_dict`."""
        self._need_init("buffer")
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(tensor, "__torch_function__"):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = registered(buffer_hooks, self, name, tensor) if buffer_hooks else tensor
        if tensor is not None:
            _modules_changed()
        kept = self._non_persistent_buffers_set
        kept.discard(name) if persistent else kept.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name."""
        if module is not None and not isinstance(module, Tree):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        self._modules[name] = registered(module_hooks, self, name, module) if module_hooks else module
        _modules_changed()

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Module:
        """The module at a path of names with dots between."""
        found: Any = self
        for name in target.split(".") if target else []:
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        module: Module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a path; with `strict` one must be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        above, _, name = target.rpartition(".")
        parent = self.get_submodule(above)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Tree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        if not isinstance(module, Tree):
            raise ValueError(f"`{name}` is to be an nn.Module, not {_typename(module)}")
        setattr(parent, name, module)

    def _owned(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        if name not in owner.__dict__[table]:
            raise AttributeError(f"`{name}` is not {what}")
        return owner.__dict__[table][name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path."""
        found: Parameter = self._owned(target, "_parameters", "an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        found: Tensor = self._owned(target, "_buffers", "a buffer")
        return found

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below, each with its path."""
        own: Any = self
        memo = set() if memo is None else memo
        if own in memo:
            return
        if remove_duplicate:
            memo.add(own)
        yield prefix, own
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right below, each with its name."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules right below."""
        return (module for _, module in self.named_children())

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, owner in owners:
            for name, tensor in get_members_fn(owner):
                if tensor is None or id(tensor) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters, each with its path."""
        return self._named_members(lambda owner: owner._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers, each with its path."""
        return self._named_members(lambda owner: owner._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))


def _typename(value: object) -> str:
    kind = type(value)
    if isinstance(value, Tensor):
        return "torch.FloatTensor" if value.dtype == _plimsoll.float32 else "torch.Tensor"
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
