"""One module on several devices: each computes a part of the batch with a copy of the module, and the results come
together on one of them. The copies are made anew in every forward."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from ... import _plimsoll
from ..._plimsoll import is_grad_enabled
from ..modules.module import Module
from ._devices import all_chosen, chosen, gpus, names_gpu
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs


def _check_place(module: Module, device: _plimsoll.device) -> None:
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != device:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {device} (device_ids[0]) but found one of them on "
                f"device: {tensor.device}. Call module.to('{device}') first"
            )


class DataParallel(Module):
    """Runs `module` on every device of `device_ids` with a part of the batch each. Without `device_ids` these are all
    GPUs; where there is none, also of those named, and with one device, it only passes on to `module`.

    The gradients of all parts are added up on `module`'s own parameters, which live on the first device. What is written
    to buffers there (running means) stays, and what is written on the others is lost. The keys of its `state_dict` begin
    with `module.`."""

    device_ids: list[_plimsoll.device]
    output_device: _plimsoll.device
    dim: int

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        if device_ids is None or (not gpus() and all(names_gpu(device) for device in device_ids)):
            # GPUs that are named and not there are passed over, as in PyTorch.
            self.device_ids = gpus()
        else:
            self.device_ids = all_chosen(device_ids)
        if not self.device_ids:
            return
        self.output_device = self.device_ids[0] if output_device is None else chosen(output_device)
        self.src_device_obj = self.device_ids[0]
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        places, names = self.scatter(inputs, kwargs, self.device_ids)
        if not places and not names:
            # Without arguments there is one part, which has none.
            places, names = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*places[0], **names[0])
        replicas = self.replicate(self.module, self.device_ids[: len(places)])
        return self.gather(self.parallel_apply(replicas, places, names), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """A copy of the module for each device."""
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]) -> Any:
        """Arguments by place and by name in parts, one a device."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """Every copy's result."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Sequence[Any], output_device: Any) -> Any:
        """All results in one."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """One such run, without a module around `module`."""
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    devices = gpus() if device_ids is None else all_chosen(device_ids)
    if not devices:
        raise RuntimeError("data_parallel: no available devices were found; name them in device_ids, or call the module")
    _check_place(module, devices[0])
    places, names = scatter_kwargs(inputs, module_kwargs, devices, dim)
    if not places and not names:
        places, names = ((),), ({},)
    if len(devices) == 1:
        return module(*places[0], **names[0])
    used = devices[: len(places)]
    outputs = parallel_apply(replicate(module, used, not is_grad_enabled()), places, names, used)
    return gather(outputs, devices[0] if output_device is None else output_device, dim)
