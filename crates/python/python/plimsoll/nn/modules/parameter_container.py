"""Modules that hold parameters: in a list, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ..parameter import Parameter
from .container import place
from .module import Module


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([getattr(self, str(at)) for at in range(len(self))[index]])
        return getattr(self, str(place(len(self), index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, str(place(len(self), index)), value)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({at}): {_told(value)}" for at, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Index given to ParameterDict cannot be used as a key as it is not a string (type is {type(key).__name__!r})")
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Any:
        """The parameters."""
        return [self[key] for key in self._keys]

    def items(self) -> Any:
        """Names and parameters."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, or something else."""
        return self[key] if key in self else default

    def pop(self, key: str) -> Any:
        """Takes one out."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Takes all out."""
        for key in list(self._keys):
            del self[key]

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, which is added if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Takes the last one out."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return ParameterDict((key, self[key]) for key in self._keys)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict of these names, with one value for all."""
        return ParameterDict((key, default) for key in keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def update(self, parameters: Any) -> None:
        """Adds parameters by name, from a mapping or from pairs."""
        if not isinstance(parameters, (Iterable, ParameterDict)):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        pairs = parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            # PyTorch's order, from when dictionaries had none.
            pairs = sorted(pairs, key=lambda pair: pair[0])
        for at, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ParameterDict update sequence element #{at} should be Iterable; is {type(pair).__name__}"
                )
            key_and_value = tuple(pair)
            if len(key_and_value) != 2:
                raise ValueError(
                    f"ParameterDict update sequence element #{at} has length {len(key_and_value)}; 2 is required"
                )
            self[key_and_value[0]] = key_and_value[1]

    def extra_repr(self) -> str:
        # PyTorch's dictionaries name the class of a tensor, its lists the dtype.
        return "\n".join(f"  ({key}): {_told(value, _class_name(value))}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


def _told(value: Any, dtype: str | None = None) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(str(size) for size in value.shape)
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    words = dtype or str(value.dtype).replace("plimsoll.", "torch.")
    return f"{kind} containing: [{words} of size {sizes}{where}]"


def _class_name(value: Any) -> str | None:
    """The name of PyTorch's class for a tensor of this dtype."""
    names = {
        _plimsoll.float32: "Float",
        _plimsoll.float64: "Double",
        _plimsoll.float16: "Half",
        _plimsoll.bfloat16: "BFloat16",
    }
    named = names.get(value.dtype) if isinstance(value, Tensor) else None
    return named and f"torch.{named}Tensor"
