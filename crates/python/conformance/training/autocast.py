"""Mixed precision beside PyTorch: the dtypes that every call of `autocast_cases.py` gives, in PyTorch and here, for the CPU and for
CUDA, and that those calls leave out none of the operations that PyTorch registers for it.

Neither side needs a GPU: PyTorch answers for CUDA by fake tensors, which go through its dispatcher and compute nothing, and
Plimsoll by a dry run."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import Any

import autocast_cases
import plimsoll
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

COLUMNS = ["dtypes"]

# Registered by PyTorch, and called by no text: kernels below functions that are, overloads of them, and what nothing here is like
# (complex numbers, transforms, quantization).
UNCALLED = {
    "_addmm_activation", "_convolution", "_cudnn_rnn", "_grid_sampler_2d_cpu_fallback", "_lu_with_info",
    "_native_multi_head_attention", "_scaled_dot_product_flash_attention", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell",
    "convolution", "cudnn_convolution", "cudnn_convolution_transpose", "fake_quantize_per_tensor_affine", "frobenius_norm",
    "linalg_eig", "linalg_eigvals", "mkldnn_rnn_layer", "multilabel_margin_loss_forward", "nuclear_norm", "polar", "stft",
    "view_as_complex",
}  # fmt: skip

# Where a registered name is called by another.
CALLED_AS = {
    "cross_entropy_loss": "cross_entropy",
    "nll_loss2d": "nll_loss",
    "grid_sampler_2d": "grid_sample",
    "grid_sampler_3d": "grid_sample",
    "reflection_pad": "'reflect'",
    "replication_pad": "'replicate'",
    "upsample_": "interpolate",
    "_upsample_": "interpolate",
    "fft_": "",
}


@contextlib.contextmanager
def theirs(kind: str, lower: str) -> Iterator[None]:
    """PyTorch casts for devices of that kind, which need not be there."""
    before = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    torch.set_autocast_enabled(kind, True)
    torch.set_autocast_dtype(kind, getattr(torch, lower))
    # It writes every refusal to its log.
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    try:
        with FakeTensorMode() if kind == "cuda" else contextlib.nullcontext():
            yield
    finally:
        torch.set_autocast_enabled(kind, before[0])
        torch.set_autocast_dtype(kind, before[1])
        torch.clear_autocast_cache()


def recorded() -> list[dict[str, Any]]:
    """What PyTorch answers to every call: dtypes by region, and by the dtypes of the operands."""
    rows = []
    for kind, lower in autocast_cases.REGIONS:
        for call in autocast_cases.calls(kind):
            with theirs(kind, lower):
                answers = autocast_cases.answers(call, torch, kind, lower)
            rows.append({"kind": kind, "lower": lower, "call": call, "answers": answers})
    return rows


def entries() -> list[str]:
    return [f"{kind} {lower}" for kind, lower in autocast_cases.REGIONS] + ["lists"]


def judged(name: str) -> dict[str, Any]:
    """The row of one region, or of the lists themselves."""
    row: dict[str, Any] = {"name": name, "samples": 0, "passed": {"dtypes": 0}, "failures": []}
    if name == "lists":
        missing = uncalled()
        row["samples"], row["failures"] = 1, [f"PyTorch casts {one}, and nothing calls it here" for one in missing]
        row["passed"]["dtypes"] = int(not missing)
        return row
    kind, lower = name.split()
    for call in autocast_cases.calls(kind):
        with theirs(kind, lower):
            expected = autocast_cases.answers(call, torch, kind, lower)
        row["samples"] += 1
        difference = autocast_cases.difference(call, kind, lower, expected, plimsoll)
        row["failures"] += [] if difference is None else [difference]
        row["passed"]["dtypes"] += difference is None
    return row


def uncalled() -> list[str]:
    """Operations that PyTorch registers for mixed precision, and that no text calls."""
    texts = " ".join(autocast_cases.CALLS)
    missing = set()
    for full in torch._C._dispatch_get_all_op_names():
        name = full.removeprefix("aten::").split(".")[0]
        if not full.startswith("aten::") or name in UNCALLED:
            continue
        if not any(torch._C._dispatch_has_kernel_for_dispatch_key(full, key) for key in ("AutocastCPU", "AutocastCUDA")):
            continue
        other = next((called for start, called in CALLED_AS.items() if name.startswith(start)), None)
        wanted = name if other is None else other
        python = wanted.removeprefix("linalg_")
        if not re.search(rf"(?<![a-z_]){re.escape(python)}(?![a-z_0-9])", texts) and wanted not in texts:
            missing.add(name)
    return sorted(missing)

