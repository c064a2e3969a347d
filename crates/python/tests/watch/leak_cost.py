"""What `plimsoll.LeakWatch` costs, printed: a step with and without it, in turn, in the processor's time of one thread, for a tiny MLP
and a transformer of 11 million parameters on Plimsoll. A measurement, not a test; a release build is needed:
`PYTHONPATH=crates/python/python python crates/python/tests/watch/leak_cost.py`."""

import statistics

import plimsoll
from cost_programs import mlp, seconds, transformer

# Steps of one turn, and turns: one with and one without the watch.
TURNS = {"mlp": (400, 25), "transformer": (6, 12)}


def measure(make):
    step, *_ = make(plimsoll)
    count, turns = TURNS[make.__name__]
    seconds(step, 5)
    watch = plimsoll.LeakWatch()
    alone, watched = [], []
    with watch:
        seconds(step, 40)  # past the first steps, in which the books are read at each end
        for _ in range(turns):
            watched.append(seconds(step, count))
            watch.pause()
            alone.append(seconds(step, count))
            watch.resume()
    ratios = [one / other for one, other in zip(watched, alone)]
    middle = statistics.median(ratios) - 1
    spread = f"{min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%}"
    least = min(watched) / min(alone) - 1
    print(
        f"{make.__name__:12} alone {min(alone) * 1e3:.3f} ms, watched {min(watched) * 1e3:.3f} ms, {least:+.1%} by the least of each; "
        f"median of {turns} turns {middle:+.1%} ({spread}); findings: {len(watch.findings)}",
        flush=True,
    )


if __name__ == "__main__":
    plimsoll.manual_seed(0)
    plimsoll.set_num_threads(1)
    for make in (mlp, transformer):
        measure(make)
