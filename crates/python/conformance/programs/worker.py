"""Runs one program, once: `python worker.py ORDER`, where the order is a file of JSON (`runs.py` writes it). Writes what came of it to
`row.json` beside it: every value that the program called `backward` on, and how it ended.

`python worker.py --serve` imports PyTorch, which takes longer than most programs, and then runs each order that it reads from a line of
standard input in a process that it forks; it answers with a line when that has ended. Nothing is computed before the fork."""

from __future__ import annotations

import json
import os
import random
import runpy
import signal
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any

import draws
import generated

HERE = Path(__file__).resolve().parent


class Enough(BaseException):
    """Ends a program that has made as many backward passes as are compared."""


class Unused(types.ModuleType):
    """A module that a program imports and does not use in the run that is compared."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*args: Any, **named: Any) -> Any:
            raise NotImplementedError(f"{self.__name__}.{name}: the harness only lets programs import {self.__name__}")

        return refuse


class Losses:
    """Notes every value that `backward` is called on, and ends the program after so many."""

    def __init__(self, torch: Any, most: int, look: Any) -> None:
        self.values: list[float] = []
        original = torch.Tensor.backward

        def backward(tensor: Any, *args: Any, **named: Any) -> Any:
            look("backward")
            # Of a tensor of several elements, their sum: what its gradients are of, if none are given.
            self.values.append(float(tensor.detach().double().sum()))
            result = original(tensor, *args, **named)
            if len(self.values) >= most:
                raise Enough
            return result

        torch.Tensor.backward = backward


def prepared(order: dict[str, Any]) -> Any:
    """`torch`, PyTorch's or Plimsoll's, with as many threads as the run has."""
    if order["side"] == "plimsoll":
        from plimsoll.run import resolve_torch

        torch = resolve_torch()
        import torch.nn
        import torch.nn.functional
        import torch.utils.data
    else:
        import torch
    torch.set_num_threads(order["threads"])
    torch.manual_seed(0)
    random.seed(0)
    import numpy

    numpy.random.seed(0)
    for name in order["unused"]:
        sys.modules[name] = Unused(name)
    sys.path.insert(0, str(HERE / "stand_in"))
    from tensorboard_stand_in import module

    sys.modules["torch.utils.tensorboard"] = module
    return torch


def run(order: dict[str, Any]) -> dict[str, Any]:
    torch = prepared(order)
    program = Path(order["program"])
    os.chdir(program.parent)
    generated.write(order["data"])
    stream = draws.Draws(torch, Path(order["draws"]), order["replay"])
    losses = Losses(torch, order["passes"], stream.look)
    sys.argv = [program.name, *order["arguments"]]
    # The harness's own modules are loaded by now: the program finds its own of the same names.
    sys.path[:] = [str(program.parent), *order["paths"], *(path for path in sys.path if path != str(HERE))]
    status, words, trace, begun = "ended", "", "", time.perf_counter()
    try:
        runpy.run_path(str(program), run_name="__main__")
    except Enough:
        pass
    except SystemExit as end:
        if end.code not in (None, 0):
            status, words = "failed", f"the program ended with {end.code}"
    except BaseException as error:
        text = next((line for line in str(error).splitlines() if line.strip()), "")
        status, words = "failed", f"{type(error).__name__}: {text}" if text else type(error).__name__
        trace = "".join(traceback.format_exception(error))[-8000:]
    stream.close()
    if stream.unseen and status == "ended":
        status, words = "failed", stream.unseen
    seconds = time.perf_counter() - begun
    return {"status": status, "words": words, "trace": trace, "losses": losses.values, "draws": stream.count, "seconds": seconds}


def carry_out(path: Path) -> None:
    row = run(json.loads(path.read_text()))
    path.with_name("row.json").write_text(json.dumps(row))
    # Threads and loaders that the program left behind do not keep the process.
    os._exit(0)


def serve() -> None:
    import torch._dynamo  # and what optimizers import when they first step

    for line in sys.stdin:
        order = Path(json.loads(line)["order"])
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            log = os.open(order.with_name("log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            carry_out(order)
        ends = time.monotonic() + json.loads(line)["seconds"]
        done, status = os.waitpid(child, os.WNOHANG)
        while not done and time.monotonic() < ends:
            time.sleep(0.02)
            done, status = os.waitpid(child, os.WNOHANG)
        if not done:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status) if done else None), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve()
    else:
        carry_out(Path(sys.argv[1]))
