"""Random numbers as PyTorch draws them on the CPU, for orders of samples.

Plimsoll's generators are Philox on every device, PyTorch's on the CPU is the Mersenne twister, so that operations draw other numbers
there. Orders must be PyTorch's own, because programs compare runs by them. Here a generator's seed starts a twister, and the offset of
its state counts the twister's words: a state that is saved and set again goes on with the same order. A generator that operations have
drawn from as well stands at another place than PyTorch's would.
"""

from __future__ import annotations

import array
import itertools
import random
import struct
import sys
import weakref
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from ... import _plimsoll

_WORDS = 624
_SKIPPED_AT_ONCE = 1 << 16

#: The twister of a generator, and the seed and offset that it stands at.
_standing: weakref.WeakKeyDictionary[Any, tuple[int, int, random.Random]] = weakref.WeakKeyDictionary()


def _twister(seed: int) -> random.Random:
    """The Mersenne twister as the C++ library starts it from 32 bits; Python's own seeding is another."""
    words = [seed & 0xFFFFFFFF]
    for place in range(1, _WORDS):
        last = words[-1]
        words.append((1812433253 * (last ^ (last >> 30)) + place) & 0xFFFFFFFF)
    twister = random.Random()
    twister.setstate((3, (*words, _WORDS), None))
    return twister


class Draws:
    """The numbers that a generator (None is the CPU's own) has next. `done` puts its state behind those that were drawn."""

    def __init__(self, generator: Any = None) -> None:
        self._generator = _plimsoll.default_generator if generator is None else generator
        state_tensor = self._generator.get_state()
        # States are the host's, whatever device tensors are made on by default.
        self._host = state_tensor.device
        state = bytes(state_tensor.tolist())
        self._seed, self._offset = struct.unpack("<QQ", state)
        seed, offset, twister = _standing.get(self._generator, (None, None, None))
        if twister is None or (seed, offset) != (self._seed, self._offset):
            twister = _twister(self._seed)
            for begin in range(0, self._offset, _SKIPPED_AT_ONCE):
                twister.getrandbits(32 * min(_SKIPPED_AT_ONCE, self._offset - begin))
        self._twister = twister

    def done(self) -> None:
        state = struct.pack("<QQ", self._seed, self._offset)
        self._generator.set_state(_plimsoll.tensor(list(state), dtype=_plimsoll.uint8, device=self._host))
        _standing[self._generator] = (self._seed, self._offset, self._twister)

    def words(self, count: int) -> Sequence[int]:
        """`count` numbers of 32 bits."""
        self._offset += count
        if count == 0:
            return ()
        # The first word that is made is the lowest.
        words = array.array("I", self._twister.getrandbits(32 * count).to_bytes(4 * count, "little"))
        if sys.byteorder == "big":
            words.byteswap()
        return words

    def longs(self, count: int) -> list[int]:
        """`count` numbers of 64 bits, each of two words, the upper one first."""
        words = self.words(2 * count)
        return [upper << 32 | lower for upper, lower in zip(words[::2], words[1::2])]


def seed(generator: Any = None) -> int:
    """`empty((), dtype=int64).random_(generator=generator).item()`"""
    draws = Draws(generator)
    drawn = draws.longs(1)[0]
    draws.done()
    return drawn & (2**63 - 1)


def randperm(n: int, generator: Any = None) -> list[int]:
    """`randperm(n, generator=generator).tolist()`"""
    draws = Draws(generator)
    order = list(range(n))
    for place, word in enumerate(draws.words(max(n - 1, 0))):
        other = place + word % (n - place)
        order[place], order[other] = order[other], order[place]
    draws.done()
    return order


def randint(high: int, count: int, generator: Any = None) -> list[int]:
    """`randint(high, (count,), dtype=int64, generator=generator).tolist()`"""
    draws = Draws(generator)
    # From 2**28 on one word would favour the lower numbers too much.
    drawn = draws.words(count) if high < 2**28 else draws.longs(count)
    draws.done()
    return [number % high for number in drawn]


def multinomial(weights: Sequence[float], count: int, generator: Any = None) -> list[int]:
    """`multinomial(tensor(weights, dtype=float64), count, True, generator=generator).tolist()`"""
    sums = list(itertools.accumulate(weights))
    if sums[-1] != 1:
        sums = [below / sums[-1] for below in sums]
    draws = Draws(generator)
    drawn = [bisect_left(sums, (number & (2**53 - 1)) * 2.0**-53) for number in draws.longs(count)]
    draws.done()
    return drawn
