"""Compares the names of graph nodes (`y.grad_fn.name()`) with PyTorch's, on all of PyTorch's own operator samples that have a
gradient: `python operations/node_names.py [OPTION...]`, with an interpreter that has PyTorch and finds the package. Says how many
results and entries have PyTorch's names, and each name that differs, with PyTorch's. What PyTorch computes in several steps and
Plimsoll in one, or the other way round, ends in a node of another name. Fails if fewer results agree than `--least` asks for."""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

import torch
from calls import attempt, call_with
from judge import flat
from torch.testing._internal.common_methods_invocations import op_db
from translate import Absent, Arguments, callable_here, unseeded

# PyTorch's name and ours.
Name = tuple[str, str]


def pairs_of_names(op: Any, limit: int) -> list[Name]:
    """For each result of each sample that has a history in both: PyTorch's name and ours."""
    try:
        ours = callable_here(op.op, op.name)
    except Absent:
        return []
    found = []
    torch.manual_seed(0)
    for number, sample in enumerate(op.sample_inputs("cpu", torch.float64, requires_grad=True)):
        if limit and number >= limit:
            break
        made = attempt(lambda sample=sample: Arguments(sample, requires_grad=True))
        if made.error is not None:
            continue
        theirs = attempt(lambda: call_with(unseeded(op.op), made.value.theirs))
        here = attempt(lambda: call_with(ours, made.value.ours))
        if theirs.error is not None or here.error is not None:
            continue
        for left, right in zip(flat(theirs.value), flat(here.value)):
            if isinstance(left, torch.Tensor) and left.grad_fn is not None and getattr(right, "grad_fn", None) is not None:
                found.append((left.grad_fn.name(), right.grad_fn.name()))
    return found


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", type=lambda text: text.split(","), default=[], help="entries of these names")
    arguments.add_argument("--limit", type=int, default=0, help="samples of each entry; all of them if 0")
    arguments.add_argument("--verbose", action="store_true", help="every entry")
    arguments.add_argument("--least", type=float, default=0.0, help="the share of results that must agree, from 0 to 1")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    samples, whole, entries = [0, 0], 0, 0
    differ: dict[Name, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for op in op_db:
        name = f"{op.name} {op.variant_test_name}".strip()
        if options.only and op.name not in options.only:
            continue
        if not op.supports_autograd or torch.float64 not in op.supported_dtypes("cpu"):
            continue
        found = pairs_of_names(op, options.limit)
        if not found:
            continue
        agree = sum(left == right for left, right in found)
        samples[0] += agree
        samples[1] += len(found)
        entries += 1
        whole += agree == len(found)
        for pair in found:
            if pair[0] != pair[1]:
                differ[pair][name] += 1
        if options.verbose:
            print(f"{name:<50} {agree:>5} of {len(found)}", flush=True)
    for (left, right), names in sorted(differ.items(), key=lambda item: -sum(item[1].values())):
        print(f"{sum(names.values()):>5}  {right:<44} PyTorch: {left:<44} {', '.join(list(names)[:3])}")
    print(f"{samples[0]} of {samples[1]} results and {whole} of {entries} entries have PyTorch's names")
    sys.exit(samples[1] == 0 or samples[0] < options.least * samples[1])


if __name__ == "__main__":
    main()
