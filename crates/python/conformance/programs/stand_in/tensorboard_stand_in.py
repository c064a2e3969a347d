"""`torch.utils.tensorboard`, which neither side has here: a writer that writes nothing."""

from __future__ import annotations

import types
from typing import Any


class SummaryWriter:
    """Takes what a program logs."""

    def __init__(self, *args: Any, **named: Any) -> None:
        pass

    def _nothing(self, *args: Any, **named: Any) -> None:
        pass

    add_scalar = add_scalars = add_text = add_histogram = add_image = flush = close = _nothing


module = types.ModuleType("torch.utils.tensorboard")
module.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
