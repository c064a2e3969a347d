"""Two environments of Gym's, written from their equations of motion: a pole on a cart, and a pendulum. Each begins with its own seed,
so that runs see the same world."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy

__all__ = ["make"]


class _Space:
    def __init__(self, shape: tuple[int, ...], n: int = 0, low: float = 0.0, high: float = 0.0) -> None:
        self.shape, self.n = shape, n
        self.low, self.high = numpy.full(shape, low, numpy.float32), numpy.full(shape, high, numpy.float32)
        self._random = numpy.random.RandomState(1)

    def sample(self) -> Any:
        if self.n:
            return int(self._random.randint(self.n))
        return self._random.uniform(self.low, self.high).astype(numpy.float32)


class _Environment:
    """What both have: an episode of so many steps, and the five results of a step."""

    def __init__(self, most: int, threshold: float | None) -> None:
        self._most, self._random, self._steps = most, numpy.random.RandomState(0), 0
        self.spec = types.SimpleNamespace(reward_threshold=threshold, max_episode_steps=most)
        self.unwrapped = self

    def reset(self, seed: int | None = None, **named: Any) -> tuple[numpy.ndarray, dict]:
        if seed is not None:
            self._random = numpy.random.RandomState(seed)
        self._steps = 0
        self._begin()
        return self._seen(), {}

    def step(self, action: Any) -> tuple[numpy.ndarray, float, bool, bool, dict]:
        self._steps += 1
        reward, terminated = self._move(action)
        return self._seen(), reward, terminated, self._steps >= self._most, {}

    def _nothing(self, *args: Any, **named: Any) -> None:
        pass

    render = close = seed = _nothing

    def _begin(self) -> None:
        raise NotImplementedError

    def _move(self, action: Any) -> tuple[float, bool]:
        raise NotImplementedError

    def _seen(self) -> numpy.ndarray:
        raise NotImplementedError


class CartPole(_Environment):
    """Balance a pole by pushing its cart left (0) or right (1)."""

    GRAVITY, CART, POLE, HALF, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self) -> None:
        super().__init__(500, 475.0)
        self.observation_space, self.action_space = _Space((4,), low=-5.0, high=5.0), _Space((), n=2)

    def _begin(self) -> None:
        self.state = self._random.uniform(-0.05, 0.05, 4)

    def _move(self, action: Any) -> tuple[float, bool]:
        place, speed, angle, turning = self.state
        force = self.FORCE if int(action) == 1 else -self.FORCE
        whole = self.CART + self.POLE
        sine, cosine = math.sin(angle), math.cos(angle)
        push = (force + self.POLE * self.HALF * turning * turning * sine) / whole
        bend = (self.GRAVITY * sine - cosine * push) / (self.HALF * (4 / 3 - self.POLE * cosine * cosine / whole))
        gain = push - self.POLE * self.HALF * bend * cosine / whole
        step = self.SECONDS
        self.state = numpy.array([place + step * speed, speed + step * gain, angle + step * turning, turning + step * bend])
        return 1.0, bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12))

    def _seen(self) -> numpy.ndarray:
        return self.state.astype(numpy.float32)


class Pendulum(_Environment):
    """Swing a rod up by a torque between -2 and 2."""

    def __init__(self) -> None:
        super().__init__(200, None)
        self.observation_space, self.action_space = _Space((3,), low=-8.0, high=8.0), _Space((1,), low=-2.0, high=2.0)

    def _begin(self) -> None:
        self.angle, self.turning = self._random.uniform(-1, 1, 2) * (math.pi, 1.0)

    def _move(self, action: Any) -> tuple[float, bool]:
        torque = float(numpy.clip(numpy.asarray(action, dtype=numpy.float64).reshape(-1)[0], -2.0, 2.0))
        off = (self.angle + math.pi) % (2 * math.pi) - math.pi
        cost = off * off + 0.1 * self.turning * self.turning + 0.001 * torque * torque
        self.turning = float(numpy.clip(self.turning + (15.0 * math.sin(self.angle) + 3.0 * torque) * 0.05, -8.0, 8.0))
        self.angle += self.turning * 0.05
        return -cost, False

    def _seen(self) -> numpy.ndarray:
        return numpy.array([math.cos(self.angle), math.sin(self.angle), self.turning], numpy.float32)


def make(name: str, **named: Any) -> _Environment:
    known = {"CartPole-v0": CartPole, "CartPole-v1": CartPole, "Pendulum-v1": Pendulum}
    if name not in known:
        raise ValueError(f"the stand-in for gym has {', '.join(known)}, and not {name}")
    return known[name]()
