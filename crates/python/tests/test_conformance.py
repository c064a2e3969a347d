"""Programs that PyTorch answered, replayed: `cargo xtask conformance autograd --record` wrote them
down."""

import gzip
import json
import sys
from pathlib import Path

import plimsoll

FOLDER = Path(__file__).parent.parent / "conformance" / "autograd"
sys.path.insert(0, str(FOLDER))

import compare  # noqa: E402
import worker  # noqa: E402


def test_recorded_programs_give_pytorchs_answers():
    with gzip.open(FOLDER / "golden.json.gz", "rt") as file:
        recorded = json.load(file)
    assert len(recorded) == 200
    refused = 0
    for case in recorded:
        ours = worker.run(plimsoll, plimsoll.grad, case["program"])
        theirs = {"why": "see the program", **case["answer"]}
        refused += theirs["refused"] is not None
        assert compare.difference(theirs, ours) is None, "\n".join(case["program"])
    # Both kinds are there: programs that run to their end, and such that must be refused.
    assert 20 < refused < 180
