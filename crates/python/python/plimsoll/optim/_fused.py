"""Optimizers whose step is one fused operation over all parameters of a group; or, if it is to be differentiable, one
that is recorded (`_differentiable.py`).

A class says its rule's name and numbers, and which tensors it keeps; this file gathers the lists, makes what is kept at
a parameter's first step, and calls the operation. Steps of parameters on several devices are one operation a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _plimsoll
from .._modes import enable_grad, no_grad
from .._plimsoll import Tensor
from ._differentiable import recorded_step
from .optimizer import Optimizer

_MASTER = "master_param"


def check_number(name: str, value: Any, least: float = 0.0) -> None:
    """Refuses what is below the least, in PyTorch's words; a NaN too."""
    if not least <= value:
        raise ValueError(f"Invalid {name}: {value}")


def check_lr(lr: Any) -> None:
    """Refuses learning rates that are negative or not one number."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_number("learning rate", lr)


def check_betas(betas: Any) -> None:
    """Refuses shares outside of 0 to 1."""
    for index in range(2):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def check_capturable(group: dict[str, Any], param: Tensor, what: str) -> None:
    """Refuses steps on a CPU that are to be captured in a graph of CUDA, when they are to run, as PyTorch does."""
    if group.get("capturable") and not group.get("fused") and param.device.type == "cpu":
        raise AssertionError(f"If capturable=True, {what} must be on supported devices: ['cuda'].")


def wants_copy(group: dict[str, Any], param: Tensor) -> bool:
    """Whether a parameter is to have a float32 copy."""
    return bool(group.get("master_weights")) and param.dtype in (_plimsoll.float16, _plimsoll.bfloat16)


def has_begun(kept: dict[str, Any]) -> bool:
    """Whether all that a first step makes is there. A parameter that was cast before it has its copy alone."""
    return not kept.keys() <= {_MASTER}


def kept_number(param: Tensor, value: float = 0.0) -> Tensor:
    """One float32 beside a parameter."""
    return _plimsoll.full((), value, dtype=_plimsoll.float32, device=param.device)


class FusedOptimizer(Optimizer):
    """An optimizer whose step is one operation."""

    # The rule, as the operation knows it.
    _rule: str
    # Whether steps are counted, each parameter's in a tensor of its own.
    _counts_steps = True
    # Whether weight decay goes by the parameter itself; `None` if the group says it.
    _decoupled: bool | None = False
    # What groups of older versions lack.
    _absent: dict[str, Any] = {"foreach": None, "maximize": False, "differentiable": False}
    # What must be on a GPU for steps to be captured.
    _captured = "params and state_steps"

    def __init__(self, params: Any, defaults: dict[str, Any], master_weights: bool = False) -> None:
        if defaults.get("fused"):
            if defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        if master_weights:
            if defaults.get("differentiable"):
                raise ValueError("`differentiable` does not support `master_weights`")
            defaults["master_weights"] = True
        # A scaler unscales the gradients itself before steps that are recorded.
        self._step_supports_amp_scaling = not defaults.get("differentiable")
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._step_supports_amp_scaling = not self.defaults.get("differentiable")
        for group in self.param_groups:
            for name, value in self._absent.items():
                group.setdefault(name, value)
            if not self._counts_steps:
                continue
            for param in group["params"]:
                kept = self.state.get(param) or {}
                if has_begun(kept) and not isinstance(kept.get("step", 0.0), Tensor):
                    kept["step"] = kept_number(param, float(kept.get("step", 0.0)))

    def _placed(self, param: Tensor, group: dict[str, Any], key: Any, value: Tensor) -> Tensor:
        if key in ("step", "mu_product"):
            # Beside its parameter, for the operation counts there.
            return value.to(dtype=_plimsoll.float32, device=param.device).mark_optimizer_state()
        if wants_copy(group, param):
            return value.to(dtype=_plimsoll.float32, device=param.device).mark_optimizer_state()
        return super()._placed(param, group, key, value)

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        """The rule's numbers in its order."""
        raise NotImplementedError

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The names of the tensors that the rule keeps, in its order."""
        raise NotImplementedError

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any], like: Tensor) -> None:
        """Makes what is kept beside a parameter; `like` is what it is shaped like."""
        if self._counts_steps:
            kept["step"] = kept_number(param)
        for name in self._states(group):
            kept[name] = _plimsoll.zeros_like(like)

    def _begun(self, group: dict[str, Any], param: Tensor) -> None:
        """Makes what is kept beside a parameter, booked as an optimizer's: all of it or, if memory runs out, nothing."""
        kept: dict[str, Any] = {}
        with _plimsoll._Phase("optimizer", param):
            like = param.detach()
            if wants_copy(group, param):
                copy = (self.state.get(param) or {}).get(_MASTER)
                like = kept[_MASTER] = like.to(_plimsoll.float32) if copy is None else copy
            self._begin(group, param, kept, like)
            for value in kept.values():
                if isinstance(value, Tensor):
                    value.mark_optimizer_state()
        self.state[param].update(kept)

    def _copied(self, group: dict[str, Any], param: Tensor) -> bool:
        """Whether a parameter has a float32 copy; makes one if its state comes from an optimizer without."""
        if not wants_copy(group, param):
            return False
        if _MASTER not in self.state[param]:
            with _plimsoll._Phase("optimizer", param):
                self.state[param][_MASTER] = param.detach().to(_plimsoll.float32).mark_optimizer_state()
        return True

    def cast_parameters(self, dtype: Any) -> None:
        """Casts the float32 parameters, and their gradients, of each group with `master_weights` to `dtype` (float16 or
        bfloat16), and keeps what they were as their float32 copies. Copies that a step makes of a model that was cast
        before start in the middle of what rounds to each half: at small learning rates the first steps then change no
        parameter. Parameters of other dtypes, and those of groups without `master_weights`, stay as they are: norms whose
        weights are float32 take rows of halves. A state that was saved is loaded afterwards: casting makes the copies
        anew."""
        if dtype not in (_plimsoll.float16, _plimsoll.bfloat16):
            raise ValueError(f"cast_parameters makes parameters float16 or bfloat16, not {dtype}")
        cast_groups = [group for group in self.param_groups if group.get("master_weights")]
        if not cast_groups:
            what = "set `master_weights=True` in the groups whose parameters are to be cast"
            raise ValueError(f"cast_parameters keeps float32 copies: {what}")
        for group in cast_groups:
            for param in group["params"]:
                if param.dtype != _plimsoll.float32:
                    continue
                with no_grad(), _plimsoll._Phase("optimizer", param):
                    # Its own memory: others may share the parameter's.
                    copy = param.detach().clone().mark_optimizer_state()
                    data, grad = param.detach().to(dtype), param.grad
                    cast = None if grad is None else grad.to(dtype)
                    param.grad = None
                    param.data = data
                    param.grad = cast
                self.state[param][_MASTER] = copy

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of all parameters that have gradients. `closure` computes the loss anew; what it returns is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        works: list[tuple[dict[str, Any], list[Tensor], list[Tensor], Any]] = []
        for group in self.param_groups:
            params, grads = [], []
            for param in group["params"]:
                grad = param.grad
                if grad is not None:
                    params.append(param)
                    grads.append(grad)
            if group.get("capturable"):
                for param in params:
                    check_capturable(group, param, self._captured)
            elif params and "capturable" in group:
                self._check_not_captured(params[0])
            if params and self.defaults.get("differentiable"):
                self._step_recorded(group, params, grads)
            elif params:
                # All that is kept, before the first group steps: if memory runs out for it, none has.
                works.append((group, params, grads, self._begin_group(group, params)))
        for group, params, grads, begun in works:
            self._step_group(group, params, grads, begun)
        return loss

    def _check_not_captured(self, param: Tensor) -> None:
        """Refuses to write numbers of the host into a graph, in PyTorch's words."""
        if param.device.type not in ("cpu", "meta") and _plimsoll._current_stream(param.device)._is_capturing:
            said = f"an instance of {type(self).__name__} but param_groups' capturable is False."
            raise RuntimeError(f"Attempting CUDA graph capture of step() for {said}")

    def _step_recorded(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """A step that gradients flow through, made of tensor operations."""
        if group["foreach"]:
            raise AssertionError("_foreach ops don't support autograd")
        for param, grad in zip(params, grads, strict=True):
            # What plain gradient descent keeps has no values before its first step.
            if not self.state[param] and self._rule != "sgd":
                self._begun(group, param)
            with enable_grad():
                recorded_step(self._rule, group, param, grad, self.state[param])
            if not self.state[param]:
                del self.state[param]

    def _begin_group(self, group: dict[str, Any], params: list[Tensor]) -> Any:
        """Makes what is kept beside parameters that step for the first time; what it returns goes to the step."""
        for param in params:
            if has_begun(self.state.get(param) or {}):
                self._copied(group, param)
            else:
                self._begun(group, param)

    def _step_group(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], begun: Any) -> None:
        if not group.get("master_weights"):
            self._run(group, params, grads, self._numbers(group))
            return
        # Parameters with copies and those without are two operations.
        has_copy = [self._copied(group, param) for param in params]
        for copied in (True, False):
            chosen = [at for at, own in enumerate(has_copy) if own is copied]
            if chosen:
                some = ([params[at] for at in chosen], [grads[at] for at in chosen])
                self._run(group, *some, self._numbers(group), copied)

    def _run(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        numbers: list[float],
        copied: bool = False,
    ) -> None:
        names = self._states(group)
        # Asking makes an entry, and what keeps nothing has none.
        kept = [self.state[param] for param in params] if names or self._counts_steps or copied else []
        decoupled = group["decoupled_weight_decay"] if self._decoupled is None else self._decoupled
        options: dict[str, Any] = {}
        if copied:
            options["masters"] = [one[_MASTER] for one in kept]
        if self._rule == "nadam":
            options["products"] = [one["mu_product"] for one in kept]
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if scale is not None or found is not None:
            options.update(grad_scale=scale, found_inf=found)
        _plimsoll._optimizer_step(
            self._rule,
            numbers,
            params,
            grads,
            [[one[name] for one in kept] for name in names],
            [one["step"] for one in kept] if self._counts_steps else [],
            group["lr"],
            weight_decay=float(group.get("weight_decay", 0.0)),
            decoupled_weight_decay=decoupled,
            maximize=group["maximize"],
            **options,
        )
