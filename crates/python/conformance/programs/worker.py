"""Runs one program, once: `python worker.py ORDER`, where the order is JSON (`__main__.py` writes it). Prints what came of it as one
line of JSON at the end of standard output: every value that the program called `backward` on, and how it ended."""

from __future__ import annotations

import json
import os
import random
import runpy
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


def main() -> None:
    order = json.loads(Path(sys.argv[1]).read_text())
    # The program prints; its row goes out by a copy of standard output that it does not know.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(run(order)), file=out, flush=True)
    # Threads and loaders that the program left behind do not keep the process.
    out.close()
    os._exit(0)


if __name__ == "__main__":
    main()
