"""The scaler of gradients: losses are multiplied before backward so that float16 gradients do not vanish, gradients are
divided before the step, and a step whose gradients are not finite is skipped; then the scale falls.

Unscaling is one operation over all gradients of a device. With the optimizers of `plimsoll.optim`, whose step asks the
device whether to happen, the host never waits."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from .. import _plimsoll
from .._modes import no_grad
from .._plimsoll import Tensor
from ..optim._fused import FusedOptimizer

_FORGOTTEN = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
_NEW_SCALE = (
    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."
)


class OptState(Enum):
    """Where an optimizer is between two updates of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _has_cuda() -> bool:
    return _plimsoll._cuda_count() > 0


class _Copies:
    """Copies of a number, one for each device that asks."""

    def __init__(self, number: Tensor) -> None:
        self.number = number
        self.by_device: dict[str, Tensor] = {}

    def on(self, device: Any) -> Tensor:
        key = str(device)
        if key not in self.by_device:
            self.by_device[key] = self.number.to(device, copy=True)
        return self.by_device[key]


class GradScaler:
    """Scales losses, and skips steps whose gradients are infinite or NaN."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not _has_cuda():
            warnings.warn("GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh)

    def _begun(self, what: str) -> tuple[Tensor, Tensor]:
        if self._scale is None:
            raise AssertionError(f"Attempted {what} but _scale is None.  {_FORGOTTEN}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {what} but _growth_tracker is None.  {_FORGOTTEN}")
        return self._scale, self._growth_tracker

    def _scale_on(self, device: Any) -> Tensor:
        """The scale; it is made where the first loss is."""
        if self._scale is None:
            self._scale = _plimsoll.full((), self._init_scale, dtype=_plimsoll.float32, device=device)
            self._growth_tracker = _plimsoll.full(
                (), self._init_growth_tracker, dtype=_plimsoll.int32, device=device
            )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A tensor, or a list of them, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device).to(outputs.device)
        copies: list[_Copies] = []

        def scaled(value: Any) -> Any:
            if isinstance(value, Tensor):
                if not copies:
                    copies.append(_Copies(self._scale_on(value.device)))
                return value * copies[0].on(value.device)
            if not isinstance(value, Iterable):
                raise ValueError("outputs must be a Tensor or an iterable of Tensors")
            parts = map(scaled, value)
            return type(value)(parts) if isinstance(value, (list, tuple)) else parts

        return scaled(outputs)

    @no_grad()
    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[str, Tensor]:
        """Multiplies the gradients by `inv_scale`, one operation a device; says for each whether one was not finite."""
        inverses, founds = _Copies(inv_scale), _Copies(found_inf)
        grads: dict[str, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype == _plimsoll.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads.setdefault(str(grad.device), []).append(grad)
        with _plimsoll._Phase("optimizer"):
            for own in grads.values():
                device = own[0].device
                _plimsoll._amp_foreach_non_finite_check_and_unscale_(own, founds.on(device), inverses.on(device))
        return founds.by_device

    def unscale_(self, optimizer: Any) -> None:
        """Divides the optimizer's gradients by the scale, to look at them or clip them before the step."""
        if not self._enabled:
            return
        scale, _ = self._begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The inverse is rounded once.
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, self._nothing(scale), False)
        state["stage"] = OptState.UNSCALED

    @staticmethod
    def _nothing(scale: Tensor) -> Tensor:
        return _plimsoll.zeros((), dtype=_plimsoll.float32, device=scale.device)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step with gradients that are divided by the scale, unless one is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale, _ = self._begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_on_device(optimizer, scale, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            self._check_recorded(state)
            skips = sum(found.item() for found in state["found_inf_per_device"].values())
            result = None if skips else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    @staticmethod
    def _check_recorded(state: dict[str, Any]) -> None:
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")

    def _step_on_device(self, optimizer: Any, scale: Tensor, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """A step that divides the gradients itself, and finds out itself whether it is to happen."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer: it gives the "
                "optimizer the tensors `grad_scale` and `found_inf`, which its step may read.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        is_ready = state["stage"] is OptState.READY
        if is_ready:
            one = _plimsoll.ones((), dtype=_plimsoll.float32, device=scale.device)
            # Every optimizer of ours divides inside its step; PyTorch's do, and take float16, only if they are `fused`.
            # A step of the user's that says it can do it is trusted, as there.
            # Float32 copies, which PyTorch has not, keep what float16 loses.
            takes_half = not isinstance(optimizer, FusedOptimizer) or any(
                optimizer.defaults.get(name) for name in ("fused", "master_weights")
            )
            found = self._unscale_grads_(optimizer, one, self._nothing(scale), takes_half)
            state["found_inf_per_device"] = found
        founds = list(state["found_inf_per_device"].values())
        if not founds and not optimizer.defaults.get("fused"):
            # PyTorch's other optimizers have their gradients divided before: there, that has happened.
            state["stage"] = OptState.UNSCALED
            self._check_recorded(state)
        found_inf = _together(founds, scale) if founds else self._nothing(scale)
        own = getattr(optimizer, "grad_scale", None)
        # Several scalers multiply.
        optimizer.grad_scale = (scale if own is None else scale * own) if is_ready else own
        optimizer.found_inf = found_inf
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale
            del optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """The scale after the steps of all optimizers: smaller if one was skipped, larger after enough that were not."""
        if not self._enabled:
            return
        scale, tracker = self._begun("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(_NEW_SCALE)
            scale.copy_(new_scale)
        else:
            states = self._per_optimizer_states.values()
            founds = [found for state in states for found in state["found_inf_per_device"].values()]
            if not founds:
                raise AssertionError("No inf checks were recorded prior to update.")
            _plimsoll._amp_update_scale_(
                scale,
                tracker,
                _together(founds, scale),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_fresh)

    def get_scale(self) -> float:
        """The scale; 1 if nothing is scaled. The host waits for it."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after enough steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Changes it."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Changes it."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many steps are enough."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Changes it."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Five numbers; nothing if it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state.update(
                _init_scale=self.get_scale(),
                _init_growth_tracker=self._get_growth_tracker(),
                _scale=None,
                _growth_tracker=None,
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@no_grad()
def _together(founds: list[Tensor], scale: Tensor) -> Tensor:
    """Whether one of several is 1, beside the scale."""
    found = founds[0].to(scale.device)
    for other in founds[1:]:
        found = _plimsoll.maximum(found, other.to(scale.device))
    return found
