"""Writes down what PyTorch answers to a part of its databases of modules and optimizers, to schedulers and to mixed precision, so
that CI replays it without PyTorch (`training_replay.py`, `autocast_cases.py`).

Small samples of every module: of float32 in training, of float64 in evaluation. Every input of every optimizer that both have,
in float64. What cannot be written down as JSON, such as modules as arguments of others, is left out; so is a module whose results
are another each time. A case that does not replay is told, and nothing is written then: a file without it would hide it."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import autocast
import further
import numpy
import optimizers
import pairs
import schedules
import torch
import training_replay
from torch.testing._internal.common_modules import module_db
from training_replay import encoded

# The dtype, whether in training, and how many samples of it.
WANTED = [("float32", True, 2), ("float64", False, 2)]
# Elements of everything that is written down of a sample.
MOST_ELEMENTS = 1600
# Whole numbers are the same everywhere; what is drawn is not.
LOOKED_AT = 24


def record(path: Path) -> None:
    """Writes the file, and says how much is in it."""
    warnings.simplefilter("ignore")
    cases: dict[str, Any] = {
        "pytorch": torch.__version__.split("+")[0],
        "modules": [case for info in [*module_db, *further.ENTRIES] for case in modules(info)],
        "optimizers": [case for info in optimizers.entries() for case in steps(info)],
        "schedulers": [
            {"scheduler": name, "kind": kind, "rates": training_replay.rates(torch, name, kind)}
            for name in schedules.ENTRIES
            for kind in ("SGD", "Adam")
        ],
        "autocast": autocast.recorded(),
    }
    wrong = list(problems(cases["modules"]))
    if wrong:
        sys.exit("\n".join(["these do not replay:", *wrong]))
    text = json.dumps(cases, separators=(",", ":")).encode()
    with path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(text)
    counts = ", ".join(f"{len(part)} of {name}" for name, part in cases.items() if name != "pytorch")
    kinds = len({case["module"] for case in cases["modules"]})
    print(f"{path}: {counts}; {kinds} kinds of modules; {path.stat().st_size} bytes")


def modules(info: Any) -> Iterator[dict[str, Any]]:
    """The cases of one entry."""
    for dtype, training, count in WANTED:
        torch.manual_seed(0)
        kind = getattr(torch, dtype)
        try:
            samples = info.module_inputs_func(info, device="cpu", dtype=kind, requires_grad=True, training=training)
        except Exception:  # noqa: BLE001 - PyTorch has no such samples
            continue
        found = (case_of(info, sample, dtype, training) for sample in itertools.islice(samples, LOOKED_AT))
        yield from itertools.islice((case for case in found if case is not None), count)


def problems(cases: list[dict[str, Any]]) -> Iterator[str]:
    """What does not replay."""
    for case in cases:
        try:
            problem = training_replay.module(case)
        except Exception as failure:  # noqa: BLE001
            problem = f"{type(failure).__name__}: {failure}"
        if problem is not None:
            yield f"{case['module']} in {case['dtype']}: {problem}"


def written(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return encoded(value.detach().numpy())
    if isinstance(value, torch.dtype):
        return {"name": str(value).removeprefix("torch.")}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return {"list" if isinstance(value, list) else "tuple": [written(item) for item in value]}
    return encoded(tuple(value) if isinstance(value, torch.Size) else value)


def case_of(info: Any, sample: Any, dtype: str, training: bool) -> dict[str, Any] | None:
    """The sample and PyTorch's answer; nothing if it is too large, random, or cannot be written down."""
    if sample.forward_input is None:
        return None
    built, given = sample.constructor_input, pairs.arguments(sample).theirs
    try:
        theirs = info.module_cls(*built.args, **built.kwargs).to(getattr(torch, dtype)).train(training)
        lazy = pairs.is_lazy(theirs)
        if lazy:
            theirs(*given[1], **given[2])
        case = {
            "module": info.module_cls.__name__, "dtype": dtype, "training": training, "lazy": lazy, "text": repr(theirs),
            "arguments": written(tuple(built.args)), "keywords": {name: written(value) for name, value in built.kwargs.items()},
            "state": {name: written(value) for name, value in theirs.state_dict().items()},
            "call": [written(tuple(given[1])), {name: written(value) for name, value in given[2].items()}],
        }  # fmt: skip
        again = copy.deepcopy(theirs)
        results = flat(theirs(*given[1], **given[2]))
        if any(not torch.equal(one, two) for one, two in zip(results, flat(again(*given[1], **given[2])), strict=True)):
            return None
    except Exception:  # noqa: BLE001 - PyTorch refuses it, or it is no JSON
        return None
    tensors = flat([*given[1], *given[2].values()])
    leaves = [place for place, one in enumerate(tensors) if one.requires_grad and one.is_leaf]
    outputs = [one for one in results if one.is_floating_point() and one.requires_grad]
    weights = [torch.randn_like(one) for one in outputs]
    if outputs:
        torch.autograd.backward(outputs, weights)
    owners = [*theirs.parameters(), *(tensors[place] for place in leaves)]
    gradients = [one.grad for one in owners] if outputs else []
    kept = [*results, *weights, *tensors, *theirs.state_dict().values(), *(one for one in gradients if one is not None)]
    if sum(one.numel() for one in kept) > MOST_ELEMENTS:
        return None
    return {
        **case, "results": [written(one) for one in results], "buffers": [written(one) for one in theirs.buffers()],
        "leaves": leaves, "weights": [written(one) for one in weights],
        "gradients": [None if one is None else written(one) for one in gradients],
    }  # fmt: skip


def flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def steps(info: Any) -> Iterator[dict[str, Any]]:
    """The cases of one optimizer."""
    name = info.optim_cls.__name__
    for sample in info.optim_inputs_func(device="cpu"):
        try:
            options = {key: written(value) for key, value in sample.kwargs.items()}
            made = training_replay.steps(
                torch, lambda values: torch.from_numpy(numpy.asarray(values)).clone(), name, copy.deepcopy(sample.kwargs)
            )
        except (AssertionError, TypeError):  # PyTorch refuses it on a CPU, or it is no JSON
            continue
        parameters = [[written(param) for param in mark] for mark in made]
        yield {"optimizer": name, "about": sample.desc, "options": options, "parameters": parameters}
