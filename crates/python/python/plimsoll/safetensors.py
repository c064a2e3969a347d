"""Safetensors files: tensors by name, and texts beside them. The functions of the package's `safetensors.torch`, and
its `safe_open`. Which names of a model share memory is `_shared_names.py`'s matter."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _plimsoll
from ._plimsoll import Tensor
from ._shared_names import dropped_names

if TYPE_CHECKING:
    from .nn import Module

_Path = str | os.PathLike[str]

#: What the package calls PyTorch's tensors, which are Plimsoll's here.
_FRAMEWORKS = ("pt", "torch", "pytorch")


class SafetensorError(ValueError):
    """What is wrong with a safetensors file, or with what was asked of it."""


def save_file(tensors: dict[str, Tensor], filename: _Path, metadata: dict[str, str] | None = None) -> None:
    """Saves tensors by name. They are contiguous, and no two share memory. A file is replaced as a whole."""
    _plimsoll._save_safetensors(_checked(tensors), os.fspath(filename), metadata)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that `save_file` writes."""
    return _plimsoll._save_safetensors(_checked(tensors), None, metadata) or b""


def load_file(filename: _Path, device: Any = "cpu") -> dict[str, Tensor]:
    """Loads tensors by name onto a device, each copied once from the mapped file."""
    return _plimsoll._load_safetensors(os.fspath(filename), _device(device))[0]


def load(data: bytes) -> dict[str, Tensor]:
    """Loads the bytes of a file."""
    return _plimsoll._load_safetensors(bytes(data), "cpu")[0]


def save_model(
    model: Module, filename: _Path, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Saves the state of a model, whose parameters may share memory: of names for one tensor the first that shows all
    of it is kept, and the texts say of each of the others which that is.

    >>> import os, tempfile
    >>> from plimsoll import nn, safetensors
    >>> tied = nn.ModuleDict({"in": nn.Embedding(5, 2), "out": nn.Linear(2, 5, bias=False)})
    >>> tied["out"].weight = tied["in"].weight
    >>> path = os.path.join(tempfile.mkdtemp(), "tied.safetensors")
    >>> safetensors.save_model(tied, path)
    >>> with safetensors.safe_open(path, "pt") as file:
    ...     file.keys(), file.metadata()
    (['in.weight'], {'out.weight': 'in.weight'})
    >>> safetensors.load_model(tied, path)
    (set(), [])
    """
    state = dict(model.state_dict())
    texts = dict(metadata or {})
    for kept, names in dropped_names(state).items():
        for name in names:
            texts.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(state, filename, texts or None)
    except ValueError as problem:
        raise ValueError(f"{problem} Or save_model(..., force_contiguous=True), which packs it.") from problem


def load_model(model: Module, filename: _Path, strict: bool = True, device: Any = "cpu") -> tuple[set[str], list[str]]:
    """Loads what `save_model` wrote into a model, and gives the names that were missing and those that the model has
    not. With `strict`, any of either is an error. Other names for a tensor of the file count as there."""
    found = load_file(filename, device)
    dropped = dropped_names(dict(model.state_dict()), found)
    answer = model.load_state_dict(found, strict=False)
    missing, unexpected = set(answer.missing_keys), list(answer.unexpected_keys)
    for name in (name for names in dropped.values() for name in names):
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        said = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for what, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                said.append(f"    {what} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(names)))
        raise RuntimeError("\n".join(said))
    return missing, unexpected


class safe_open:
    """A file whose tensors are read one by one, or in parts: it is mapped, and a tensor takes memory when it is asked
    for.

    >>> import os, tempfile
    >>> import plimsoll
    >>> from plimsoll import safetensors
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> safetensors.save_file({"x": plimsoll.arange(6.0).reshape(2, 3)}, path, {"epoch": "3"})
    >>> with safetensors.safe_open(path, framework="pt") as file:
    ...     file.keys(), file.metadata(), file.get_slice("x")[:, 1].tolist()
    (['x'], {'epoch': '3'}, [1.0, 4.0])
    """

    def __init__(self, filename: _Path, framework: str, device: Any = "cpu") -> None:
        if framework not in _FRAMEWORKS:
            raise SafetensorError(f'framework {framework} is invalid: tensors here are Plimsoll\'s, framework="pt"')
        self._device = _device(device)
        self._mapped: dict[str, Tensor] | None
        try:
            self._mapped, self._texts = _plimsoll._load_safetensors(os.fspath(filename), "cpu", True)
        except ValueError as problem:
            raise SafetensorError(str(problem)) from None

    def __enter__(self) -> safe_open:
        self._tensors()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mapped = None

    def keys(self) -> list[str]:
        """The names of the tensors, in the order of the alphabet."""
        return sorted(self._tensors())

    def metadata(self) -> dict[str, str] | None:
        """The texts beside the tensors, if there are any."""
        self._tensors()
        return dict(self._texts) or None

    def get_tensor(self, name: str) -> Tensor:
        """A tensor of the file, copied to the device."""
        return self._found(name).to(self._device, copy=True)

    def get_tensors(self) -> dict[str, Tensor]:
        """All tensors of the file by name, copied to the device."""
        return {name: self.get_tensor(name) for name in self._tensors()}

    def get_slice(self, name: str) -> SafeSlice:
        """A tensor of the file, of which an index reads a part."""
        return SafeSlice(self._found(name), self._device)

    def _tensors(self) -> dict[str, Tensor]:
        if self._mapped is None:
            raise SafetensorError("File is closed")
        return self._mapped

    def _found(self, name: str) -> Tensor:
        if not isinstance(name, str):
            raise TypeError(f"argument 'name': '{type(name).__name__}' object is not an instance of 'str'")
        tensor = self._tensors().get(name)
        if tensor is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return tensor


class SafeSlice:
    """A tensor of a file, before anything of it is read. It keeps the mapped file, also when that is closed."""

    def __init__(self, mapped: Tensor, device: Any) -> None:
        self._mapped, self._device = mapped, device

    def get_shape(self) -> list[int]:
        """Its sizes."""
        return list(self._mapped.shape)

    def get_dtype(self) -> str:
        """Its dtype in the format's word, as `F32`."""
        dtype = self._mapped.dtype
        special = {_plimsoll.bool: "BOOL", _plimsoll.bfloat16: "BF16", _plimsoll.uint8: "U8"}
        return special.get(dtype) or f"{'F' if dtype.is_floating_point else 'I'}{8 * dtype.itemsize}"

    def __getitem__(self, index: Any) -> Tensor:
        """The part that the index names, as an index of a tensor does, copied to the device."""
        return self._mapped[index].to(self._device, copy=True)


def _device(device: Any) -> Any:
    return f"cuda:{device}" if isinstance(device, int) else device


def _checked(tensors: Any) -> dict[str, Tensor]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected a tensor but received {type(tensor)}")
    return dict(tensors)
