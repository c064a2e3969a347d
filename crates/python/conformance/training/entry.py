"""One entry of PyTorch's module database: every input of every dtype, in training and evaluation."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import first_values
import pairs
import plimsoll
import torch
import translate

# How far results may be off: relative to themselves, and to the largest of the tensor.
DTYPES = {"float32": 2e-5, "float64": 1e-8, "bfloat16": 3e-2, "float16": 4e-3}


class Wrong(Exception):
    """Something is not as in PyTorch."""


def judged(info: Any, dtypes: list[str]) -> dict[str, Any]:
    """The entry's row: how many samples passed each check, and what failed."""
    row: dict[str, Any] = {"name": info.name, "samples": 0, "passed": {}, "failures": []}
    try:
        pairs.class_here(info.module_cls)
    except translate.Absent as absent:
        row["failures"].append(str(absent))
        return row
    for name in dtypes:
        for training in (True, False):
            dtype = getattr(torch, name)
            torch.manual_seed(0)
            try:
                samples = info.module_inputs_func(
                    info, device="cpu", dtype=dtype, requires_grad=True, training=training
                )
            except Exception:  # noqa: BLE001 - PyTorch has no such samples
                continue
            for number, sample in enumerate(samples):
                if sample.forward_input is not None:
                    _judge(row, info, sample, dtype, training, f"{name} {'train' if training else 'eval'} #{number}")
    _check(row, "first values", "", first_values.compare, info)
    return row


def _judge(row: dict[str, Any], info: Any, sample: Any, dtype: torch.dtype, training: bool, where: str) -> None:
    row["samples"] += 1
    try:
        theirs, here = pairs.built(info, sample, dtype, training)
        if pairs.is_lazy(theirs):
            _check(row, "text", where, _same_text, theirs, here)
            given = pairs.arguments(sample)
            theirs(*given.theirs[1], **given.theirs[2])
            here(*given.ours[1], **given.ours[2])
    except Exception as failure:  # noqa: BLE001
        row["failures"].append(f"{where}: not made: {_told(failure)}")
        return
    good = _check(row, "state", where, _same_state, theirs, here)
    _check(row, "text", where, _same_text, theirs, here)
    if good:
        _results(row, sample, theirs, here, dtype, where)


def _check(row: dict[str, Any], name: str, where: str, check: Any, *args: Any) -> bool:
    try:
        check(*args)
    except Exception as failure:  # noqa: BLE001
        row["failures"].append(f"{where} {name}: {_told(failure)}".strip())
        return False
    row["passed"][name] = row["passed"].get(name, 0) + 1
    return True


def _told(failure: Exception) -> str:
    said = " ".join(str(failure).split())[:300]
    return said if isinstance(failure, Wrong) else f"{type(failure).__name__}: {said}"


def _same_state(theirs: Any, here: Any) -> None:
    """Names in PyTorch's order, shapes, dtypes, versions and plain attributes; then takes PyTorch's values."""
    state, own = theirs.state_dict(), here.state_dict()
    if list(state) != list(own):
        raise Wrong(f"keys are {list(own)}, in PyTorch {list(state)}")
    for name, value in state.items():
        if tuple(value.shape) != tuple(own[name].shape) or translate.DTYPES[value.dtype] != own[name].dtype:
            raise Wrong(f"{name} is {own[name].dtype} {own[name].shape}, in PyTorch {value.dtype} {tuple(value.shape)}")
    if state._metadata != own._metadata:
        raise Wrong(f"versions are {own._metadata}, in PyTorch {state._metadata}")
    wants = {name: param.requires_grad for name, param in theirs.named_parameters()}
    if wants != {name: param.requires_grad for name, param in here.named_parameters()}:
        raise Wrong("other parameters require gradients")
    for name, value in theirs.__dict__.items():
        if name.startswith("_") or not isinstance(value, (int, float, str, tuple, type(None))):
            continue
        if name in ("activation_relu_or_gelu", "use_nested_tensor"):  # of PyTorch's fast path
            continue
        if not hasattr(here, name) or getattr(here, name) != value:
            raise Wrong(f"the attribute {name} is {getattr(here, name, 'absent')!r}, in PyTorch {value!r}")
    pairs.copy_state(theirs, here)


def _same_text(theirs: Any, here: Any) -> None:
    if repr(theirs) != repr(here):
        raise Wrong(f"the text is {here!r}, in PyTorch {theirs!r}")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    return [value] if isinstance(value, (torch.Tensor, plimsoll.Tensor)) else []


def _results(row: dict[str, Any], sample: Any, theirs: Any, here: Any, dtype: torch.dtype, where: str) -> None:
    copies = [pickle.loads(pickle.dumps(here)), copy.deepcopy(here)]
    given = pairs.arguments(sample)
    try:
        expected = theirs(*given.theirs[1], **given.theirs[2])
    except Exception as refusal:  # noqa: BLE001 - PyTorch does not do it either
        row["refused"] = {**row.get("refused", {}), where: _told(refusal)}
        return
    found: Any = None

    def same_output() -> None:
        nonlocal found
        found = here(*given.ours[1], **given.ours[2])
        try:
            _same_tensors("output", _flat(expected), _flat(found), dtype)
        except Wrong:
            floats = [one for one in _flat(expected) if one.is_floating_point()]
            if dtype.itemsize > 2 or len(floats) != len(_flat(found)):
                raise
            # A little of rounding only: another choice, as of a window, stays wrong.
            _same_tensors("output", _flat(expected), _flat(found), dtype, 2.0)
            truth = _in_float64(theirs, sample)[1]
            for exact, left, right in zip(truth, floats, _flat(found), strict=True):
                _check_no_worse("output", exact, left, right)
        _same_tensors("buffer", list(theirs.buffers()), list(here.buffers()), dtype)

    if not _check(row, "output", where, same_output):
        return
    exact = functools.partial(_exact, theirs, sample)
    _check(row, "gradients", where, _same_gradients, theirs, here, given, expected, found, dtype, exact)

    def same_copies() -> None:
        for one in copies:
            again = pairs.arguments(sample)
            if repr(one) != repr(here) or list(one.state_dict()) != list(here.state_dict()):
                raise Wrong("a copy has another text or other keys")
            result = one(*again.ours[1], **again.ours[2])
            for left, right in zip(_flat(found), _flat(result), strict=True):
                left, right = translate.to_torch(left), translate.to_torch(right)
                if not torch.equal(left.nan_to_num(), right.nan_to_num()):
                    raise Wrong("a copy gives another result")

    _check(row, "copies", where, same_copies)


def _same_tensors(what: str, expected: list[Any], found: list[Any], dtype: torch.dtype, factor: float = 1.0) -> None:
    if len(expected) != len(found):
        raise Wrong(f"{len(found)} tensors of {what}, in PyTorch {len(expected)}")
    for at, (left, right) in enumerate(zip(expected, found, strict=True)):
        right = translate.to_torch(right)
        left = left.detach()
        if left.dtype != right.dtype or left.shape != right.shape:
            kinds = [f"{one.dtype} {tuple(one.shape)}" for one in (right, left)]
            raise Wrong(f"{what} {at} is {kinds[0]}, in PyTorch {kinds[1]}")
        if not left.is_floating_point():
            if not torch.equal(left, right):
                raise Wrong(f"{what} {at} differs")
            continue
        wide = left.double()
        finite = wide[wide.isfinite()].abs()
        share = factor * DTYPES[str(dtype).removeprefix("torch.")]
        least = share * (float(finite.max()) if finite.numel() else 0.0)
        if not torch.allclose(wide, right.double(), rtol=share, atol=least + 1e-12, equal_nan=True):
            worst = (wide - right.double()).abs().nan_to_num().max()
            raise Wrong(f"{what} {at} is off by {float(worst):.3g}")


def _same_gradients(
    theirs: Any, here: Any, given: Any, expected: Any, found: Any, dtype: torch.dtype, exact: Any
) -> None:
    """The gradients of a sum of all results, each element with a weight of its own."""
    torch.manual_seed(11)
    results = [
        (left, right)
        for left, right in zip(_flat(expected), _flat(found), strict=True)
        if left.is_floating_point()
    ]
    if [left.requires_grad for left, _ in results] != [right.requires_grad for _, right in results]:
        raise Wrong("other results require gradients")
    results = [pair for pair in results if pair[0].requires_grad]
    if not results:
        return
    weights = [torch.randn_like(left) for left, _ in results]
    torch.autograd.backward([left for left, _ in results], weights)
    plimsoll.autograd.backward([right for _, right in results], [translate.to_ours(weight) for weight in weights])
    own = dict(here.named_parameters())
    leaves = [(name, param, own[name]) for name, param in theirs.named_parameters()]
    leaves += [(f"argument {at}", *pair) for at, pair in enumerate(given.leaves)]
    truth: list[Any] | None = None
    for at, (name, left, right) in enumerate(leaves):
        if (left.grad is None) != (right.grad is None):
            raise Wrong(f"{name} has {'no' if right.grad is None else 'a'} gradient")
        if left.grad is None:
            continue
        try:
            _same_tensors(f"gradient of {name},", [left.grad], [right.grad], dtype, 5.0)
        except Wrong:
            if dtype.itemsize > 2:
                raise
            # Both round differently: the one here may be as far from the truth as PyTorch's.
            truth = exact(weights) if truth is None else truth
            _check_no_worse(f"gradient of {name}", truth[at], left.grad, right.grad)


def _in_float64(theirs: Any, sample: Any) -> tuple[Any, list[torch.Tensor], list[torch.Tensor]]:
    """PyTorch's module in float64: itself, its results, and its arguments that want gradients."""
    wide = copy.deepcopy(theirs).double()
    wide.zero_grad()
    given = pairs.arguments(sample)
    made: dict[int, torch.Tensor] = {}

    def widened(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        made[id(leaf)] = leaf.detach().double().requires_grad_(leaf.requires_grad)
        return made[id(leaf)]

    args, kwargs = translate.tree((given.theirs[1], given.theirs[2]), widened)
    results = [one for one in _flat(wide(*args, **kwargs)) if one.is_floating_point()]
    return wide, results, [made[id(leaf)] for leaf, _ in given.leaves]


def _exact(theirs: Any, sample: Any, weights: list[torch.Tensor]) -> list[Any]:
    """The gradients in float64, in the order of parameters and arguments."""
    wide, results, leaves = _in_float64(theirs, sample)
    results = [one for one in results if one.requires_grad]
    torch.autograd.backward(results, [weight.double() for weight in weights])
    return [param.grad for param in wide.parameters()] + [leaf.grad for leaf in leaves]


def _check_no_worse(what: str, truth: torch.Tensor, theirs: torch.Tensor, here: Any) -> None:
    """Fails if a rounded result here is further from the truth than twice PyTorch's."""
    off = [float((one.detach().double() - truth).abs().max()) for one in (theirs, translate.to_torch(here))]
    if not off[1] <= 2 * off[0]:
        raise Wrong(f"{what} is off by {off[1]:.3g} from float64, PyTorch's by {off[0]:.3g}")
