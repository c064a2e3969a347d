"""Samples of PyTorch's operator database that PyTorch answered, replayed: `cargo xtask conformance operations --record` wrote them
down, of entries that were whole then."""

import gzip
import json
import sys
from pathlib import Path

import numpy
import pytest

FOLDER = Path(__file__).parent.parent / "conformance" / "operations"
sys.path.append(str(FOLDER))

import replay  # noqa: E402


def recorded():
    with gzip.open(FOLDER / "golden.json.gz", "rt") as file:
        cases = json.load(file)
    by_entry = {}
    for case in cases:
        by_entry.setdefault(case["entry"], []).append(case)
    return by_entry


RECORDED = recorded()


@pytest.mark.parametrize("entry", RECORDED)
def test_recorded_samples_give_pytorchs_answers(entry):
    for number, case in enumerate(RECORDED[entry]):
        assert replay.replay(case) is None, f"case {number}: {case['call']}"


def test_a_wrong_answer_is_seen():
    case = next(case for case in RECORDED["sum"] if case["leaves"])
    assert replay.replay({**case, "call": "amax"}) is not None
    (gradient,) = case["gradients"]
    dtype, shape, _ = gradient["tensor"]
    other = replay.encoded(numpy.full(shape, 7.0, dtype))
    assert replay.replay({**case, "gradients": [other]}) is not None
