"""Modules that learn the size of their input at their first call."""

from __future__ import annotations

from typing import Any

from ..parameter import is_lazy


class LazyModuleMixin:
    """What lazy modules share: parameters without a shape, and a hook before the first call that gives them one. The
    module then becomes one of the class `cls_to_become`."""

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own: Any = self
        self._initialize_hook = own.register_forward_pre_hook(own._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives parameters their shapes, from the arguments of a call. A subclass defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        own: Any = self
        return any(is_lazy(tensor) for tensor in [*own._parameters.values(), *own._buffers.values()])

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
