"""Files between PyTorch and Plimsoll: what one writes, the other reads, in `.pt` and in safetensors: states of modules and of
optimizers, by name, dtype, shape and bits, and views of one storage. safetensors is its library's where that is installed beside
PyTorch, else the format as it is described."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import optimizers
import pairs
import plimsoll
import torch
import translate
from entry import _check
from nearness import Wrong
from torch.testing._internal.common_modules import module_db

COLUMNS = ["read", "written"]

ENTRIES = ["modules .pt", "optimizers .pt", "values .pt", "modules safetensors", "dtypes safetensors"]

# The dtypes that both have and that safetensors names.
NAMES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def judged(name: str) -> dict[str, Any]:
    """The row of one kind of content in one format."""
    row: dict[str, Any] = {"name": name, "samples": 0, "passed": {}, "failures": []}
    contents, form = name.split()
    read, write = (_read_pt, _write_pt) if form == ".pt" else (_read_safetensors, _write_safetensors)
    made = {"modules": _modules, "optimizers": _optimizers, "values": _values, "dtypes": _dtypes}[contents]
    for where, theirs, ours in made():
        row["samples"] += 1
        _check(row, "read", where, read, theirs)
        _check(row, "written", where, write, ours)
    return row


def _modules() -> Any:
    """The states of one module of each entry."""
    for info in module_db:
        torch.manual_seed(0)
        samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
        for sample in samples[:1]:
            theirs, here = pairs.built(info, sample, torch.float32, True)
            if pairs.is_lazy(theirs) or not theirs.state_dict():
                continue
            yield info.name, theirs.state_dict(), here.state_dict()


def _optimizers() -> Any:
    for info in optimizers.entries():
        pair = optimizers.Pair(info, info.optim_inputs_func(device="cpu")[0], "float32", {})
        pair.run(3)
        yield info.optim_cls.__name__, pair.optimizer.state_dict(), pair.here.state_dict()


def _values() -> Any:
    """What a checkpoint holds beside states: numbers, texts, containers, and two views of one storage."""
    plain = {"step": 3, "rate": 0.1, "name": "run", "done": False, "none": None, "list": [1, (2, "x")], 7: b"bytes"}
    whole, ours = torch.arange(12.0), plimsoll.arange(12.0)
    theirs = {**plain, "all": whole, "part": whole[3:7], "turned": whole.view(3, 4).t(), "number": torch.tensor(5)}
    here = {**plain, "all": ours, "part": ours[3:7], "turned": ours.view(3, 4).t(), "number": plimsoll.tensor(5)}
    yield "values", theirs, here
    yield from ((f"a tensor of {name}", *one) for name, *one in _of_each_dtype())


def _of_each_dtype() -> Any:
    for name in NAMES:
        theirs = (torch.arange(6).reshape(2, 3) % 2).to(getattr(torch, name))
        yield name, {"x": theirs}, {"x": translate.to_ours(theirs)}


def _dtypes() -> Any:
    yield from _of_each_dtype()


def _in_file(act: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        act(Path(folder) / "state")


def _read_pt(theirs: Any) -> None:
    def act(path: Path) -> None:
        torch.save(theirs, path)
        _same(theirs, plimsoll.load(path))

    _in_file(act)


def _write_pt(ours: Any) -> None:
    def act(path: Path) -> None:
        plimsoll.save(ours, path)
        # What runs nothing of the file.
        _same(torch.load(path, weights_only=True), ours)

    _in_file(act)


# The names that safetensors has for dtypes.
CODES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


def _save_file(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """The format by its description, where the library is not installed: the header's length, the header, the bytes."""
    try:
        from safetensors.torch import save_file
    except ImportError:
        codes, header, data = {dtype: code for code, dtype in CODES.items()}, {}, b""
        for name, tensor in tensors.items():
            part = _bits(tensor).tobytes()
            places = [len(data), len(data) + len(part)]
            header[name] = {"dtype": codes[tensor.dtype], "shape": list(tensor.shape), "data_offsets": places}
            data += part
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    else:
        save_file(tensors, path)


def _load_file(path: Path) -> dict[str, torch.Tensor]:
    """The same the other way; every byte must belong to a tensor."""
    try:
        from safetensors.torch import load_file
    except ImportError:
        whole = path.read_bytes()
        (length,) = struct.unpack("<Q", whole[:8])
        header, data = json.loads(whole[8 : 8 + length]), whole[8 + length :]
        header.pop("__metadata__", None)
        found, covered = {}, 0
        for name, facts in header.items():
            start, end = facts["data_offsets"]
            part = torch.tensor(list(data[start:end]), dtype=torch.uint8)
            found[name] = part.view(CODES[facts["dtype"]]).reshape(facts["shape"])
            covered += end - start
        if covered != len(data):
            raise Wrong(f"{len(data) - covered} bytes of the file belong to nothing") from None
        return found
    return load_file(path)


def _read_safetensors(theirs: Any) -> None:
    def act(path: Path) -> None:
        _save_file({name: value.detach().contiguous() for name, value in theirs.items()}, path)
        _same(dict(theirs), plimsoll.safetensors.load_file(path), ordered=False)

    _in_file(act)


def _write_safetensors(ours: Any) -> None:
    def act(path: Path) -> None:
        plimsoll.safetensors.save_file(dict(ours), path)
        _same(_load_file(path), dict(ours), ordered=False)

    _in_file(act)


def _same(theirs: Any, ours: Any, path: str = "", ordered: bool = True) -> None:
    """Fails unless both hold the same: containers of the same keys, tensors of the same bits."""
    if isinstance(theirs, torch.Tensor):
        here = translate.to_torch(ours)
        if here.dtype != theirs.dtype or here.shape != theirs.shape or here.stride() != theirs.stride():
            raise Wrong(f"{path} is {here.dtype} {tuple(here.shape)}, in PyTorch {theirs.dtype} {tuple(theirs.shape)}")
        if not numpy.array_equal(_bits(here), _bits(theirs)):
            raise Wrong(f"{path} has other bits")
    elif isinstance(theirs, dict):
        keys = (list(theirs), list(ours)) if ordered else (sorted(theirs), sorted(ours))
        if keys[0] != keys[1]:
            raise Wrong(f"{path} has the keys {keys[1]}, in PyTorch {keys[0]}")
        for key, value in theirs.items():
            _same(value, ours[key], f"{path}/{key}", ordered)
    elif isinstance(theirs, (list, tuple)):
        if type(theirs) is not type(ours) or len(theirs) != len(ours):
            raise Wrong(f"{path} is {ours!r}, in PyTorch {theirs!r}")
        for at, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            _same(left, right, f"{path}/{at}", ordered)
    elif type(theirs) is not type(ours) or theirs != ours:
        raise Wrong(f"{path} is {ours!r}, in PyTorch {theirs!r}")


def _bits(tensor: torch.Tensor) -> Any:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
