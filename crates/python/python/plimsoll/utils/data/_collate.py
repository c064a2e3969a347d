"""From samples to a batch: `default_collate` puts them side by side, `default_convert` makes tensors of arrays. Also how a batch is
rebuilt with its tensors replaced, which is how batches are pinned."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ...functional import as_tensor
from ...multiprocessing._regions import shared_empty
from ._messages import LARGE_BYTES
from ._worker_info import get_worker_info

_REFUSED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_numpy(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ not in ("str_", "string_", "bytes_")


def _is_text_array(value: Any) -> bool:
    """Arrays of texts and of objects, which no tensor holds."""
    return type(value).__name__ == "ndarray" and value.dtype.kind in "SUOa"


def rebuilt(container: Any, parts: Callable[[], Any]) -> Any:
    """A mapping or sequence like `container`, of its type where that can be made, with these parts: a dict, or a list."""
    if isinstance(container, (MutableMapping, MutableSequence)):
        # A type of the program's own may carry more than its elements: a copy keeps that.
        try:
            clone = copy.copy(container)
            new = parts()
            for key, value in new.items() if isinstance(new, dict) else enumerate(new):
                clone[key] = value
            return clone
        except TypeError:
            return parts()
    try:
        return type(container)(parts())
    except TypeError:
        return parts()


def default_convert(data: Any) -> Any:
    """Tensors of the NumPy arrays and numbers in `data`, however deep; everything else as it is."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        return data if _is_text_array(data) else as_tensor(data)
    if isinstance(data, Mapping):
        return rebuilt(data, lambda: {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(part) for part in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return rebuilt(data, lambda: [default_convert(part) for part in data])
    return data


def default_collate(batch: Any) -> Any:
    """The samples side by side: tensors and arrays along a new first dimension, numbers as a tensor, texts as a list, and mappings,
    tuples and lists part by part."""
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch)
    if _is_numpy(first):
        if type(first).__name__ == "ndarray" or hasattr(first, "__array_finalize__"):
            if _is_text_array(first):
                raise TypeError(_REFUSED.format(first.dtype))
            return default_collate([as_tensor(part) for part in batch])
        return _input(as_tensor(batch))
    if isinstance(first, float):
        return _input(_plimsoll.tensor(batch, dtype=_plimsoll.float64))
    if isinstance(first, int):
        return _input(_plimsoll.tensor(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return rebuilt(first, lambda: {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(part) for part in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = list(zip(*batch))
        if isinstance(first, tuple):
            return [default_collate(part) for part in parts]
        return rebuilt(first, lambda: [default_collate(part) for part in parts])
    raise TypeError(_REFUSED.format(type(first)))


def _stacked(batch: Sequence[Tensor]) -> Tensor:
    try:
        out = _place_to_send(batch[0], len(batch))
        if out is not None:
            return _plimsoll.stack(list(batch), 0, out=out)
        return _input(_plimsoll.stack(list(batch), 0))
    except RuntimeError:
        _check_shapes(batch)
        raise


def _place_to_send(first: Tensor, count: int) -> Tensor | None:
    """Memory for a large batch of a worker process that the loader's process maps as it is: one copy less."""
    info = get_worker_info()
    if info is None or info.worker_method != "multiprocessing" or first.nbytes * count < LARGE_BYTES:
        return None
    if type(first) is not Tensor or first.requires_grad or first.device.type != "cpu":
        return None
    return shared_empty((count, *first.shape), first.dtype)


def _input(tensor: Tensor) -> Tensor:
    """The tensor, whose bytes are counted as an input."""
    tensor.mark_input()
    return tensor


def _check_shapes(batch: Sequence[Tensor]) -> None:
    """Names the sample whose shape differs, in PyTorch's words."""
    shape = batch[0].shape
    for place, sample in enumerate(batch):
        if sample.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(sample.shape)} at "
                f"entry {place}; pad or crop the samples, or give the loader a collate_fn that does"
            )


def replaced(data: Any, is_part: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """The same, with each part that `is_part` names replaced by what `change` makes of it, however deep; parts that cannot be
    looked into are left as they are."""
    if is_part(data):
        return change(data)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return rebuilt(data, lambda: {key: replaced(part, is_part, change) for key, part in data.items()})
    if isinstance(data, tuple):
        parts = [replaced(part, is_part, change) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    if isinstance(data, Sequence):
        return rebuilt(data, lambda: [replaced(part, is_part, change) for part in data])
    return data


def pin_memory(data: Any) -> Any:
    """The same with its tensors in pinned memory; whatever has a `pin_memory` of its own is asked for it."""
    return replaced(data, lambda part: hasattr(part, "pin_memory"), lambda part: part.pin_memory())
