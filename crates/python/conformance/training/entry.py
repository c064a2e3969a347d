"""One entry of PyTorch's module database: every input of every dtype, in training and evaluation; state, text, results, buffers,
gradients of parameters and arguments, copies. What a call gives is in `results.py`, how near is near enough
in `nearness.py`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable
from typing import Any

import draws
import first_values
import pairs
import results
import torch
import translate
from nearness import Further, Wrong, count, same


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
            drawn = draws.Drawn(info, getattr(torch, name), training)
            try:
                samples = drawn.samples(0)
            except Exception:  # noqa: BLE001 - PyTorch has no such samples
                continue
            for number, sample in enumerate(samples):
                if sample.forward_input is not None:
                    _judge(row, info, sample, draws.Draw(drawn, number))
    _check(row, "first values", "", first_values.compare, info)
    return row


def _judge(row: dict[str, Any], info: Any, sample: Any, draw: draws.Draw) -> None:
    where = draw.where
    row["samples"] += 1
    try:
        theirs, here = pairs.built(info, sample, draw.dtype, draw.training)
        if pairs.is_lazy(theirs):
            _check(row, "text", where, _same_text, theirs, here)
            pairs.give_shapes(sample, theirs, here)
    except Exception as failure:  # noqa: BLE001
        row["failures"].append(f"{where}: not made: {_told(failure)}")
        return
    good = _check(row, "state", where, _same_state, theirs, here)
    _check(row, "text", where, _same_text, theirs, here)
    if good:
        _results(row, sample, theirs, here, draw)


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


def _results(row: dict[str, Any], sample: Any, theirs: Any, here: Any, draw: draws.Draw) -> None:
    where = draw.where
    copies = [pickle.loads(pickle.dumps(here)), copy.deepcopy(here)]
    try:
        call = results.Call(sample, theirs, here)
    except Exception as refusal:  # noqa: BLE001 - PyTorch does not do it either
        row["refused"] = {**row.get("refused", {}), where: _told(refusal)}
        return
    torch.manual_seed(11)
    for name in ("output", "gradients"):
        given = call.outputs() if name == "output" else call.gradients()
        if not _check(row, name, where, _near, row, given, draw):
            return

    def same_copies() -> None:
        for one in copies:
            again = pairs.arguments(sample)
            if repr(one) != repr(here) or list(one.state_dict()) != list(here.state_dict()):
                raise Wrong("a copy has another text or other keys")
            if one.training != here.training:
                raise Wrong("a copy is in another mode")
            result = one(*again.ours[1], **again.ours[2])
            for left, right in zip(call.found, results.flat(result), strict=True):
                left, right = translate.to_torch(left), translate.to_torch(right)
                if not torch.equal(left.nan_to_num(), right.nan_to_num()):
                    raise Wrong("a copy gives another result")

    _check(row, "copies", where, same_copies)


def _near(row: dict[str, Any], given: Iterable[results.Given], draw: draws.Draw) -> None:
    """Fails if a tensor is not PyTorch's: in this draw, or over many if it is further off than PyTorch's here."""
    for one in given:
        try:
            same(one, row)
        except Further as further:
            wrong = draw.wrong(one.name)
            if wrong is None:
                raise
            if wrong:
                raise Wrong(f"{wrong}; in the first {str(further).partition(' is ')[2]}") from further
            count(row, "by_draws", one.theirs.dtype)
