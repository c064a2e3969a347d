"""Functions with a derivative of the user's own: a class with `forward` and `backward`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._modes import no_grad
from .._plimsoll import Tensor, _apply_function, _Link, is_grad_enabled


class FunctionCtx:
    """What `forward` tells `backward`. Any attribute can be set; tensors that backward needs go through
    `save_for_backward`, which counts them and notices when they are overwritten."""

    needs_input_grad: tuple[bool, ...] = ()
    #: The class whose `backward` gets this.
    _forward_cls: type[Function]
    _saved: tuple[Tensor | None, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize = True

    def __init__(self) -> None:
        self._link = _Link()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `backward`: arguments, results, or what was computed on the way. Once a call."""
        self._saved = tensors

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """An old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `forward` saved, in its order."""
        return self._link.saved_tensors()

    def mark_dirty(self, *args: Tensor) -> None:
        """Says that these arguments were written in place. They must be returned."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Says that these results have no derivative."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for results that have no gradient (the default), or None."""
        self._materialize = value

    def apply(self, *args: Any) -> Any:
        """Calls `backward` with gradients of the results, as the graph does."""
        of = self._forward_cls
        return of.backward(self, list(args)) if getattr(of, "boxed_grads_call", False) else of.backward(self, *args)

    def _forget(self) -> None:
        # The graph has them now, and checks them.
        for name in ("_saved", "_dirty", "_non_differentiable"):
            self.__dict__.pop(name, None)


class Function:
    """A function with a derivative of its own. A subclass defines, as static methods, either
    `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs, output)`; and
    `backward(ctx, *grads)`, which returns a gradient for each argument of forward, None for those that are no
    tensors or need none. It is called through `apply`."""

    _backward_cls: type[FunctionCtx]

    _has_setup_context = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._has_setup_context = cls.setup_context is not Function.setup_context
        attributes = {"_forward_cls": cls, "__module__": cls.__module__}
        cls._backward_cls = type(cls.__name__ + "Backward", (FunctionCtx,), attributes)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(f"{type(self)} should not be instantiated: its methods are static, and `apply` calls it", DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated: define static methods, and call `apply`")

    @staticmethod
    def forward(*args: Any) -> Any:
        """Computes the results. What happens in here is not recorded."""
        raise NotImplementedError("a custom function must define forward")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Tells `ctx` what backward needs, if `forward` has no `ctx` of its own."""
        raise NotImplementedError("setup_context is not defined")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments from those of the results."""
        own = ctx._forward_cls.vjp
        if own is Function.vjp:
            raise NotImplementedError("a custom function must define backward or vjp to be differentiated")
        return own(ctx, *grad_outputs)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError("vjp is not defined")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs the function. Arguments by name are put in the place that `forward` has for them."""
        if cls.vjp is not Function.vjp and cls.backward is not Function.backward:
            raise RuntimeError("a custom function defines backward or vjp, not both")
        if kwargs or cls._has_setup_context:
            args = cls._by_place(args, kwargs)
        ctx = cls._backward_cls()
        return _apply_function(ctx, ctx._link, args)

    @classmethod
    def _by_place(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        import inspect  # which takes longer to load than all of this file

        own = () if cls._has_setup_context else (None,)
        signature = inspect.signature(cls.forward)
        names = list(signature.parameters)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
            for name in kwargs:
                if name not in names:
                    raise TypeError(f"{cls.__name__}.forward() got an unexpected keyword argument {name!r}")
                if name in names[: len(own) + len(args)]:
                    raise TypeError(f"{cls.__name__}.forward() got multiple values for argument {name!r}")
        bound = signature.bind(*own, *args, **kwargs)
        # `setup_context` is given what `forward` was: arguments that have defaults too.
        if bound.kwargs or cls._has_setup_context:
            bound.apply_defaults()
        return bound.args[len(own) :]


class InplaceFunction(Function):
    """A function that may write its argument in place; kept for programs that derive from it."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _TwiceRefused(Function):
    """Stands behind the gradients of a function that is differentiable once."""

    @staticmethod
    def forward(ctx: FunctionCtx, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return tuple(None if grad is None else grad.detach() for grad in grads)

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        raise RuntimeError(
            "this gradient comes from a function marked with @once_differentiable, and cannot be differentiated again"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that cannot be differentiated: it is not recorded, and a gradient of its gradients is
    an error and not a wrong number."""

    @functools.wraps(backward)
    def once(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            found = backward(ctx, *grads)
        recorded = any(isinstance(grad, Tensor) and grad.requires_grad for grad in grads)
        if not (recorded and is_grad_enabled()):
            return found
        several = found if isinstance(found, tuple) else (found,)
        leaves = (grad.detach().requires_grad_() if isinstance(grad, Tensor) else grad for grad in several)
        return _TwiceRefused.apply(*leaves)

    return once
