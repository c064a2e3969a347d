"""The test case: `unittest`'s, with equality of tensors, the same seed before each test, and assertions on warnings."""

from __future__ import annotations

import contextlib
import random
import re
import textwrap
import unittest
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from stand_in.closeness import Comparison

SEED = 1234


class TestCase(unittest.TestCase):
    maxDiff = None
    # Least tolerances, which a test may raise for itself.
    precision = 0.0
    rel_tol = 0.0

    def setUp(self) -> None:
        torch.manual_seed(SEED)
        random.seed(SEED)
        np.random.seed(SEED)

    def assertEqual(
        self,
        x: Any,
        y: Any,
        msg: str | Callable[[str], str] | None = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        equal_nan: bool = True,
        exact_dtype: bool = True,
        exact_device: bool = False,
        exact_layout: bool = False,
        exact_stride: bool = False,
        exact_is_coalesced: bool = False,
    ) -> None:
        if isinstance(x, torch.Tensor) and isinstance(y, Sequence):
            y = torch.as_tensor(y, dtype=x.dtype, device=x.device)
        elif isinstance(x, Sequence) and isinstance(y, torch.Tensor):
            x = torch.as_tensor(x, dtype=y.dtype, device=y.device)
        exact = {"dtype": exact_dtype, "device": exact_device, "stride": exact_stride}
        found = Comparison(rtol, atol, (self.rel_tol, self.precision), equal_nan, **exact).differ(x, y)
        if found:
            raise self.failureException(msg(found) if callable(msg) else f"{found}; {msg}" if msg else found)

    def assertNotEqual(self, x: Any, y: Any, msg: str | None = None, **options: Any) -> None:
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, **options)

    def assertEqualIgnoreType(self, *values: Any, **options: Any) -> None:
        self.assertEqual(*values, exact_dtype=False, **options)

    def assertNotWarn(self, function: Callable[[], Any], msg: str = "") -> None:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            function()
        self.assertTrue(not seen, msg or [str(warning.message) for warning in seen])

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
        if not any(issubclass(warning.category, category) and re.search(regex, str(warning.message)) for warning in seen):
            self.fail(f"no {category.__name__} that matches {regex!r} among {[str(warning.message) for warning in seen]}")

    def assertExpectedInline(self, actual: str, expected: str, skip: int = 0) -> None:
        self.assertMultiLineEqual(textwrap.dedent(expected), actual)

    def assertExpected(self, text: str, subname: str | None = None) -> None:
        self.fail("assertExpected compares with a file that belongs to PyTorch's tests and is not here")

    def compare_with_numpy(
        self, torch_fn: Callable, np_fn: Callable, tensor_like: Any, device: Any = None, dtype: Any = None, **options: Any
    ) -> None:
        """The same function by PyTorch's name and by NumPy's, of the same values; NumPy has float32 for bfloat16."""
        given = tensor_like if isinstance(tensor_like, torch.Tensor) else torch.tensor(tensor_like, device=device, dtype=dtype)
        values = given.detach().cpu()
        theirs = np_fn((values.float() if values.dtype == torch.bfloat16 else values).numpy())
        ours = torch_fn(given).cpu()
        if isinstance(theirs, np.ndarray):
            theirs = torch.from_numpy(theirs.copy())
            if ours.dtype == torch.bfloat16 and theirs.dtype == torch.float32:
                ours = ours.float()
        self.assertEqual(theirs, ours, **options)
