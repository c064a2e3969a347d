"""One entry of PyTorch's module database: every input of every dtype, in training and evaluation; state, text, results, buffers,
gradients of parameters and arguments, copies. How near is near enough is in `nearness.py`."""

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
from nearness import Wrong, same_tensors


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
        _results(row, sample, theirs, here, where)


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


def _results(row: dict[str, Any], sample: Any, theirs: Any, here: Any, where: str) -> None:
    copies = [pickle.loads(pickle.dumps(here)), copy.deepcopy(here)]
    truth = Truth(theirs, sample)
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
        same_tensors("output", _flat(expected), _flat(found), truth.results, row)
        same_tensors("buffer", list(theirs.buffers()), list(here.buffers()), truth.buffers, row)

    if not _check(row, "output", where, same_output):
        return
    _check(row, "gradients", where, _same_gradients, row, theirs, here, given, expected, found, truth)

    def same_copies() -> None:
        for one in copies:
            again = pairs.arguments(sample)
            if repr(one) != repr(here) or list(one.state_dict()) != list(here.state_dict()):
                raise Wrong("a copy has another text or other keys")
            if one.training != here.training:
                raise Wrong("a copy is in another mode")
            result = one(*again.ours[1], **again.ours[2])
            for left, right in zip(_flat(found), _flat(result), strict=True):
                left, right = translate.to_torch(left), translate.to_torch(right)
                if not torch.equal(left.nan_to_num(), right.nan_to_num()):
                    raise Wrong("a copy gives another result")

    _check(row, "copies", where, same_copies)


def _same_gradients(
    row: dict[str, Any], theirs: Any, here: Any, given: Any, expected: Any, found: Any, truth: Truth
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
    for at, (name, left, right) in enumerate(leaves):
        if (left.grad is None) != (right.grad is None):
            raise Wrong(f"{name} has {'no' if right.grad is None else 'a'} gradient")
        if left.grad is None:
            continue
        exact = functools.partial(truth.gradient, weights, at)
        same_tensors(f"gradient of {name},", [left.grad], [right.grad], exact, row)


class Truth:
    """PyTorch's module in float64, as it was before the call: what both round."""

    def __init__(self, theirs: Any, sample: Any) -> None:
        self._module, self._sample = copy.deepcopy(theirs), sample
        self._run: tuple[Any, list[Any], list[torch.Tensor]] | None = None
        self._gradients: list[Any] | None = None

    def _ran(self) -> tuple[Any, list[Any], list[torch.Tensor]]:
        """The module, its results, and its arguments that want gradients."""
        if self._run is None:
            wide = self._module.double()
            given = pairs.arguments(self._sample)
            made: dict[int, torch.Tensor] = {}

            def widened(leaf: Any) -> Any:
                if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
                    return leaf
                made[id(leaf)] = leaf.detach().double().requires_grad_(leaf.requires_grad)
                return made[id(leaf)]

            args, kwargs = translate.tree((given.theirs[1], given.theirs[2]), widened)
            results = _flat(wide(*args, **kwargs))
            self._run = wide, results, [made[id(leaf)] for leaf, _ in given.leaves]
        return self._run

    def results(self) -> list[torch.Tensor]:
        return self._ran()[1]

    def buffers(self) -> list[torch.Tensor]:
        return list(self._ran()[0].buffers())

    def gradient(self, weights: list[torch.Tensor], at: int) -> list[torch.Tensor]:
        """That of a parameter, or of an argument after them."""
        if self._gradients is None:
            wide, results, leaves = self._ran()
            results = [one for one in results if one.is_floating_point() and one.requires_grad]
            torch.autograd.backward(results, [weight.double() for weight in weights])
            self._gradients = [param.grad for param in wide.parameters()] + [leaf.grad for leaf in leaves]
        return [self._gradients[at]]
