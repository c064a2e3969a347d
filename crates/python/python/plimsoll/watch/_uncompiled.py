"""What PyTorch's compiler leaves alone: the watch's own functions that compiled code comes to, as hooks of optimizers. It would
compile them, and the watch behind them, and fail there. The compiler has a mark for that, but to set it imports all of it,
which takes seconds; these are the same through its native part. Calls of the program's that only pass through the watch are
told to it where they are replaced (`_steps.py`, `_phases.py`)."""

from __future__ import annotations

from typing import Any


def leave_alone(framework: Any, function: Any, and_calls: bool = True) -> None:
    """Has a function run as it is, and, unless told otherwise, all that it calls. `framework` is PyTorch, or a module with its
    names that has no compiler."""
    native = getattr(getattr(getattr(framework, "_C", None), "_dynamo", None), "eval_frame", None)
    if and_calls:
        # Where the code that calls it is compiled.
        function._torchdynamo_disable = True
    if native is None or not hasattr(native, "_FrameExecStrategy"):
        # An older PyTorch.
        return
    skip, default = native._FrameAction.SKIP, native._FrameAction.DEFAULT
    native.set_code_exec_strategy(function.__code__, native._FrameExecStrategy(skip, skip if and_calls else default))
