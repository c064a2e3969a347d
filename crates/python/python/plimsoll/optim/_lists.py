"""A step over lists of tensors, as PyTorch's `optim.adam.adam` and its kin take them: no optimizer keeps anything, the
caller does. Each module has the function of its rule, which names the lists; the step itself is the class's."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .._plimsoll import Tensor, is_grad_enabled
from ._fused import FusedOptimizer, check_capturable
from ._one_by_one import OneByOne

#: What a caller keeps beside each parameter: a list for each name, empty if the rule does without.
Lists = dict[str, list[Any]]


def step_lists(
    kind: type[FusedOptimizer] | type[OneByOne],
    group: dict[str, Any],
    params: list[Tensor],
    grads: list[Tensor],
    kept: Lists,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """One step of the parameters by their gradients, as an optimizer of this kind makes it. What is kept changes in
    place; what a first step makes is put into its list."""
    _check(kind, group, params, grads, kept)
    if (grad_scale is not None or found_inf is not None) and not group.get("fused"):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    # Without its `__init__`, which would ask for parameters that are leaves.
    stepper = kind.__new__(kind)
    stepper.defaults, stepper.state = group, defaultdict(dict)
    for name, values in kept.items():
        for param, value in zip(params, values):
            if value is not None:
                stepper.state[param][name] = value
    if isinstance(stepper, FusedOptimizer):
        # As a scaler sets them.
        vars(stepper).update(grad_scale=grad_scale, found_inf=found_inf)
        begun = stepper._begin_group(group, params)
        stepper._step_group(group, params, grads, begun)
    else:
        for param, grad in zip(params, grads, strict=True):
            stepper._step_one(group, param, grad)
    for name, values in kept.items():
        for at, (param, value) in enumerate(zip(params, values)):
            if value is None:
                values[at] = stepper.state[param].get(name)


def _check(kind: Any, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], kept: Lists) -> None:
    name = kind.__name__
    if group.get("differentiable"):
        raise RuntimeError(
            f"{name.lower()}: steps of lists are not recorded, differentiable=True is for the class: "
            f"optim.{name}(..., differentiable=True)"
        )
    for word in ("step", "mu_product"):
        if not all(isinstance(value, Tensor) for value in kept.get(word, [])):
            what = {"step": "state_steps", "mu_product": "mu_products"}[word]
            raise RuntimeError(f"API has changed, `{what}` argument must contain a list of singleton tensors")
    if is_grad_enabled() and any(param.requires_grad for param in params):
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation: a step is not recorded, so take it "
            "inside no_grad()"
        )
    # Lists of what a rule does without are empty. Steps are counted always, and momentum needs its buffers.
    needed = {"step", "momentum_buffer"} if group.get("momentum") else {"step"}
    sizes = {word: len(values) for word, values in kept.items() if values or word in needed}
    sizes["grads"] = len(grads)
    for word, size in sizes.items():
        if size != len(params):
            raise ValueError(f"{name.lower()}: {len(params)} parameters, and {size} of {word}")
    if issubclass(kind, FusedOptimizer):
        for param in params:
            check_capturable(group, param, kind._captured)
