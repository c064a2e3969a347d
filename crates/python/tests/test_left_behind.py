"""Operations and training leave neither objects nor bytes behind. At length: `PLIMSOLL_OPERATIONS=1000000
PLIMSOLL_TRAINING=200000 python -m pytest -s crates/python/tests/test_left_behind.py`."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("left_behind.py")

#: What the process may hold more at the end, of all memory: the C library's own, and pages that the collector touched.
NOISE_BYTES = 4 << 20


@pytest.mark.parametrize(("what", "count"), [("operations", 20_000), ("training", 2_000)])
def test_nothing_is_left_behind(what, count):
    count = int(os.environ.get(f"PLIMSOLL_{what.upper()}", count))
    program = subprocess.run([sys.executable, PROGRAM, what, str(count)], capture_output=True, text=True)
    assert program.returncode == 0, program.stderr
    print(program.stdout)
    told = json.loads(program.stdout)
    assert told["done"] >= count
    before, after = told["before"], told["after"]
    for figure in ("objects", "allocated_bytes", "reserved_bytes"):
        assert before[figure] == after[figure], (figure, told)
    assert before["objects"] > 1000 and before["allocated_bytes"] > 0
    assert after["resident_bytes"] - before["resident_bytes"] < NOISE_BYTES, told
