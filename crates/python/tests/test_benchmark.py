"""Timers: PyTorch's texts over times that a test gives, and real ones within reason."""

import pytest

import plimsoll as pm
from plimsoll.utils import benchmark
from plimsoll.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def measured(times, number=1, **task):
    return Measurement(number, list(times), TaskSpec(**{"stmt": "f(x)", "setup": "pass", **task}))


def test_units_and_figures():
    assert benchmark.select_unit(5e-6) == ("us", 1e-6)
    assert benchmark.select_unit(3.0) == ("s", 1)
    assert benchmark.unit_to_english("ms") == "millisecond"
    assert benchmark.trim_sigfig(3.14159, 2) == pytest.approx(3.1)
    assert benchmark.trim_sigfig(1234.0, 2) == 1200.0


def test_the_middle_and_the_spread():
    found = measured([4e-3, 1e-3, 2e-3, 3e-3], number=10)
    assert (found.median, found.mean) == (pytest.approx(2.5e-4), pytest.approx(2.5e-4))
    assert found.iqr == pytest.approx(1.5e-4)
    assert found.has_warnings and not found.meets_confidence()
    assert not measured([1e-3] * 5).has_warnings


# What PyTorch prints for the same times, without the object's address.
SEVERAL = """add: small
setup: x = 1
  Median: 2.50 ms
  IQR:    1.50 ms (1.75 to 3.25)
  4 measurements, 10 runs per measurement, 1 thread
  WARNING: Interquartile range is 60.0% of the median measurement.
           This suggests significant environmental influence."""
ONE = """f(x)
  1.00 ms
  1 measurement, 100 runs , 2 threads"""


def test_texts_are_pytorchs():
    several = measured([4e-2, 1e-2, 2e-2, 3e-2], 10, label="add", sub_label="small", setup="x = 1")
    assert repr(several).split("\n", 1)[1] == SEVERAL
    assert repr(measured([0.1], 100, num_threads=2)).split("\n", 1)[1] == ONE


# What PyTorch prints, with dots for spaces.
TABLE = """[-----------.add.------------]
................|...a...|...b.
1.threads:.-------------------
......x.+.1.....|..1.0..|..2.0
......x.add(1)..|..3.0..|.....
2.threads:.-------------------
......x.+.1.....|..4.0..|.....

Times.are.in.milliseconds.(ms).
"""


def test_comparisons_are_pytorchs():
    def one(ms, stmt, description, threads=1):
        return measured([ms * 1e-3] * 4, label="add", stmt=stmt, description=description, num_threads=threads)

    results = [one(1, "x + 1", "a"), one(2, "x + 1", "b"), one(3, "x.add(1)", "a"), one(4, "x + 1", "a", 2)]
    compared = Compare(results)
    assert str(compared).replace(" ", ".") == TABLE
    compared.trim_significant_figures()
    compared.colorize()
    assert "\033[92m" in str(compared)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        compared.extend_results([1])


def test_a_timer_runs_its_statement():
    calls = []
    threads = pm.get_num_threads()
    timer = Timer("f()", globals={"f": lambda: calls.append(pm.get_num_threads())}, num_threads=2)
    found = timer.timeit(200)
    assert (found.number_per_run, len(found.raw_times), len(calls)) == (200, 1, 202)
    assert set(calls) == {2} and pm.get_num_threads() == threads
    assert found.median > 0


def test_ranges_of_runs():
    timer = Timer("x.exp()", "x = torch.ones(16)", label="exp")
    blocked = timer.blocked_autorange(min_run_time=0.01)
    assert sum(blocked.raw_times) >= 0.01 and blocked.label == "exp"
    seen = []
    adaptive = timer.adaptive_autorange(threshold=10.0, callback=lambda number, time: seen.append((number, time)))
    assert len(adaptive.raw_times) == len(seen) >= 4
    capped = timer.adaptive_autorange(threshold=0.0, max_run_time=0.02)
    assert sum(capped.raw_times[:-1]) <= 0.02


def test_bad_input():
    with pytest.raises(ValueError, match="only a `str` stmt"):
        Timer(lambda: None)
    with pytest.raises(ValueError, match="Invalid language"):
        Timer("1", language="c++")
    with pytest.raises(ValueError, match="global_setup is C"):
        Timer("1", global_setup="x")
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        Timer("1").repeat()
    with pytest.raises(RuntimeError, match="positive"):
        pm.set_num_threads(0)
