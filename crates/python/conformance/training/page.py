"""The section on training in `docs/conformance.md`, written from a run: counts by part, what is not whole, and why.

The page before it is of the operations (`operations/report.py`), whose run leaves this section as it is."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

from report import TRAINING
from table_cell import escaped

PREFACE = """Written by `cargo xtask conformance training --write-docs`; do not edit. It runs every input of PyTorch's databases of modules
and optimizers (`module_db` and `optim_db`, with PyTorch from PyPI), and of modules that they leave out, through the Python
module:

- **modules**, in float64, float32, bfloat16 and float16, in training and evaluation: keys, order, dtypes, versions and
  attributes of the state, the text, results, buffers, gradients of all parameters and arguments, copies by `pickle` and
  `deepcopy`, and the distribution of first values;
- **optimizers**, in float64 and float32: parameters and state after 100 steps (LBFGS: 20 steps of up to 20 iterations) over
  two groups, one of which has a parameter without a gradient now and then; text, copies, a state that is loaded, steps over
  lists of tensors, errors;
- **schedulers**: rates and momenta of every one over 60 steps, resumed halfway, by their closed forms, keys of the state;
- **autocast**: the dtype of every operation that PyTorch registers for mixed precision on the CPU and on CUDA, and of others,
  for operands of float32, of the lower precision, of both in either order, and of float64. PyTorch answers for CUDA by fake
  tensors, Plimsoll by a dry run;
- **files**: states of modules and optimizers and other values, written by one and read by the other, as `.pt` and as
  safetensors, by bits.

Tolerances are those of `torch.testing.assert_close`: 1e-7 in float64, 1.3e-6 and 1e-5 in float32, 1.6e-2 and 1e-5 in
bfloat16, 1e-3 and 1e-5 in float16, relative and absolute. Below float64 two right programs may be further apart, where sums
cancel or functions have kinks. What is off by more is compared with PyTorch's own module in float64 on the same values: it
counts if it is as near that, or no further from it than PyTorch's result. One draw may say no to a right program: a rounding
that takes a ReLU's argument across 0 changes a gradient by all of it. So a module that is further off is judged over up to 48
draws of its parameters and arguments: its distance may be 1.25 times PyTorch's in the middle of the draws, and 1.5 times in
their mean square, in which one draw that is badly off outweighs all others. Optimizers, after 100 steps, may be off by twice
PyTorch's distance. A part of all this runs in CI without PyTorch (`crates/python/tests/test_training_samples.py`)."""

REASONS = """Not compared: Muon and SparseAdam, which do not exist here; `capturable` optimizers but for their refusal on a CPU; inputs
that PyTorch's own module refuses. LBFGS's state in float32 is rounding near a minimum, and is compared in float64 alone; a
line search in float32 is judged by the loss that it reaches. NAdam's `mu_product` stays in float32 when a state is loaded,
where PyTorch gives it the parameter's dtype. `CrossMapLRN2d` is compared without its gradient, which PyTorch wrote by hand
and which is not that of its result."""


def write(path: Path, parts: dict[str, list[dict[str, Any]]]) -> None:
    """Replaces the section in the page; what follows it is other runs'."""
    before, _, rest = path.read_text().partition(f"\n{TRAINING}\n")
    following = rest.find("\n# ")
    after = rest[following:] if following >= 0 else ""
    path.write_text(f"{before.rstrip()}\n\n{TRAINING}\n\n{section(parts)}{after}")


def section(parts: dict[str, list[dict[str, Any]]]) -> str:
    lines = [PREFACE, "", "| part | entries | whole | samples | checks passed |", "| --- | ---: | ---: | ---: | --- |"]
    for part, rows in parts.items():
        whole = sum(not row["failures"] for row in rows)
        checks = sum((collections.Counter(row["passed"]) for row in rows), collections.Counter())
        samples = sum(row["samples"] for row in rows)
        lines.append(f"| {part} | {len(rows)} | {whole} | {samples} | {_counts(checks)} |")
    lines += ["", REASONS, ""]
    for how, said in (("by_truth", "by their distance to float64"), ("by_draws", "over many draws")):
        counts = sum((collections.Counter(row.get(how, {})) for rows in parts.values() for row in rows), collections.Counter())
        lines += [f"Tensors that were judged {said}: {_counts(counts) or 'none'}.", ""]
    wrong = [row for rows in parts.values() for row in rows if row["failures"]]
    if wrong:
        lines += ["| not whole | failures | first |", "| --- | ---: | --- |"]
        lines += [f"| `{row['name']}` | {len(row['failures'])} | {escaped(row['failures'][0][:200])} |" for row in wrong]
        lines.append("")
    return "\n".join(lines)


def _counts(counter: collections.Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counter.items())
