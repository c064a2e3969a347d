"""Modules that hold others: in a row, in a list, by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from .module import Module, _indented
from . import _elsewhere


def place(count: int, index: Any) -> int:
    """An index that may count from the end, counted from the first."""
    at = operator.index(index)
    if not -count <= at < count:
        raise IndexError(f"index {at} is out of range")
    return at % count if count else at


class Sequential(Module):
    """Calls its modules one after another, each on what the one before gave."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            entries: Iterable[tuple[str, Module]] = args[0].items()
        else:
            entries = ((str(at), module) for at, module in enumerate(args))
        for name, module in entries:
            self.add_module(name, module)

    def _name_at(self, index: Any) -> str:
        return next(islice(self._modules, place(len(self), index), None))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def _renumber(self, modules: Iterable[Any]) -> None:
        modules = list(modules)
        self._modules.clear()
        self._modules.update({str(at): module for at, module in enumerate(modules)})

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            delattr(self, name)
        self._renumber(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        return self.extend(list(self * other)[len(self) :])

    def append(self, module: Module) -> Sequential:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Adds modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Adds a module before another."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index + count if index < 0 else index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any) -> Module:
        """Takes a module out."""
        module: Module = self[key]
        del self[key]
        return module

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _name_at(self, index: Any) -> str:
        return str(place(len(self), index))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: Any) -> None:
        names = range(len(self))[index] if isinstance(index, slice) else [int(self._name_at(index))]
        for name in names:
            delattr(self, str(name))
        left = list(self._modules.values())
        self._modules.clear()
        self._modules.update({str(at): module for at, module in enumerate(left)})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def insert(self, index: int, module: Module) -> None:
        """Adds a module before another."""
        modules = list(self)
        modules.insert(index, module)
        for at, one in enumerate(modules):
            self._modules[str(at)] = one

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Module:
        """Takes a module out."""
        module: Module = self[key]
        del self[key]
        return module

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Neighbours that look the same stand once, with how many there are."""
        if not self:
            return self._get_name() + "()"
        runs: list[tuple[int, int, str]] = []
        for at, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], at, text)
            else:
                runs.append((at, at, text))
        lines = []
        for first, last, text in runs:
            name, told = (f"({first})", text) if first == last else (f"({first}-{last})", f"{last - first + 1} x {text}")
            lines.append(f"{name}: {_indented(told)}")
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        found: Module = self._modules[key]
        return found

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes one out."""
        found: Module = self._modules.pop(key)
        return found

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules by name, from a mapping or from pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleDict.update should be called with an iterable of key/value pairs, but got {type(modules).__name__}"
            )
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        pair: Any
        for at, pair in enumerate(pairs):
            if not isinstance(pair, (tuple, list)):
                raise TypeError(f"ModuleDict update sequence element #{at} should be a pair of name and module")
            if len(pair) != 2:
                raise ValueError(f"ModuleDict update sequence element #{at} has length {len(pair)}; 2 is required")
            self[pair[0]] = pair[1]


#: What PyTorch has in this file, and this package in others.
__getattr__ = _elsewhere.of(__name__)
