"""Runs PyTorch's own test files on Plimsoll: `python suites FOLDER --json FILE [OPTION...]`; `--help` lists the options. The folder
is PyTorch's `test`, fetched by the caller: nothing of it is kept here.

Tests run in worker processes, so that one that ends its process or never ends costs only itself. Fails if a test ends its process
or takes too long."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import page  # noqa: E402
from processes import Ended, Worker, ask_all  # noqa: E402

FILES = ["test_autograd", "test_indexing", "test_view_ops"]
# Of these the page has the figures alone: most of what fails there are messages in other words.
FURTHER = [
    *["test_nn", "test_torch", "test_tensor_creation_ops", "test_shape_ops", "test_reductions", "test_sort_and_select"],
    *["test_scatter_gather_ops", "test_binary_ufuncs", "test_unary_ufuncs", "test_type_promotion", "test_optim", "test_dataloader"],
    *["test_dlpack", "test_numpy_interop", "test_utils", "nn.test_convolution", "nn.test_dropout", "nn.test_embedding", "nn.test_init"],
    *["nn.test_lazy_modules", "nn.test_load_state_dict", "nn.test_module_hooks", "nn.test_multihead_attention"],
    *["nn.test_packed_sequence", "nn.test_parametrization", "nn.test_pooling", "nn.test_pruning", "optim.test_lrscheduler"],
    *["optim.test_swa_utils", "distributions.test_distributions"],
]


def started(name: str, options: argparse.Namespace) -> Worker:
    """A process that runs tests of one file, one at a time; it offers what it knows of each."""
    return Worker([str(HERE / "worker.py"), name, str(options.folder), *(["--pytorch"] if options.pytorch else [])])


def chosen(test: dict[str, Any], only: list[str]) -> bool:
    return not only or any(wanted in (test["variant"], test["test"], test["class"]) for wanted in only)


def run_file(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows in the file's order."""
    first = started(name, options)
    rows: dict[int, dict[str, Any]] = {}
    numbers = [number for number, test in enumerate(first.offers) if chosen(test, options.only)]
    for number in numbers:
        if words := first.offers[number]["not counted"]:
            rows[number] = first.offers[number] | {"status": "not counted", "words": words, "seconds": 0.0}

    def run(worker: Worker, number: int) -> None:
        row = worker.ask(number, options.seconds)
        if isinstance(row, Ended):
            row = {"status": row.status, "words": row.words, "trace": "", "seconds": 0.0}
        rows[number] = page.judged(worker.offers[number] | row)
        print(page.line(rows[number], options.verbose), flush=True)

    counted = [number for number in numbers if number not in rows]
    ask_all(first, lambda: started(name, options), counted, options.workers, run)
    return [rows[number] for number in numbers]


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path, help="PyTorch's folder `test`")
    arguments.add_argument("--file", type=names, help="these files, without `.py`, with dots between folders")
    arguments.add_argument("--further", action="store_true", help="the further files, of which the page has only figures")
    arguments.add_argument("--only", type=names, default=[], help="tests, variants or classes of these names")
    arguments.add_argument("--verbose", action="store_true", help="with tracebacks")
    arguments.add_argument("--seconds", type=float, default=120.0, help="for one test")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--pytorch", action="store_true", help="run them on PyTorch itself, to check the harness")
    arguments.add_argument("--json", type=Path, required=True)
    arguments.add_argument("--write-docs", type=Path)
    options = arguments.parse_args()
    chosen_files, options.file = options.file is not None, options.file or (FURTHER if options.further else FILES)
    if missing := [name for name in options.file if not options.folder.joinpath(*name.split(".")).with_suffix(".py").is_file()]:
        raise SystemExit(f"{options.folder} has no {', '.join(missing)}: give PyTorch's folder `test`")
    some = bool(options.only or options.pytorch or chosen_files)
    if some and options.write_docs:
        raise SystemExit("--write-docs needs a whole run: without --file, --only and --pytorch")
    options.folder = options.folder.resolve()
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    rows = {name: run_file(name, options) for name in options.file}
    print(page.summary(rows))
    # A run of some tests does not replace the whole table.
    stem = f"some-{options.json.stem}" if some else f"further-{options.json.stem}" if options.further else options.json.stem
    table = options.json.with_stem(stem)
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"every failure is in {table}")
    if options.write_docs:
        page.write(options.write_docs, rows, options.further)
    sys.exit(any(row["status"] in ("crashed", "late") for listed in rows.values() for row in listed))


if __name__ == "__main__":
    main()
