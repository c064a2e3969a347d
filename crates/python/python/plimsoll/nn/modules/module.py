"""The base of all layers and models: a tree of modules that own parameters and buffers."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ... import _plimsoll
from ..._modes import no_grad
from ..._plimsoll import Tensor
from ..parameter import is_lazy
from . import _conversion, _moves
from ._calling import Calling
from ._calling import _global_backward_hooks as _global_backward_hooks
from ._calling import _global_backward_pre_hooks as _global_backward_pre_hooks
from ._calling import _global_forward_hooks as _global_forward_hooks
from ._calling import _global_forward_hooks_always_called as _global_forward_hooks_always_called
from ._calling import _global_forward_hooks_with_kwargs as _global_forward_hooks_with_kwargs
from ._calling import _global_forward_pre_hooks as _global_forward_pre_hooks
from ._calling import register_module_backward_hook as register_module_backward_hook
from ._calling import register_module_forward_hook as register_module_forward_hook
from ._calling import register_module_forward_pre_hook as register_module_forward_pre_hook
from ._calling import register_module_full_backward_hook as register_module_full_backward_hook
from ._calling import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from ._loading import Loading
from ._state import _IncompatibleKeys as _IncompatibleKeys
from ._registration import register_module_buffer_registration_hook as register_module_buffer_registration_hook
from ._registration import register_module_module_registration_hook as register_module_module_registration_hook
from ._registration import register_module_parameter_registration_hook as register_module_parameter_registration_hook
from ._tree import Tree

_Self = TypeVar("_Self", bound="Module")


class Module(Tree, Calling, Loading):
    """A part of a model. Tensors of class `Parameter` and modules that are set as attributes become its own; a subclass
    defines `forward`, and is called like a function."""

    training: bool
    dump_patches = False
    call_super_init = False
    _version = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            what = f"{next(iter(kwargs))!r}" if kwargs else f"{len(args)} positional"
            raise TypeError(f"{name}.__init__() takes no arguments of its own, but got {what}")
        put = super().__setattr__
        put("training", True)
        for table in ("_parameters", "_buffers", "_modules"):
            put(table, {})
        put("_non_persistent_buffers_set", set())
        for hooks in (
            "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks",
            "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
            "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
        ):  # fmt: skip
            put(hooks, OrderedDict())
        put("_is_full_backward_hook", None)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes. A subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def apply(self: _Self, fn: Callable[[Module], Any]) -> _Self:
        """Calls a function on every module below, and on this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: _Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> _Self:
        """Replaces every tensor by what the function makes of it; parameters stay the same objects, unless `__future__` says
        otherwise."""
        _plimsoll._modules_changed()
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for name, param in self._parameters.items():
                if param is not None:
                    self._parameters[name] = _conversion.converted(fn, param, f"{type(self).__name__}.{name}")
            for name, buffer in self._buffers.items():
                if is_lazy(buffer):
                    buffer.data = fn(buffer.data)
                elif buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self: _Self, *args: Any, **kwargs: Any) -> _Self:
        """Moves and casts all tensors, in place: `to(device, dtype, non_blocking)`, `to(dtype)`, `to(tensor)`,
        `to(memory_format=...)`. Only floats are cast."""
        return self._apply(_moves.parsed(*args, **kwargs))

    def _cast(self: _Self, dtype: Any) -> _Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self: _Self) -> _Self:
        """Casts floats to float32."""
        return self._cast(_plimsoll.float32)

    def double(self: _Self) -> _Self:
        """Casts floats to float64."""
        return self._cast(_plimsoll.float64)

    def half(self: _Self) -> _Self:
        """Casts floats to float16."""
        return self._cast(_plimsoll.float16)

    def bfloat16(self: _Self) -> _Self:
        """Casts floats to bfloat16."""
        return self._cast(_plimsoll.bfloat16)

    def type(self: _Self, dst_type: Any) -> _Self:
        """Casts every tensor."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def cuda(self: _Self, device: Any = None) -> _Self:
        """Moves all tensors to a GPU."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self: _Self) -> _Self:
        """Moves all tensors to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def to_empty(self: _Self, *, device: Any, recurse: bool = True) -> _Self:
        """Gives all tensors memory on a device, which is not written."""
        return self._apply(lambda tensor: _plimsoll.empty_like(tensor, device=device), recurse=recurse)

    def train(self: _Self, mode: bool = True) -> _Self:
        """Sets this module and all below to training, or to evaluation."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: _Self) -> _Self:
        """Sets this module and all below to evaluation."""
        return self.train(False)

    def requires_grad_(self: _Self, requires_grad: bool = True) -> _Self:
        """Says of all parameters whether they are trained."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or writes zeros to them."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are copied "
                "from the original module. Call it on that one",
                stacklevel=2,
            )
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                grad = param.grad
                grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
                grad.zero_()

    def _replicate_for_data_parallel(self: _Self) -> _Self:
        """The same module with places for other tensors and modules; `nn.parallel.replicate` fills them."""
        if any(is_lazy(tensor) for tensor in (*self._parameters.values(), *self._buffers.values())):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
                "correctly initialize the modules"
            )
        replica = type(self).__new__(type(self))
        own = replica.__dict__
        own.update(self.__dict__)
        own.update(_parameters={}, _buffers=self._buffers.copy(), _modules=self._modules.copy(), _is_replica=True)
        return replica

    def share_memory(self: _Self) -> _Self:
        """Moves parameters and buffers to memory that processes share."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the parentheses of the module's text."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        name = self._get_name()
        if len(lines) == 1 and not children:
            return f"{name}({lines[0]})"
        if not lines and not children:
            return f"{name}()"
        return f"{name}(\n  " + "\n  ".join(lines + children) + "\n)"

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        _plimsoll._modules_changed()


def _indented(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line for line in rest)])
