"""Judges entries of the operator database in a process of its own: `python worker.py OPTIONS` (JSON) reads an entry's number from
each line of its input and answers with a line of JSON. The first line that it writes names all entries."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

from entry import Options, judge_entry
from golden import cases


def main() -> None:
    given: dict[str, Any] = json.loads(sys.argv[1])
    options = Options(limit=given["limit"])
    if given["dtype"]:
        options.dtypes = [getattr(torch, name) for name in given["dtype"]]
    # Answers go where the output went; what operations print goes to the errors.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    torch.set_num_threads(1)
    print(json.dumps([f"{op.name} {op.variant_test_name}".strip() for op in op_db]), file=answers, flush=True)
    for line in sys.stdin:
        began = time.monotonic()
        row = judge_entry(op_db[int(line)], options)
        if given["record"] and row["status"] == "whole":
            row["golden"] = list(cases(op_db[int(line)]))
        row["seconds"] = round(time.monotonic() - began, 2)
        print(json.dumps(row), file=answers, flush=True)


if __name__ == "__main__":
    main()
