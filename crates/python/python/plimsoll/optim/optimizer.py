"""What all optimizers have: groups of parameters, what is kept beside each parameter, hooks, and state as dictionaries.

An optimizer's own arithmetic is one fused operation over all parameters of a group; `_fused.py` calls it."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .. import _plimsoll
from .._plimsoll import Tensor
from ..nn.modules._hooks import Hooks, RemovableHandle, add

#: What optimizers take: parameters, groups of them, or pairs of a name and a parameter.
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

_BEFORE_ALL: Hooks = OrderedDict()
_AFTER_ALL: Hooks = OrderedDict()

_HOOK_LISTS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _Required:
    """The default of what every group must say itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Has `hook(optimizer, args, kwargs)` called before a step of any optimizer."""
    return add(_BEFORE_ALL, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Has `hook(optimizer, args, kwargs)` called after a step of any optimizer."""
    return add(_AFTER_ALL, hook)


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A class's `step` with the hooks around it, and the range by which a profiler shows it."""

    @functools.wraps(step)
    def around(*args: Any, **kwargs: Any) -> Any:
        session = _plimsoll._profiler_range_begin(args[0]._step_profile_name)
        try:
            return between_hooks(args, kwargs)
        finally:
            if session is not None:
                _plimsoll._profiler_range_end(session)

    def between_hooks(args: Any, kwargs: Any) -> Any:
        self = args[0]
        if self._optimizer_step_pre_hooks or _BEFORE_ALL:
            for hook in (*_BEFORE_ALL.values(), *self._optimizer_step_pre_hooks.values()):
                answer = hook(self, args, kwargs)
                if answer is None:
                    continue
                if not isinstance(answer, tuple) or len(answer) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {answer}."
                    )
                args, kwargs = answer
        result = step(*args, **kwargs)
        if self._optimizer_step_post_hooks or _AFTER_ALL:
            for hook in (*self._optimizer_step_post_hooks.values(), *_AFTER_ALL.values()):
                hook(self, args, kwargs)
        return result

    around.hooked = True  # type: ignore[attr-defined]
    return around


class Optimizer:
    """Changes parameters by their gradients: `step()`. Subclasses say how."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_lists()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + _type_name(params)
            )
        if isinstance(params, set):
            warnings.warn(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead. This will be an error in a future release.",
                FutureWarning,
                stacklevel=2,
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _make_hook_lists(self) -> None:
        for name in _HOOK_LISTS:
            self.__dict__.setdefault(name, OrderedDict())
        kind = type(self)
        self._step_profile_name = f"Optimizer.step#{kind.__name__}.step"
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{kind.__name__}.zero_grad"
        if not getattr(kind.step, "hooked", False):
            kind.step = _hooked(kind.step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_lists()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            values = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            text += f"\nParameter Group {number}\n" + "".join(values)
        return text + ")"

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Has `hook(optimizer, args, kwargs)` called before a step; it may return other arguments."""
        return add(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Has `hook(optimizer, args, kwargs)` called after a step."""
        return add(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Has `hook(optimizer)` called before `state_dict`."""
        return add(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Has `hook(optimizer, state_dict)` called after `state_dict`; it may return another one."""
        return add(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Has `hook(optimizer, state_dict)` called before a state is loaded; it may return another one."""
        return add(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Has `hook(optimizer)` called after a state was loaded."""
        return add(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        """What is kept and the groups, with parameters numbered in their order. The tensors are those of the optimizer."""
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        numbers: dict[int, int] = {}
        groups, first = [], 0
        for group in self.param_groups:
            # Of a parameter that is in its group twice the last, as in PyTorch.
            numbers.update({id(param): number for number, param in enumerate(group["params"], first)})
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
            first += len(packed["params"])
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: kept for key, kept in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            answer = hook(self, result)
            result = result if answer is None else answer
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave. Tensors get the dtype and device of their parameter."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            answer = hook(self, state_dict)
            state_dict = state_dict if answer is None else answer
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        pairs = list(zip(self.param_groups, saved, strict=True))
        if any(len(own["params"]) != len(group["params"]) for own, group in pairs):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        places = {
            number: (param, group)
            for own, group in pairs
            for param, number in zip(own["params"], group["params"], strict=True)
        }
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, kept in state_dict["state"].items():
            if key in places:
                param, group = places[key]
                state[param] = self._converted(param, group, None, kept)
            else:
                state[key] = kept
        for own, group in pairs:
            group["params"] = own["params"]
            if "param_names" in own:
                group.setdefault("param_names", own["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            hook(self)

    def _converted(self, param: Tensor, group: dict[str, Any], key: Any, value: Any) -> Any:
        """A copy of what was kept, its tensors as they belong to the parameter."""
        if isinstance(value, Tensor):
            return self._placed(param, group, key, value)
        if isinstance(value, dict):
            return {name: self._converted(param, group, name, one) for name, one in value.items()}
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            return type(value)(self._converted(param, group, None, one) for one in value)  # type: ignore[call-arg]
        return value

    def _placed(self, param: Tensor, group: dict[str, Any], key: Any, value: Tensor) -> Tensor:
        """A kept tensor with the dtype and device that go with the parameter."""
        if key == "step":
            return value
        if param.is_floating_point():
            value = value.to(dtype=param.dtype, device=param.device)
        else:
            value = value.to(device=param.device)
        return value.mark_optimizer_state()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Lets go of all gradients, or fills them with zeros."""
        session = _plimsoll._profiler_range_begin(self._zero_grad_profile_name)
        try:
            self._clear_grads(set_to_none)
        finally:
            if session is not None:
                _plimsoll._profiler_range_end(session)

    def _clear_grads(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                    continue
                grad = param.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step. `closure` computes the loss anew; what it returns is returned."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with numbers of their own; what the group does not say is the optimizer's default."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        listed = [params] if isinstance(params, Tensor) else list(params)
        param_group["params"] = self._without_names(param_group, listed)
        self._check_params(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        known = {id(param) for group in self.param_groups for param in group["params"]}
        own = [id(param) for param in param_group["params"]]
        if len(own) != len(set(own)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            which = "with names" if "param_names" in param_group else "without names"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {which} to the optimizer"
            )
        if not known.isdisjoint(own):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    @staticmethod
    def _without_names(group: dict[str, Any], listed: list[Any]) -> list[Any]:
        """The parameters; if they come with names, the group keeps these."""
        named = [isinstance(param, tuple) for param in listed]
        if not any(named):
            return listed
        if not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        group["param_names"] = [name for name, _ in listed]
        return [param for _, param in listed]

    def _check_params(self, params: list[Any]) -> None:
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + _type_name(param)
                )
            if not self.defaults.get("differentiable") and not (param.is_leaf or getattr(param, "retains_grad", False)):
                raise ValueError("can't optimize a non-leaf Tensor")


def _all_params(groups: list[dict[str, Any]]) -> Iterable[Tensor]:
    return itertools.chain.from_iterable(group["params"] for group in groups)
