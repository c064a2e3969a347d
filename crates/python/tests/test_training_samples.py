"""Samples of PyTorch's databases of modules and optimizers, its schedulers and its mixed precision, replayed without PyTorch:
`cargo xtask conformance training --record` wrote down what it answered."""

import gzip
import json
import sys
from pathlib import Path

import pytest

import plimsoll

FOLDER = Path(__file__).parent.parent / "conformance" / "training"
sys.path.append(str(FOLDER))

import autocast_cases  # noqa: E402
import training_replay  # noqa: E402

with gzip.open(FOLDER / "golden.json.gz", "rt") as file:
    RECORDED = json.load(file)


def by_name(part, key):
    grouped = {}
    for case in RECORDED[part]:
        grouped.setdefault(case[key], []).append(case)
    return grouped


MODULES, OPTIMIZERS, SCHEDULERS = (
    by_name("modules", "module"), by_name("optimizers", "optimizer"), by_name("schedulers", "scheduler")
)


@pytest.mark.parametrize("name", MODULES)
def test_modules_give_pytorchs_results_and_gradients(name):
    for number, case in enumerate(MODULES[name]):
        assert training_replay.module(case) is None, f"case {number}: {case['text']}"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_where_pytorchs_are_after_100_steps(name):
    for case in OPTIMIZERS[name]:
        assert training_replay.optimizer(case) is None, case["about"]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_give_pytorchs_rates(name):
    for case in SCHEDULERS[name]:
        assert training_replay.scheduler(case) is None, case["kind"]


@pytest.mark.parametrize("region", autocast_cases.REGIONS, ids=" ".join)
def test_mixed_precision_gives_pytorchs_dtypes(region):
    cases = [case for case in RECORDED["autocast"] if (case["kind"], case["lower"]) == region]
    assert [case["call"] for case in cases] == autocast_cases.calls(region[0]), "record again"
    found = [autocast_cases.difference(case["call"], *region, case["answers"], plimsoll) for case in cases]
    assert [words for words in found if words] == []


def test_nothing_is_left_out():
    assert len(MODULES) >= 130 and len(OPTIMIZERS) >= 11 and len(SCHEDULERS) >= 15


def test_a_wrong_answer_is_seen():
    case = next(case for case in MODULES["Linear"] if case["weights"])
    assert training_replay.module({**case, "results": case["results"][:0]}) is not None
    assert training_replay.module({**case, "gradients": [case["weights"][0], *case["gradients"][1:]]}) is not None
    case = OPTIMIZERS["Adam"][0]
    assert training_replay.optimizer({**case, "options": {**case["options"], "lr": 0.5}}) is not None
    case = SCHEDULERS["StepLR"][0]
    assert training_replay.scheduler({**case, "rates": SCHEDULERS["ConstantLR"][0]["rates"]}) is not None
    case = next(case for case in RECORDED["autocast"] if case["kind"] == "cpu" and "matmul" in case["call"])
    wrong = [["float64"] for _ in case["answers"]]
    assert autocast_cases.difference(case["call"], "cpu", case["lower"], wrong, plimsoll) is not None
