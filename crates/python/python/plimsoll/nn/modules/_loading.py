"""The state of a module: its parameters and buffers by path, out and in."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ... import __future__
from ..._modes import no_grad
from ..._plimsoll import Tensor
from ...utils._swap import swap_tensors
from ..parameter import Parameter, is_lazy
from . import _hooks
from ._hooks import RemovableHandle
from ._state import _IncompatibleKeys, listed, told

_EXTRA = "_extra_state"


def _as_parameter(given: Tensor, tensor: Tensor) -> Tensor:
    """A parameter that takes another one's place requires gradients if that one does."""
    if not isinstance(tensor, Parameter):
        return given
    if isinstance(given, Parameter):
        return given.requires_grad_(tensor.requires_grad)
    return Parameter(given, requires_grad=tensor.requires_grad)


def _swap_in(tensor: Tensor, given: Tensor, assign: bool) -> None:
    made = tensor.module_load(given, assign=assign)
    if made is given or made is tensor:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load"
        )
    swap_tensors(tensor, _as_parameter(made, tensor))


class _Found(NamedTuple):
    """What is known of a state, and found while it is read."""

    metadata: Any
    assign: bool
    missing: list[str]
    unexpected: list[str]
    errors: list[str]


def _load_below(module: Any, state: Mapping[str, Any], prefix: str, found: _Found) -> None:
    """Reads a part of a state into a module and those below it. A function of the file: one within another that calls itself
    would keep the state alive until the collector comes."""
    local = {} if found.metadata is None else dict(found.metadata.get(prefix[:-1], {}))
    if found.assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(state, prefix, local, True, found.missing, found.unexpected, found.errors)
    for name, child in module._modules.items():
        if child is not None:
            below = prefix + name + "."
            _load_below(child, {key: value for key, value in state.items() if key.startswith(below)}, below, found)
    keys = _IncompatibleKeys(found.missing, found.unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError("a load_state_dict post-hook must change the keys in place and return None")


class Loading:
    """`state_dict` and `load_state_dict` of a module."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _version: int
    _state_dict_hooks: _hooks.Hooks
    _state_dict_pre_hooks: _hooks.Hooks
    _load_state_dict_pre_hooks: _hooks.Hooks
    _load_state_dict_post_hooks: _hooks.Hooks

    def get_extra_state(self) -> Any:
        """What else belongs to the state. A subclass that defines it defines `set_extra_state` too."""
        raise RuntimeError("a module with an extra state defines get_extra_state and set_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Takes what `get_extra_state` gave."""
        raise RuntimeError("a module with an extra state defines get_extra_state and set_extra_state")

    def _takes_extra_state(self) -> bool:
        return type(self).set_extra_state is not Loading.set_extra_state

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not Loading.get_extra_state

    def _own_state(self) -> dict[str, Any]:
        """Parameters and persistent buffers by name."""
        kept = {name: tensor for name, tensor in self._buffers.items() if name not in self._non_persistent_buffers_set}
        return {name: tensor for name, tensor in {**self._parameters, **kept}.items() if tensor is not None}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if self._has_extra_state():
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers by path. They share memory with the module's; without `keep_vars` they
        are outside of any graph."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            # What is given by name counts.
            given = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = given.get("destination") if destination is None else destination
            prefix, keep_vars = prefix or given.get("prefix", ""), keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            given = hook(self, destination, prefix, local)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if given is None else given
            elif given is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = self._own_state()
        for name, tensor in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = self._load_one(key, name, tensor, state_dict[key], assign)
            if problem is not None:
                error_msgs.append(problem)
        if self._takes_extra_state():
            if prefix + _EXTRA in state_dict:
                self.set_extra_state(state_dict[prefix + _EXTRA])
            elif strict:
                missing_keys.append(prefix + _EXTRA)
        if strict:
            unexpected_keys.extend(key for key in state_dict if self._is_unexpected(key, prefix, own))

    def _is_unexpected(self, key: str, prefix: str, own: Mapping[str, Any]) -> bool:
        if not key.startswith(prefix):
            return False
        name, dot, _ = key[len(prefix) :].partition(".")
        if key == prefix + _EXTRA:
            return not self._takes_extra_state()
        # What is below a module is that module's to say.
        return name not in own if not dot else name not in self._modules

    def _load_one(self, key: str, name: str, tensor: Any, given: Any, assign: bool) -> str | None:
        """Copies one entry, or puts it in its place; says what is wrong with it."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        if is_lazy(tensor):
            if not is_lazy(given):
                tensor.materialize(given.shape)
        elif not assign and tensor.dim() == 0 and given.dim() == 1 and given.numel() == 1:
            # What PyTorch before 0.4 wrote.
            given = given[0]
        if not is_lazy(tensor) and given.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape torch.Size({list(given.shape)}) from checkpoint, "
                f"the shape in current model is torch.Size({list(tensor.shape)})."
            )
        if not assign and not is_lazy(given) and tensor.is_meta and not given.is_meta:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
                "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with no_grad():
                if __future__.get_swap_module_params_on_conversion():
                    _swap_in(tensor, given, assign)
                elif assign:
                    setattr(self, name, _as_parameter(given, tensor))
                elif not is_lazy(given):
                    tensor.copy_(given)
        except Exception as failure:
            action = "swapping" if __future__.get_swap_module_params_on_conversion() else "copying"
            return (
                f'While {action} the parameter named "{key}", whose dimensions in the model are {tuple(tensor.shape)} and '
                f"whose dimensions in the checkpoint are {tuple(given.shape)}, an exception occurred : {failure.args}."
            )
        return None

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copies a state into the module's tensors, or with `assign` takes its tensors. Names that are missing or too
        many are an error if `strict`; all problems are told at once."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)

        _load_below(self, state, "", _Found(metadata, assign, missing, unexpected, errors))
        if strict:
            if unexpected:
                errors.insert(0, listed("Unexpected", unexpected))
            if missing:
                errors.insert(0, listed("Missing", missing))
        if errors:
            raise RuntimeError(told(self, errors))
        return _IncompatibleKeys(missing, unexpected)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before the state is made."""
        return _hooks.add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` on the state, which it may change."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _hooks.add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _hooks.add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before a state is read."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        return _hooks.add(self._load_state_dict_pre_hooks, _hooks.WithModule(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after a state was read."""
        return _hooks.add(self._load_state_dict_post_hooks, hook)
