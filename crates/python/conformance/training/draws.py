"""Modules below float64 over many draws of their parameters and arguments, each beside PyTorch's module in float64.

One draw can be off by chance: two right programs round to different sides of a kink, and one of them is nearer. Over many draws
chance falls on both alike, and what is left is a program that rounds more than PyTorch's, or is wrong. So each result, buffer and
gradient may be off by little more than PyTorch's, in the middle of its draws and in their mean square, in which one draw that is
badly off outweighs all others. One ReLU that a rounding takes across 0 can double that mean, so who fails in 48 draws is drawn four
times as often, and fails by the same bounds if that is more than chance: the two distances of a draw stand the other way round as
often as not, and of a thousand such exchanges fewer than one in a hundred may be as far over as what was seen."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator
from random import Random
from typing import Any

import pairs
import results
import torch
import translate
from nearness import Wrong

# After how many draws it is judged, the second time if it failed the first, and how many are drawn at a time.
DRAWS, STEP = (48, 192), 8
# How much further than PyTorch's: what these quantities of 48 draws of one program differ by.
MIDDLE, MEAN_SQUARE = 1.25, 1.5
# How often distances are exchanged to see what chance does, and how rare is more than chance.
EXCHANGES, CHANCE = 1000, 0.01


class Drawn:
    """All samples of an entry of one dtype and mode, drawn several times."""

    def __init__(self, info: Any, dtype: torch.dtype, training: bool) -> None:
        self.info, self.dtype, self.training = info, dtype, training
        self._known: dict[int, list[Any]] = {}

    def samples(self, seed: int) -> list[Any]:
        """Those of one seed; each is drawn once, for entries have up to hundreds of samples."""
        if seed not in self._known:
            torch.manual_seed(seed)
            inputs = self.info.module_inputs_func(
                self.info, device="cpu", dtype=self.dtype, requires_grad=True, training=self.training
            )
            self._known[seed] = list(inputs)
        return self._known[seed]


class Draw:
    """A sample of an entry: which it is, and how it fares over many draws, which is found out once if at all."""

    def __init__(self, drawn: Drawn, number: int) -> None:
        self.info, self.dtype, self.training, self.number = drawn.info, drawn.dtype, drawn.training, number
        self._drawn = drawn
        dtype, training = drawn.dtype, drawn.training
        mode = "train" if training else "eval"
        self.where = f"{str(dtype).removeprefix('torch.')} {mode} #{number}"
        self._off: dict[str, list[tuple[float, float]]] = {}
        self._count = 0

    def wrong(self, name: str) -> str | None:
        """What is wrong with a result, buffer or gradient over many draws; empty if nothing is, None if there is no such."""
        drawn = 0
        while True:
            drawn += STEP
            while self._count < drawn:
                self._count += 1
                for one, distances in self._one(self._count):
                    self._off.setdefault(one, []).append(distances)
            if name not in self._off:
                return None
            # Enough draws are those in which it is no further off than PyTorch's, or the most.
            if not _told(name, self._off[name], 1.0, 1.0):
                return ""
            if drawn in DRAWS:
                told = _told(name, self._off[name], MIDDLE, MEAN_SQUARE)
                if not told or drawn == DRAWS[-1]:
                    return told if told and _is_more_than_chance(self._off[name]) else ""

    def _one(self, seed: int) -> Iterator[tuple[str, tuple[float, float]]]:
        torch.manual_seed(seed)
        sample = self._drawn.samples(seed)[self.number]
        theirs, here = pairs.built(self.info, sample, self.dtype, self.training)
        if pairs.is_lazy(theirs):
            pairs.give_shapes(sample, theirs, here)
        pairs.copy_state(theirs, here)
        call = results.Call(sample, theirs, here)
        for given in itertools.chain(call.outputs(), call.gradients()):
            distances = _distances(given.name, given.truth(), given.theirs, translate.to_torch(given.here))
            if distances is not None:
                yield given.name, distances


def _distances(name: str, truth: torch.Tensor, theirs: torch.Tensor, here: torch.Tensor) -> tuple[float, float] | None:
    """How far PyTorch's tensor and ours are off, as parts of its largest element."""
    if not truth.is_floating_point():
        return None
    finite = truth.isfinite() & theirs.isfinite()
    if not torch.equal(finite, truth.isfinite() & here.isfinite()):
        raise Wrong(f"{name} is finite elsewhere than PyTorch's")
    if not finite.any():
        return None
    largest = float(truth[finite].abs().max()) or 1.0
    return tuple(float((one.double() - truth)[finite].abs().max()) / largest for one in (theirs, here))  # type: ignore[return-value]


def _told(name: str, distances: list[tuple[float, float]], middle: float, mean_square: float) -> str:
    """How a tensor is off by more than so many times PyTorch's; empty if it is not."""
    columns = list(zip(*distances, strict=True))
    for what, bound, of in (("in the middle", middle, statistics.median), ("in the mean square", mean_square, _mean_square)):
        theirs, here = (of(column) for column in columns)
        if here > bound * theirs:
            return f"{name} is off by {here:.3g} of its largest {what} of {len(distances)} draws, PyTorch's by {theirs:.3g}"
    return ""


def _is_more_than_chance(distances: list[tuple[float, float]]) -> bool:
    """Whether the median or the mean square of ours over PyTorch's would hardly be so large if each draw's two distances were exchanged
    at random."""
    random = Random(0)
    for of in (statistics.median, _mean_square):
        seen = _ratio(of, distances)
        exchanged = ([pair if random.random() < 0.5 else pair[::-1] for pair in distances] for _ in range(EXCHANGES))
        if sum(_ratio(of, pairs_of) >= seen for pairs_of in exchanged) < CHANCE * EXCHANGES:
            return True
    return False


def _ratio(of: Any, distances: list[tuple[float, float]]) -> float:
    theirs, here = (of(column) for column in zip(*distances, strict=True))
    return here / theirs if theirs else math.inf


def _mean_square(values: Any) -> float:
    return math.sqrt(statistics.fmean(value * value for value in values))
