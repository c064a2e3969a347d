"""`plimsoll doctor --measure`: what advice about memory costs on this machine: giving cached memory back, collecting garbage, copies,
reading one number, and many small operations in place of one. Times are medians of rounds with the least and the largest."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import _plimsoll

ROUNDS = 9
MEGABYTE = 1_000_000
# Copies, and what is cached before it is given back.
LARGE_BYTES = 64 * MEGABYTE
# Python objects beside those that there are.
MORE_OBJECTS = 1_000_000


class Cost(NamedTuple):
    """How long something took in microseconds: the middle of all rounds, the least and the most."""

    what: str
    median_us: float
    least_us: float
    most_us: float


def _cost(what: str, work: Callable[[], Any], before: Callable[[], Any] = lambda: None, repeats: int = 1) -> Cost:
    rounds = []
    for _ in range(ROUNDS + 1):
        before()
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        rounds.append((time.perf_counter() - start) * 1e6 / repeats)
    rounds = sorted(rounds[1:])  # the first warms caches
    return Cost(what, statistics.median(rounds), rounds[0], rounds[-1])


def _waited(device: Any, work: Callable[[], Any]) -> Callable[[], None]:
    """The work, and the wait until the device has done it."""
    if device.type == "cpu":
        return lambda: (work(), None)[1]
    stream = _plimsoll._current_stream(device)

    def wait() -> None:
        work()
        stream.synchronize()

    return wait


def cache(device: Any) -> Iterator[Cost]:
    """`empty_cache`, and what the next allocation pays for it."""
    elements = LARGE_BYTES // 4
    large = f"{LARGE_BYTES // MEGABYTE} MB"

    def fill() -> None:
        _plimsoll.empty(elements, device=device)

    def fill_and_empty() -> None:
        fill()
        _plimsoll.empty_cache(device)

    write = _waited(device, lambda: _plimsoll.zeros(elements, device=device))
    _plimsoll.empty_cache(device)
    yield _cost("empty_cache with nothing cached", lambda: _plimsoll.empty_cache(device), repeats=100)
    yield _cost(f"empty_cache with {large} cached", lambda: _plimsoll.empty_cache(device), fill)
    yield _cost(f"zeros of {large} from the cache", write, fill)
    yield _cost(f"zeros of {large} after empty_cache", write, fill_and_empty)


def garbage() -> Iterator[Cost]:
    """`gc.collect`, which looks at every object that there is."""
    yield _cost(f"gc.collect among {len(gc.get_objects()):,} objects", gc.collect)
    more: list[list[Any]] = [[] for _ in range(MORE_OBJECTS)]
    yield _cost(f"gc.collect among {len(gc.get_objects()):,} objects", gc.collect)
    del more


def copies(device: Any) -> Iterator[Cost]:
    """Copies from the host, and between tensors."""
    elements, large = LARGE_BYTES // 4, f"{LARGE_BYTES // MEGABYTE} MB"
    source, target = _plimsoll.ones(elements), _plimsoll.empty(elements, device=device)
    if device.type == "cpu":
        yield _cost(f"copy of {large} within the host", lambda: target.copy_(source))
        return
    pinned = source.pin_memory()
    yield _cost(f"copy of {large} to the device, pageable", _waited(device, lambda: target.copy_(source)))
    yield _cost(f"copy of {large} to the device, pinned", _waited(device, lambda: target.copy_(pinned)))
    started = lambda: target.copy_(pinned, non_blocking=True)  # noqa: E731
    yield _cost("the same, non_blocking: until the call returns", started, _waited(device, lambda: None))
    yield _cost(f"copy of {large} back to the host", _waited(device, lambda: source.copy_(target)))
    yield _cost(f"copy of {large} within the device", _waited(device, lambda: target.clone()))


def reading(device: Any) -> Iterator[Cost]:
    """`.item()`, which waits for everything that its number depends on."""
    x = _plimsoll.ones(1000, device=device)
    ready = x.sum()
    yield _cost("sum of 1,000 elements, started", lambda: x.sum(), _waited(device, lambda: None), repeats=100)
    yield _cost("item of a number that is ready", lambda: ready.item(), _waited(device, lambda: None), repeats=100)
    yield _cost("sum of 1,000 elements and its item", lambda: x.sum().item(), repeats=100)


def batching(device: Any) -> Iterator[Cost]:
    """The same numbers in many small operations and in one."""
    rows, whole = _plimsoll.ones(1000, 1000, device=device), _plimsoll.ones(1000, 1000, device=device)
    parts = list(rows)
    weight, samples = _plimsoll.ones(256, 256, device=device), _plimsoll.ones(100, 256, device=device)
    singles = [samples[at : at + 1] for at in range(100)]
    yield _cost("1,000 additions to 1,000 elements each", _waited(device, lambda: [part + 1 for part in parts]))
    yield _cost("one addition to 1,000,000 elements", _waited(device, lambda: whole + 1))
    yield _cost("100 products of 1 x 256 by 256 x 256", _waited(device, lambda: [single @ weight for single in singles]))
    yield _cost("one product of 100 x 256 by 256 x 256", _waited(device, lambda: samples @ weight))


def measure() -> Iterator[tuple[str, Cost]]:
    """All costs with the device's name, on the host and on the first GPU."""
    yield from (("host", cost) for cost in garbage())
    devices = [_plimsoll.device("cpu")]
    if _plimsoll._cuda_count() > 0:
        devices.append(_plimsoll.device("cuda", 0))
    for device in devices:
        for part in (cache, copies, reading, batching):
            yield from ((str(device), cost) for cost in part(device))


def text(us: float) -> str:
    """Microseconds for people."""
    return f"{us:,.2f} us" if us < 1000 else f"{us / 1000:,.2f} ms"


def main() -> int:
    """Prints the table as it is measured."""
    print("\nmeasured costs (median of 9 rounds, least to largest)")
    if why := _plimsoll._cuda_unavailable():
        print(f"  no GPU, so copies to one are not measured: {why}")
    for device, cost in measure():
        spread = f"{text(cost.least_us)} to {text(cost.most_us)}"
        print(f"  {device:8} {cost.what:50} {text(cost.median_us):>14}  ({spread})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
