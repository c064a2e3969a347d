"""What lets PyTorch run a block for a GPU where there is none.

Devices in the text are the CPU's (`Script.on_cpu`), and the calls of `torch.cuda` that need a card do nothing: what they would
raise on a card is not asked. `card_in_use` has figures of memory besides, which without a card are all 0. `fake_card` asks what
a card adds, tensors of two devices that meet: the text as it is over fake tensors, which know their devices and have no values.
There nothing is recorded, backward does nothing, and a number read from a tensor is 1."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


class _Stream:
    def wait_stream(self, other: _Stream) -> None:
        pass


@contextlib.contextmanager
def _stream(_: _Stream) -> Iterator[None]:
    yield


def _nothing(*_arguments: Any, **_options: Any) -> None:
    return None


NEED_A_CARD = {
    "reset_peak_memory_stats": _nothing, "synchronize": _nothing, "set_per_process_memory_fraction": _nothing,
    "memory_summary": lambda: "", "Stream": _Stream, "stream": _stream, "current_stream": _Stream,
}  # fmt: skip
NEED_A_CARD_TOO = {"_record_memory_history": _nothing, "_dump_snapshot": _nothing, "_snapshot": _nothing}


@contextlib.contextmanager
def calls_that_do_nothing() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name, instead in NEED_A_CARD.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, instead))
        for name, instead in NEED_A_CARD_TOO.items():
            stack.enter_context(mock.patch.object(torch.cuda.memory, name, instead))
        yield


@contextlib.contextmanager
def card_in_use() -> Iterator[None]:
    with calls_that_do_nothing(), contextlib.ExitStack() as stack:
        for name in ("memory_allocated", "max_memory_allocated", "memory_reserved"):
            stack.enter_context(mock.patch.object(torch.cuda, name, lambda: 1 << 20))
        yield


_to, _numpy_values = torch.Tensor.to, torch.Tensor.numpy


def _moved(tensor: torch.Tensor, *arguments: Any, **options: Any) -> torch.Tensor:
    where = options.get("device", arguments[0] if arguments else None)
    if isinstance(where, (str, torch.device)) and torch.device(where).type == "cuda":
        # As `to` does it, but for the guard that asks the driver.
        return tensor if tensor.is_cuda else torch.ops.aten._to_copy.default(tensor, device=torch.device("cuda:0"))
    return _to(tensor, *arguments, **options)


def _numpy(tensor: torch.Tensor) -> Any:
    if tensor.is_cuda:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        return _numpy_values(torch.zeros(tensor.shape))


def _module_moved(module: torch.nn.Module, where: Any = "cuda") -> torch.nn.Module:
    """Modules keep their parameters when they are moved; parameters without values cannot be changed so, and are replaced."""
    for one in module.modules():
        for name, parameter in one._parameters.items():
            one._parameters[name] = torch.nn.Parameter(_moved(parameter.detach(), where))
        if isinstance(one, torch.nn.RNNBase):
            one._flat_weights = [one._parameters[name] for name in one._flat_weights_names]
    return module


def _scattered(inputs: tuple[Any, ...], options: Any, _devices: Any, dim: int) -> Any:  # noqa: ARG001
    """What `DataParallel` does with its inputs on one card."""
    return (tuple(_moved(one, "cuda") for one in inputs),), (options or {},)


@contextlib.contextmanager
def fake_card() -> Iterator[None]:
    """A card that knows where tensors are, and no more."""
    instead = {
        "to": _moved, "cuda": lambda tensor, **options: _moved(tensor, "cuda", **options),
        "item": lambda tensor: 1.0, "numpy": _numpy, "backward": _nothing,
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        stack.enter_context(calls_that_do_nothing())
        for name, value in (("is_available", True), ("device_count", 1), ("current_device", 0), ("_lazy_init", None)):
            stack.enter_context(mock.patch.object(torch.cuda, name, lambda value=value: value))
        stack.enter_context(mock.patch.object(torch.cuda, "empty_cache", _nothing))
        facts = types.SimpleNamespace(total_memory=1 << 33, multi_processor_count=1)
        stack.enter_context(mock.patch.object(torch.cuda, "get_device_properties", lambda _: facts))
        stack.enter_context(mock.patch("torch.nn.parallel.data_parallel.scatter_kwargs", _scattered))
        stack.enter_context(mock.patch.object(torch.nn.Module, "to", _module_moved))
        stack.enter_context(mock.patch.object(torch.nn.Module, "cuda", _module_moved))
        for name, function in instead.items():
            stack.enter_context(mock.patch.object(torch.Tensor, name, function))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        # A node of the graph asks the driver for its stream.
        stack.enter_context(torch.no_grad())
        yield
