"""One entry of PyTorch's optimizer database: every input, 100 steps in float64 and float32 beside PyTorch on the same
parameters and gradients; states, texts, copies and errors. In float32 PyTorch's optimizer runs in float64 too, on the same
gradients: it is the truth where both have rounded apart (`nearness.py`)."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import warnings
from typing import Any

import list_steps
import plimsoll
import torch
import translate
from entry import _check
from nearness import Wrong, check_no_worse, count, is_near
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

COLUMNS = ["values", "state", "text", "copies", "lists", "errors"]

DTYPES = ["float64", "float32"]

STEPS = 100
# LBFGS's have up to 20 iterations each, and are at the minimum long before.
CLOSING_STEPS = 20

# Of sparse gradients, and of matrices only.
ABSENT = {"Muon", "SparseAdam"}


def entries() -> list[Any]:
    return [info for info in optim_db if info.optim_cls.__name__ not in ABSENT]


def judged(info: Any, dtypes: list[str]) -> dict[str, Any]:
    """The entry's row: how many samples passed each check, and what failed."""
    name = info.optim_cls.__name__
    row: dict[str, Any] = {"name": name, "samples": 0, "passed": {}, "failures": []}
    if getattr(plimsoll.optim, name, None) is None:
        row["failures"].append(f"plimsoll.optim has no {name}")
        return row
    for dtype in (one for one in dtypes if one in DTYPES):
        for number, sample in enumerate(info.optim_inputs_func(device="cpu")):
            row["samples"] += 1
            where = f"{dtype} #{number} {sample.desc}"
            _judge(row, info, sample, dtype, where)
            if list_steps.has_lists(info.optim_cls):
                _check(row, "lists", where, list_steps.same_lists, info.optim_cls, sample.kwargs, dtype)
    for sample in info.optim_error_inputs_func("cpu", torch.float32):
        if "complex" in sample.optimizer_error_input.desc:  # there are no complex tensors here to refuse
            continue
        row["samples"] += 1
        _check(row, "errors", sample.optimizer_error_input.desc, _same_error, info, sample)
    if "capturable" in inspect.signature(info.optim_cls).parameters:
        row["samples"] += 1
        _check(row, "errors", "capturable on a CPU", _same_refusal, info.optim_cls)
    return row


def _same_refusal(kind: type) -> None:
    """A step that is to be captured is refused on a CPU, when it is to run."""
    params = [torch.nn.Parameter(torch.ones(2)), plimsoll.nn.Parameter(plimsoll.ones(2))]
    params[0].grad, params[1].grad = torch.ones(2), plimsoll.ones(2)
    told = []
    for param, one in zip(params, (kind, getattr(plimsoll.optim, kind.__name__)), strict=True):
        optimizer = one([param], capturable=True)
        try:
            optimizer.step()
        except AssertionError as refusal:
            told.append(str(refusal).partition(":")[0])
    if len(told) != 2 or told[0] != told[1]:
        raise Wrong(f"refused are {told}")


def _judge(row: dict[str, Any], info: Any, sample: Any, dtype: str, where: str) -> None:
    pair = Pair(info, sample, dtype, row)
    try:
        pair.run(2)
    except Exception as failure:  # noqa: BLE001
        row["failures"].append(f"{where}: {type(failure).__name__}: {failure}")
        return
    _check(row, "text", where, pair.same_text)
    if not _check(row, "state", where, pair.same_state):
        return
    _check(row, "copies", where, pair.same_copies)
    _check(row, "values", where, pair.all_steps)


class Pair:
    """The same optimizer twice, over the same parameters: in PyTorch and here."""

    def __init__(self, info: Any, sample: Any, dtype: str, row: dict[str, Any]) -> None:
        torch.manual_seed(3)
        kind = getattr(torch, dtype)
        self.row = row
        self.closes = info.optim_cls is torch.optim.LBFGS
        shapes = [(5, 4), (7,), ()]
        self.theirs = [torch.nn.Parameter(torch.randn(shape, dtype=kind)) for shape in shapes]
        self.ours = [plimsoll.nn.Parameter(translate.to_ours(param.detach())) for param in self.theirs]
        self.goals = [torch.randn_like(param) for param in self.theirs]
        self.our_goals = [translate.to_ours(goal) for goal in self.goals]
        self.wide = [torch.nn.Parameter(param.detach().double().clone()) for param in self.theirs]
        self.wide_goals = [goal.double().clone() for goal in self.goals]
        kwargs = sample.kwargs
        self.exact = info.optim_cls(self._groups(self.wide), **copy.deepcopy(kwargs))
        ours = {key: translate.tree(value, _leaf) for key, value in kwargs.items()}
        self.optimizer = info.optim_cls(self._groups(self.theirs), **kwargs)
        self.here = getattr(plimsoll.optim, info.optim_cls.__name__)(self._groups(self.ours), **ours)
        self.taken = 0

    def _groups(self, params: list[Any]) -> list[Any]:
        if self.closes:
            return params
        return [{"params": params[:2]}, {"params": params[2:], "lr": 0.004}]

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.taken += 1
            if self.closes:
                self.optimizer.step(lambda: self._loss(self.optimizer, self.theirs, self.goals))
                self.here.step(lambda: self._loss(self.here, self.ours, self.our_goals))
                self.exact.step(lambda: self._loss(self.exact, self.wide, self.wide_goals))
                continue
            for at, (left, right, wide) in enumerate(zip(self.theirs, self.ours, self.wide, strict=True)):
                if at == 1 and self.taken % 5 == 0:
                    # A parameter that had no part in this step.
                    left.grad = right.grad = wide.grad = None
                    continue
                left.grad = torch.randn_like(left) + 0.1 * left.detach()
                right.grad, wide.grad = translate.to_ours(left.grad), left.grad.double().clone()
            for optimizer in (self.optimizer, self.here, self.exact):
                optimizer.step()

    @staticmethod
    def _goal(params: list[Any], goals: list[Any]) -> Any:
        parts = [((param - goal) ** 2).sum() + 0.1 * (param**4).sum() for param, goal in zip(params, goals, strict=True)]
        return parts[0] + 3 * parts[1] + parts[2]

    def _loss(self, optimizer: Any, params: list[Any], goals: list[Any]) -> Any:
        optimizer.zero_grad()
        loss = self._goal(params, goals)
        loss.backward()
        return loss

    def _worth(self, params: list[torch.Tensor]) -> torch.Tensor:
        """The loss without rounding."""
        return self._goal([param.detach().double() for param in params], self.wide_goals)

    def same_text(self) -> None:
        expected = repr(self.optimizer)
        if any(isinstance(value, torch.Tensor) for group in self.optimizer.param_groups for value in group.values()):
            return
        if repr(self.here) != expected:
            raise Wrong(f"the text is {self.here!r}, in PyTorch {expected}")

    def same_state(self) -> None:
        expected, found = self.optimizer.state_dict(), self.here.state_dict()
        if list(expected) != list(found) or list(expected["state"]) != list(found["state"]):
            raise Wrong(f"keys are {list(found)} and {list(found['state'])}, in PyTorch {list(expected['state'])}")
        for left, right in zip(expected["param_groups"], found["param_groups"], strict=True):
            if list(left) != list(right) or left["params"] != right["params"]:
                raise Wrong(f"a group is {list(right)}, in PyTorch {list(left)}")
        exact = self.exact.state_dict()["state"]
        for key, kept in expected["state"].items():
            if list(kept) != list(found["state"][key]):
                raise Wrong(f"{list(found['state'][key])} is kept, in PyTorch {list(kept)}")
            # Near the minimum, what LBFGS keeps is rounding; float64 has enough left to compare.
            rounding = self.closes and self.theirs[0].dtype is torch.float32
            for name, value in kept.items() if not rounding else ():
                self._same(f"{name} of parameter {key}", value, found["state"][key][name], exact[key][name])

    def _same(self, what: str, left: Any, right: Any, exact: Any) -> None:
        if isinstance(left, (list, tuple)):
            if len(left) != len(right):
                raise Wrong(f"{what} has {len(right)} entries, in PyTorch {len(left)}")
            for one, other, truth in zip(left, right, exact, strict=True):
                self._same(what, one, other, truth)
        elif isinstance(left, torch.Tensor) and isinstance(right, plimsoll.Tensor):
            right = translate.to_torch(right)
            if what.startswith("mu_product"):
                # In PyTorch a state that is loaded has it in the parameter's dtype; here one operation keeps it in float32.
                left, right, exact = left.float(), right.float(), exact.float()
            if left.shape != right.shape or left.dtype != right.dtype:
                raise Wrong(f"{what} is {right.dtype} {tuple(right.shape)}, in PyTorch {left.dtype} {tuple(left.shape)}")
            self._near(what, left.detach(), right, exact)
        elif left is not None:
            wide = [torch.as_tensor(float(one), dtype=torch.float64) for one in (left, right, exact)]
            self._near(what, *wide)

    def _near(self, what: str, left: torch.Tensor, right: torch.Tensor, exact: torch.Tensor) -> None:
        if is_near(left, right):
            return
        what = f"{what} after {self.taken} steps"
        if left.dtype == torch.float64:
            raise Wrong(f"{what} is off by {float((left - right).abs().max()):.3g}")
        check_no_worse(what, exact.detach().double(), left, right, 2.0)
        count(self.row, "by_truth", left.dtype)

    def same_copies(self) -> None:
        """A copy has the same text and state, and a state that is loaded goes on as the optimizer it came from."""
        again = pickle.loads(pickle.dumps(self.here))
        if repr(again) != repr(self.here):
            raise Wrong("a copy has another text")
        for left, right in zip(self.here.state.values(), again.state.values(), strict=True):
            if list(left) != list(right):
                raise Wrong("a copy keeps other things")
        # In PyTorch too: to be loaded changes the dtypes of some of what is kept.
        for optimizer in (self.here, self.optimizer, self.exact):
            optimizer.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
        self.run(2)
        self._values()

    def all_steps(self) -> None:
        self.run((CLOSING_STEPS if self.closes else STEPS) - self.taken)
        self._values()
        if not self.closes:
            self.same_state()

    def _values(self) -> None:
        try:
            for at, (left, right, wide) in enumerate(zip(self.theirs, self.ours, self.wide, strict=True)):
                self._near(f"parameter {at}", left.detach(), translate.to_torch(right), wide)
        except Wrong:
            # A line search ends where the loss is flat to float32, which is a place and not a point: what it is worth counts.
            here = [translate.to_torch(param) for param in self.ours]
            flat = self.closes and self.theirs[0].dtype is torch.float32
            if not flat or not is_near(self._worth(self.theirs).float(), self._worth(here).float()):
                raise
            count(self.row, "by_truth", torch.float32)


def _leaf(value: Any) -> Any:
    return translate.to_ours(value) if isinstance(value, torch.Tensor) else value


def _ours(value: Any, known: dict[int, Any]) -> Any:
    """Parameters of an error's input, here; the same one twice stays the same."""
    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            ours = translate.to_ours(value.detach())
            known[id(value)] = plimsoll.nn.Parameter(ours) if isinstance(value, torch.nn.Parameter) else ours
        return known[id(value)]
    if isinstance(value, dict):
        return {key: _ours(one, known) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_ours(one, known) for one in value)
    return value


def _same_error(info: Any, sample: Any) -> None:
    if sample.error_on is not OptimizerErrorEnum.CONSTRUCTION_ERROR:
        raise Wrong("an error of a step, which is not compared")
    given, known = sample.optimizer_error_input, {}
    params = given.params
    if params is None:
        params = [torch.nn.Parameter(torch.randn(2, 3)) for _ in range(2)]
    params, kwargs = _ours(params, known), _ours(given.kwargs, known)
    kind = getattr(plimsoll.optim, info.optim_cls.__name__)
    try:
        with warnings.catch_warnings():
            if issubclass(sample.error_type, Warning):
                warnings.simplefilter("error")
            kind(params, **kwargs)
    except sample.error_type as failure:
        if not re.search(sample.error_regex, str(failure)):
            raise Wrong(f"the error says {failure}, in PyTorch {sample.error_regex}") from failure
        return
    raise Wrong(f"no {sample.error_type.__name__}")
