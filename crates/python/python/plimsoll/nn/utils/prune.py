"""Pruning: weights that stay zero, chosen one by one or by whole channels, in one module or over many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _plimsoll
from ... import linalg
from ..._plimsoll import Tensor
from ._pruning import BasePruningMethod as BasePruningMethod
from ._pruning import PruningContainer as PruningContainer


def _check_amount(amount: Any) -> None:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, int) and amount < 0) or (isinstance(amount, float) and not 0.0 <= amount <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount: float, size: int) -> int:
    """How many of so many are pruned: a number, or a share."""
    if isinstance(amount, int):
        if amount > size:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return amount
    return round(amount * size)


def _check_structured(t: Tensor, dim: int) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {tuple(t.shape)} with {t.dim()} dims"
        )
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {tuple(t.shape)}")


class Identity(BasePruningMethod):
    """Prunes nothing: only the mask is made."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """The elements of the least scores, one by one."""

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.contiguous().clone()
        if count:
            _, least = self._scores(t).reshape(-1).topk(count, largest=False)
            mask.view(-1)[least] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Elements drawn at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return _plimsoll.rand_like(t)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """The smallest elements."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """The channels of the least scores, along one dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structured(t, self.dim)
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        _, best = self._scores(t).topk(size - count, largest=True)
        kept = _plimsoll.zeros(size, dtype=t.dtype, device=t.device)
        kept[best] = 1
        shape = [1] * t.dim()
        shape[self.dim] = size
        return default_mask.to(dtype=t.dtype) * kept.reshape(shape)


class RandomStructured(_Structured):
    """Channels drawn at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return _plimsoll.rand(t.shape[self.dim], device=t.device)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, dim: int = -1) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """The channels of the smallest norm."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        others = [at for at in range(t.dim()) if at != self.dim % t.dim()]
        if isinstance(self.n, str):
            if self.n != "fro":
                raise NotImplementedError(f"ln_structured: a norm {self.n!r} is not there; use a number or 'fro'")
            return linalg.vector_norm(t, 2, others)
        return linalg.vector_norm(t, float(self.n), others)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """What a mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {tuple(default_mask.shape)} must match self.mask shape {tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


def identity(module: Any, name: str) -> Any:
    """Makes a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes elements drawn at random: a number of them, or a share."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prunes the smallest elements: a number of them, or a share."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes channels drawn at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prunes the channels of the smallest norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes what a mask says."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: type[BasePruningMethod], importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes many tensors as if they were one: pairs of a module and a name."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    scores_of = {} if importance_scores is None else importance_scores
    if not isinstance(scores_of, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores, masks = [], []
    for module, name in pairs:
        tensor = getattr(module, name)
        scores.append(scores_of.get((module, name), tensor).detach().reshape(-1))
        masks.append(getattr(module, name + "_mask", _plimsoll.ones_like(tensor)).detach().reshape(-1))
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask = container.compute_mask(_plimsoll.cat(scores), _plimsoll.cat(masks))
    at = 0
    for module, name in pairs:
        tensor = getattr(module, name)
        custom_from_mask(module, name, mask=mask[at : at + tensor.numel()].view_as(tensor))
        at += tensor.numel()


def remove(module: Any, name: str) -> Any:
    """Makes a pruned tensor a parameter again: what is zero stays so, and is trained."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether something in a module, or below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for one in module.modules() for hook in one._forward_pre_hooks.values()
    )
