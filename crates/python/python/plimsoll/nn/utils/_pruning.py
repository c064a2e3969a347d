"""What ways to prune share: a mask on a module's tensor, applied before each call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ..parameter import Parameter


class BasePruningMethod:
    """A way to choose what is zero. A subclass defines `compute_mask` and `PRUNING_TYPE`: `unstructured`, `structured` or
    `global`."""

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask of a tensor; what a mask before it hid stays hidden."""
        raise NotImplementedError(f"{type(self).__name__} does not define compute_mask")

    def apply_mask(self, module: Any) -> Tensor:
        """The tensor with zeros where the mask has them."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        masked: Tensor = mask.to(dtype=original.dtype) * original
        return masked

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes a tensor of a module, on top of what pruned it before."""
        before, key = None, None
        for key, hook in module._forward_pre_hooks.items():
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                before = hook
                break
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{tuple(importance_scores.shape)} vs {tuple(original.shape)}"
            )
        scores = original if importance_scores is None else importance_scores
        if before is not None:
            container = PruningContainer(before)
            container.add_pruning_method(method)
            method = container
            default = getattr(module, name + "_mask")
        else:
            default = _plimsoll.ones_like(original)
        # The mask is made before the module is changed: a refusal leaves it as it is.
        mask = method.compute_mask(scores.detach(), default_mask=default.detach())
        if before is None:
            if not isinstance(original, Parameter):
                raise AttributeError(f"{name!r} of {module} is no parameter")
            del module._parameters[name]
            module.register_parameter(name + "_orig", original)
        else:
            del module._forward_pre_hooks[key]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor, without a module."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        scores = t if importance_scores is None else importance_scores
        default = _plimsoll.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Makes the pruned tensor a parameter: what is zero stays so, and is trained again."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters[self._tensor_name + "_orig"]
        original.data = weight.data
        del module._parameters[self._tensor_name + "_orig"]
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


class PruningContainer(BasePruningMethod):
    """Several ways to prune one tensor, each on what the ones before left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        given = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        methods = list(given)
        if methods:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds one, of the same tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        found: BasePruningMethod = self._pruning_methods[idx]
        return found

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method: BasePruningMethod = self._pruning_methods[-1]
        kept = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            places: Any = kept == 1
        elif method.PRUNING_TYPE == "structured":
            dim = getattr(method, "dim", -1)
            others = [at for at in range(t.dim()) if at != dim % t.dim()]
            alive = kept.sum(others) != 0
            places = tuple(alive if at == dim % t.dim() else slice(None) for at in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            places = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = kept.clone()
        mask[places] = method.compute_mask(t[places], default_mask=kept[places]).to(mask.dtype)
        return mask
