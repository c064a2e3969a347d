"""Copies of a module on several devices, whose gradients arrive at the module's own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ..modules.module import Module
from ._devices import all_chosen


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """For each device a module that computes as `network` does. Its tensors are copies that remember where they come
    from, so backward adds their gradients to those of `network`'s parameters; with `detach` they do not. On the device
    where a tensor is already, the replica shares its memory: what it writes to buffers there stays.

    A replica has no parameters of its own: `replica.parameters()` is empty."""
    return [_replica(network, device, detach) for device in all_chosen(devices)]


def _replica(network: Module, device: _plimsoll.device, detach: bool) -> Module:
    # What two modules share is shared in the replica too.
    copies: dict[int, Tensor] = {}

    def there(tensor: Tensor) -> Tensor:
        known = copies.get(id(tensor))
        if known is None:
            source = tensor.detach() if detach else tensor
            # A parameter on its own device becomes a view: replicas have no leaves.
            known = source.view_as(source) if source.device == device else source.to(device)
            copies[id(tensor)] = known
        return known

    modules = list(network.modules())
    places = {id(module): module._replicate_for_data_parallel() for module in modules}
    for module in modules:
        replica = places[id(module)]
        for name, child in module._modules.items():
            replica._modules[name] = None if child is None else places[id(child)]
        for name, param in module._parameters.items():
            if param is None:
                replica._parameters[name] = None
            else:
                replica.__dict__[name] = there(param)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                own = buffer.device == device
                replica._buffers[name] = buffer if own and not buffer.requires_grad else there(buffer)
    return places[id(network)]
