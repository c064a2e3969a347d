"""Writes down what PyTorch answers to a few samples of an entry, so that CI replays them without it (`replay.py`).

Small samples, but not the trivial ones: two of float32 and one of int64 for the results, one of float64 for the gradients. Only
entries that are a function or a method by name; what the database wraps in functions of its own is left out, and so are random
results."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from typing import Any

import torch

import traits
from calls import attempt, call_with
from judge import flat
from replay import encoded, replay
from translate import Absent, Unconvertible, constant, lookup_operation, method_here

WANTED = [(torch.float32, 2), (torch.int64, 1), (torch.float64, 1)]
# Elements of all arguments: samples of up to so many are taken, the largest first; others only if there are none of these.
FEW_ELEMENTS, MOST_ELEMENTS = 80, 600
# So many samples are looked at.
LOOKED_AT = 60


def path_of(op: Any) -> str | None:
    """Where the package has the entry."""
    path = op.name.removeprefix("torch.ops.aten.").removesuffix(".default")
    wrapped = isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing")
    tensors_own = isinstance(op.op, (types.MethodDescriptorType, types.WrapperDescriptorType)) or op.name.startswith("__")
    if wrapped or tensors_own:
        method = op.method_variant
        if method is None or getattr(method, "__name__", "") != op.name:
            return None
        return f"Tensor.{op.name}" if attempt(lambda: method_here(op.name)).error is None else None
    try:
        lookup_operation(path)
    except Absent:
        return None
    return path


def cases(op: Any) -> Iterator[dict[str, Any]]:
    """What is written down of an entry that is whole."""
    path = path_of(op)
    if path is None or any(op.name in special for special in (traits.RANDOM, traits.UNSET, traits.INVARIANTS, traits.TIES)):
        return
    for dtype, count in WANTED:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        requires_grad = dtype == torch.float64
        if requires_grad and not op.supports_autograd:
            continue
        torch.manual_seed(0)
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), LOOKED_AT))
        found = (case_of(op, path, sample, requires_grad) for sample in sorted(samples, key=preference))
        yield from itertools.islice((case for case in found if case is not None and replays(case)), count)


def elements(value: Any) -> int:
    """Of all tensors."""
    if isinstance(value, (list, tuple)):
        return sum(map(elements, value))
    return value.numel() if isinstance(value, torch.Tensor) else 0


def preference(sample: Any) -> tuple[bool, int]:
    count = elements([sample.input, *sample.args, *sample.kwargs.values()])
    return count > FEW_ELEMENTS, count if count > FEW_ELEMENTS else -count


def replays(case: dict[str, Any]) -> bool:
    again = attempt(lambda: replay(case))
    return again.error is None and again.value is None


def case_of(op: Any, path: str, sample: Any, requires_grad: bool) -> dict[str, Any] | None:
    """The sample and PyTorch's answer; nothing if it is too large, or cannot be written down."""
    tensors: list[torch.Tensor] = []

    def written(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return encoded(value.detach().resolve_conj().resolve_neg().numpy())
        if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            return {"list" if isinstance(value, list) else "tuple": [written(item) for item in value]}
        return encoded(constant(value))

    try:
        values = [written((sample.input, *sample.args)), {name: written(value) for name, value in sample.kwargs.items()}]
        if elements(tensors) > MOST_ELEMENTS:
            return None
        theirs = attempt(lambda: call_with(op.op, (sample.input, sample.args, sample.kwargs)))
        if theirs.error is not None or elements(flat(theirs.value)) > MOST_ELEMENTS:
            return None
        case = {"entry": op.name, "call": path, "values": values, "results": written(theirs.value), "leaves": []}
        return case if not requires_grad else with_gradients(case, tensors, theirs.value)
    except (TypeError, Unconvertible):
        return None


def with_gradients(case: dict[str, Any], tensors: list[torch.Tensor], results: Any) -> dict[str, Any] | None:
    places = [place for place, tensor in enumerate(tensors) if tensor.requires_grad and tensor.is_leaf]
    outputs = [result for result in flat(results) if isinstance(result, torch.Tensor) and result.requires_grad]
    if not places or not outputs or any(output.dtype != torch.float64 for output in outputs):
        return None
    cotangents = [torch.randn_like(output) for output in outputs]
    leaves = [tensors[place] for place in places]
    gradients = torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True)
    written = [None if gradient is None else encoded((gradient + 0.0).detach().numpy()) for gradient in gradients]
    return {**case, "leaves": places, "cotangents": [encoded(cotangent.numpy()) for cotangent in cotangents], "gradients": written}
