"""The search along a direction for a step that satisfies the strong Wolfe conditions: the loss falls enough, and its slope
flattens enough. First steps grow until they enclose such a place, then the interval shrinks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .._plimsoll import Tensor

# How much of the promised fall the loss must have, and how much of the slope may be left.
_FALL, _SLOPE = 1e-4, 0.9


class Point(NamedTuple):
    """A place along the direction: how far, the loss, its gradient, and its slope along the direction."""

    step: float
    loss: float
    grad: Tensor
    slope: float


def _quotient(a: float, b: float) -> float:
    """`a / b`, which is infinite or no number if `b` is 0, as with tensors."""
    return a / b if b != 0 else a * math.copysign(math.inf, b)


def _minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points has its minimum, within the bounds."""
    if a.step > b.step:
        a, b = b, a
    low, high = bounds or (a.step, b.step)
    first = a.slope + b.slope - _quotient(3 * (a.loss - b.loss), a.step - b.step)
    # A power that is too large raises, a product is infinite.
    square = first * first - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = square**0.5
    # Along a straight line this is at infinity, and the bound is taken.
    at = b.step - (b.step - a.step) * _quotient(b.slope + root - first, b.slope - a.slope + 2 * root)
    return min(max(at, low), high)


class LineSearch:
    """One search: `evaluate(step)` gives loss and gradient at a place along `direction`."""

    def __init__(self, evaluate: Callable[[float], tuple[float, Tensor]], direction: Tensor, start: Point) -> None:
        self.evaluate = evaluate
        self.direction = direction
        self.start = start
        self.evaluations = 0

    def at(self, step: float) -> Point:
        """The point after a step."""
        self.evaluations += 1
        loss, grad = self.evaluate(step)
        return Point(step, loss, grad, float(grad.dot(self.direction)))

    def _is_high(self, point: Point) -> bool:
        """Whether the loss did not fall enough."""
        return point.loss > self.start.loss + _FALL * point.step * self.start.slope

    def _is_flat(self, point: Point) -> bool:
        return abs(point.slope) <= -_SLOPE * self.start.slope

    def run(self, step: float, tolerance: float, most: int) -> Point:
        """The best place found with at most so many evaluations after the first."""
        before, point = self.start, self.at(step)
        rounds = 0
        while rounds < most:
            if self._is_high(point) or (rounds > 1 and point.loss >= before.loss):
                return self._shrunk(before, point, rounds, tolerance, most)
            if self._is_flat(point):
                return point
            if point.slope >= 0:
                return self._shrunk(before, point, rounds, tolerance, most)
            bounds = (point.step + 0.01 * (point.step - before.step), point.step * 10)
            before, point = point, self.at(_minimum(before, point, bounds))
            rounds += 1
        return self.start if self.start.loss <= point.loss else point

    def _shrunk(self, a: Point, b: Point, rounds: int, tolerance: float, most: int) -> Point:
        """Shrinks the interval between two points until one of them will do."""
        largest = float(self.direction.abs().max())
        ends = [a, b]
        slow = False
        low = 0 if a.loss <= b.loss else 1
        while rounds < most:
            if abs(ends[1].step - ends[0].step) * largest < tolerance:
                break
            step, slow = self._next(ends, slow)
            point = self.at(step)
            rounds += 1
            high = 1 - low
            if self._is_high(point) or point.loss >= ends[low].loss:
                ends[high] = point
                low = 0 if ends[0].loss <= ends[1].loss else 1
                continue
            done = self._is_flat(point)
            if not done and point.slope * (ends[high].step - ends[low].step) >= 0:
                ends[high] = ends[low]
            ends[low] = point
            if done:
                break
        return ends[low]

    @staticmethod
    def _next(ends: list[Point], slow: bool) -> tuple[float, bool]:
        """The next place to look at, and whether it lies so near an end that the one after must not."""
        step = _minimum(ends[0], ends[1])
        least, most = sorted(end.step for end in ends)
        margin = 0.1 * (most - least)
        if min(most - step, step - least) >= margin:
            return step, False
        if not slow and least < step < most:
            return step, True
        return (most - margin if abs(step - most) < abs(step - least) else least + margin), False
