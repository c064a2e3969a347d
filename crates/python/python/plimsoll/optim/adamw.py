"""AdamW: Adam with weight decay that goes by the parameter itself."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
from .adam import Adam


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself and leaves the running means alone."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
            master_weights=master_weights,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Older states do not say it, and those of Adam say otherwise.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
