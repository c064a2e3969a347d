"""All checks of one entry of the operator database."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

import traits
from calls import Pair, attempt, call_with, in_double
from chance import same_distribution
from errors import same_error
from gradients import Both, same_gradients, same_second_gradients
from judge import WRONG, Difference, Rules, brief
from translate import DTYPES, Absent, Arguments, Unconvertible, callable_here, lookup_operation, unseeded
from variants import in_place, into_out, targets

KEPT_FAILURES = 400


@dataclass
class Failure:
    check: str
    kind: str
    dtype: str
    number: int
    sample: str
    words: str


@dataclass
class Options:
    dtypes: list[torch.dtype] = field(default_factory=lambda: [dtype for dtype in DTYPES if not dtype.is_complex])
    # Samples of each dtype; all of them if 0.
    limit: int = 0


class Entry:
    """One entry, and what was found of it."""

    def __init__(self, op: Any, options: Options) -> None:
        self.op, self.options = op, options
        self.counts: dict[str, list[int]] = {}
        self.failures: list[Failure] = []
        self.elementwise = isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo))
        self.looser = traits.looseness(op)
        self.random = traits.RANDOM.get(op.name)
        self.unset = op.name in traits.UNSET

    def judge(self) -> dict[str, Any]:
        """The entry's row of the table."""
        dtypes = [dtype for dtype in self.options.dtypes if dtype in self.op.supported_dtypes("cpu")]
        try:
            self.pair = Pair(unseeded(self.op.op), callable_here(self.op.op, self.op.name))
        except Absent as absent:
            return self.row("absent", str(absent))
        if not dtypes:
            return self.row("absent", "PyTorch has no sample of a real dtype on the CPU")
        forms_in = next((dtype for dtype in (torch.float32, torch.int64) if dtype in dtypes), dtypes[0])
        for dtype in sorted(dtypes, key=lambda dtype: dtype != forms_in):
            self.judge_dtype(dtype, forms=dtype == forms_in)
            if dtype == forms_in and self.is_absent():
                return self.row("absent", self.failures[0].words)
        self.judge_errors()
        return self.row(self.status(), self.failures[0].words if self.failures else "")

    def is_absent(self) -> bool:
        """Whether no sample found a name that the entry needs."""
        right = self.counts.get("forward", [0, 0])[0]
        return right == 0 and bool(self.failures) and self.failures[0].kind == "missing"

    def status(self) -> str:
        if any(failure.kind in WRONG for failure in self.failures):
            return "wrong"
        return "partial" if self.failures else "whole"

    def row(self, status: str, reason: str) -> dict[str, Any]:
        failures = [asdict(failure) for failure in sorted(self.failures, key=lambda failure: failure.kind not in WRONG)]
        name = f"{self.op.name} {self.op.variant_test_name}".strip()
        counts = self.counts if status != "absent" else {}
        return {
            "name": name,
            "status": status,
            "reason": failures[0]["words"] if failures and status != "absent" else reason,
            "checks": counts,
            "missing aliases": [alias.name for alias in self.op.aliases if not exists(alias.name)] if status != "absent" else [],
            "failures": failures[:KEPT_FAILURES] if status != "absent" else [],
        }

    def check(self, check: str, dtype: torch.dtype, number: int, sample: Any, judged: Callable[[], None]) -> None:
        """Runs a check and counts it."""
        counted = self.counts.setdefault(check, [0, 0])
        counted[1] += 1
        try:
            judged()
            counted[0] += 1
            return
        except Difference as difference:
            kind, words = difference.kind, difference.words
        except Unconvertible as error:
            kind, words = "unconvertible", f"the sample cannot be converted: {error}"
        named = [f"{key}={show(value)}" for key, value in sample.kwargs.items()]
        shown = brief(", ".join([show(sample.input), *map(show, sample.args), *named]))
        self.failures.append(Failure(check, kind, str(dtype).removeprefix("torch."), number, shown, words))

    def samples(self, dtype: torch.dtype, requires_grad: bool) -> Iterator[tuple[int, Any]]:
        torch.manual_seed(0)
        for number, sample in enumerate(self.op.sample_inputs("cpu", dtype, requires_grad=requires_grad)):
            if self.options.limit and number >= self.options.limit:
                return
            yield number, sample

    def judge_dtype(self, dtype: torch.dtype, forms: bool) -> None:
        differentiates = dtype == torch.float64 and self.op.supports_autograd and self.op.name not in traits.REFUTED_GRADIENTS
        differentiates = differentiates and dtype in self.op.supported_backward_dtypes("cpu")
        for number, sample in self.samples(dtype, differentiates):
            self.judge_sample(dtype, number, sample, forms, differentiates)
            if number == 2 and self.is_absent():
                return

    def judge_sample(self, dtype: torch.dtype, number: int, sample: Any, forms: bool, differentiates: bool) -> None:
        if self.random is not None and self.random(sample):
            together = self.op.name in traits.DRAWN_TOGETHER
            self.check("forward", dtype, number, sample, lambda: same_distribution(self.pair, sample, differentiates, together))
            return
        self.forward("forward", dtype, number, sample, differentiates)
        apart = attempt(sample.noncontiguous)
        if apart.error is None:
            self.forward("noncontiguous", dtype, number, apart.value, differentiates)
        rules = self.rules(sample)
        if forms and isinstance(sample.input, torch.Tensor):
            for name, pair in self.forms():
                self.check(name, dtype, number, sample, lambda pair=pair: self.run_form(pair, sample, rules))
        if isinstance(sample.input, torch.Tensor):
            for name, pair in self.in_place_forms():
                self.check(name, dtype, number, sample, lambda pair=pair: in_place(pair, sample, rules))
                if differentiates and name == "in place":
                    copied = Pair(on_a_copy(pair.theirs), on_a_copy(pair.ours))
                    self.forward("in place", dtype, number, sample, True, copied)
        if self.op.supports_out:
            for target in targets(number):
                self.check("out", dtype, number, sample, lambda target=target: into_out(self.pair, sample, target, rules))

    def rules(self, sample: Any) -> Rules:
        if self.unset:
            return Rules(values=False, every_stride=True)
        ties = (lambda theirs, ours: name_equals(sample.input, theirs, ours)) if self.op.name in traits.TIES else None
        invariants = traits.INVARIANTS.get(self.op.name)
        truth, moved = partial(self.truth, sample), partial(self.truth, sample)
        return Rules(
            strides=True,
            elementwise=self.elementwise,
            invariants=invariants,
            ties=ties,
            truth=truth,
            moved=moved,
            looser=self.looser,
            left=partial(self.left, sample),
        )

    def truth(self, sample: Any, moved: int | None = None) -> Any:
        wide = in_double(sample, moved)
        return call_with(self.op.op, (wide.input, wide.args, wide.kwargs))

    def left(self, sample: Any) -> list[torch.Tensor]:
        """What PyTorch leaves in the arguments in float64."""
        arguments = Arguments(in_double(sample), requires_grad=False)
        call_with(self.op.op, arguments.theirs)
        return [theirs for theirs, _ in arguments.tensors]

    @staticmethod
    def run_form(pair: Pair, sample: Any, rules: Rules) -> None:
        pair.run(Arguments(sample, requires_grad=False), rules)

    def forward(self, check: str, dtype: torch.dtype, number: int, sample: Any, differentiates: bool, pair: Pair | None = None) -> None:
        """The plain call, and with it the gradients."""
        found: dict[str, Any] = {}

        def run() -> None:
            arguments = Arguments(sample, requires_grad=differentiates)
            found["results"] = (pair or self.pair).run(arguments, self.rules(sample))
            found["leaves"] = Both(arguments.leaves)

        self.check(check, dtype, number, sample, run)
        if not differentiates or found.get("results") is None or not found.get("leaves"):
            return
        process = sample.output_process_fn_grad

        def first() -> None:
            processed = (process, callable_here(process))
            found["first"] = same_gradients(found["results"], processed, found["leaves"], self.op.supports_gradgrad, self.looser)

        self.check("gradient", dtype, number, sample, first)
        if found.get("first") is not None:
            self.check("second gradient", dtype, number, sample, lambda: same_second_gradients(found["first"], self.looser))

    def forms(self) -> Iterator[tuple[str, Pair]]:
        """The method and the operator that do the same."""
        yield from self.pairs([("method", self.op.method_variant), ("operator", self.op.operator_variant)])

    def in_place_forms(self) -> Iterator[tuple[str, Pair]]:
        yield from self.pairs([("in place", self.op.inplace_variant), ("operator in place", self.op.inplace_operator_variant)])

    def pairs(self, named: list[tuple[str, Any]]) -> Iterator[tuple[str, Pair]]:
        for name, theirs in named:
            if theirs is not None:
                yield name, Pair(unseeded(theirs), callable_or_absent(theirs))

    def judge_errors(self) -> None:
        if self.op.error_inputs_func is None:
            return
        torch.manual_seed(0)
        for number, error in enumerate(self.op.error_inputs("cpu")):
            if attempt(lambda error=error: Arguments(error.sample_input, False)).error is not None:
                # What cannot be written here cannot be refused either.
                continue
            self.check("error", torch.float32, number, error.sample_input, lambda error=error: same_error(self.pair, error))


def exists(path: str) -> bool:
    return attempt(lambda: lookup_operation(path.removeprefix("torch."))).error is None


def show(value: Any) -> str:
    """An argument in few words: a tensor by dtype and shape."""
    if isinstance(value, torch.Tensor):
        layout = "" if value.layout != torch.strided or value.is_contiguous() else f" strides {list(value.stride())}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{layout}"
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return f"[{', '.join(map(show, value))}]"
    return str(value).removeprefix("torch.")


def name_equals(elements: torch.Tensor, theirs: torch.Tensor, ours: torch.Tensor) -> bool:
    """Whether indices along some dimension name equal elements, each once."""
    for dim in range(elements.dim()):
        pair = [theirs, ours] if theirs.dim() == elements.dim() else [theirs.unsqueeze(dim), ours.unsqueeze(dim)]
        fits = all(pair[0].shape[at] == size for at, size in enumerate(elements.shape) if at != dim)
        if not fits or any(bool(((index < 0) | (index >= elements.shape[dim])).any()) for index in pair):
            continue
        named = [elements.detach().gather(dim, index).double() for index in pair]
        ordered = pair[1].sort(dim).values
        once = bool((ordered.diff(dim=dim) > 0).all())
        if once and torch.allclose(named[0], named[1], rtol=0.0, atol=0.0, equal_nan=True):
            return True
    return False


def callable_or_absent(theirs: Any) -> Callable[..., Any]:
    try:
        return callable_here(theirs)
    except Absent as absent:
        error = absent

    def call(*_args: Any, **_kwargs: Any) -> Any:
        raise error

    return call


def on_a_copy(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its first argument copied, since a leaf of the graph cannot be written."""

    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        return function(first.clone(), *args, **kwargs)

    return call


def judge_entry(op: Any, options: Options) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Entry(op, options).judge()
