"""What the watch costs, printed: a step alone, a step in a window, a census, and a step over whole cycles of the
steady state, in the processor's time of one thread, for a tiny MLP and a transformer of 10 million parameters. A
measurement, not a test: `python cost.py [mlp] [transformer]`."""

import statistics
import sys
import time

import torch

import runner
from cost_programs import mlp, seconds, transformer

watch = runner.load()
from plimsoll_watch._census import Census  # noqa: E402
from plimsoll_watch._making import LONGEST_PAUSE, SAMPLE_STEPS  # noqa: E402
from plimsoll_watch._session import Session  # noqa: E402


def paused(session, step, count):
    """The step alone, while the watch is off."""
    session.steps.stop()
    session.making.close()
    took = seconds(step, count)
    session.steps.start()
    return took


def measure(make):
    step, count, rounds = make(torch)
    seconds(step, 5)
    session = Session().start()
    # Past the windows of a young run.
    while session.windows.switch_at - session.steps.count <= LONGEST_PAUSE // 2:
        step()
    cycle = LONGEST_PAUSE + SAMPLE_STEPS
    alone, steady = [], []
    for at in range(rounds):
        # In turn, and each first as often as the other: what else the machine does changes slowly.
        for is_watched in (at % 2 == 0, at % 2 == 1):
            (steady if is_watched else alone).append(seconds(step, cycle) if is_watched else paused(session, step, cycle))
    more = sorted(watched / plain - 1 for watched, plain in zip(steady, alone))
    noted, quick = [], []
    for _ in range(5):
        session.windows.switch_at = 10**9
        session.making.open()
        noted.append(seconds(step, count))
        session.making.close()
        quick.append(paused(session, step, count))
    session.stop()
    began = time.thread_time()
    Census(set())
    census = time.thread_time() - began
    # Of the steady state the median of the pairs is told, of a window the least.
    alone, steady, noted, quick = statistics.median(alone), statistics.median(steady), min(noted), min(quick)
    print(
        f"{make.__name__:12} alone {quick * 1e3:.2f} ms, in a window {noted * 1e3:.2f} ms, a census {census * 1e3:.1f} ms; "
        f"in the steady state {steady * 1e3:.2f} ms against {alone * 1e3:.2f}, of {rounds} pairs in turn {more[0]:+.1%} to {more[-1]:+.1%}, "
        f"median {statistics.median(more):+.1%}; {session.cost_seconds:.2f} s of "
        f"{session.watched_seconds:.2f} s by its own count",
        flush=True,
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for make in (mlp, transformer):
        if make.__name__ in (sys.argv[1:] or ("mlp", "transformer")):
            measure(make)
