"""The harness that runs PyTorch's test files (`conformance/suites`), on a file of our own: variants and their names, what counts,
which failures are seen, crashes and tests that never end."""

import json
import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).resolve().parent.parent / "conformance" / "suites"

FILE = '''
import os
import time
import unittest
import numpy
import torch
import torch.no_such_module
from torch import no_such_name
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCUDA
from torch.testing._internal.common_dtype import floating_and_complex_types_and
from torch.testing._internal.common_utils import TestCase, gradcheck, instantiate_parametrized_tests, parametrize, subtest


class TestPlain(TestCase):
    def test_right(self):
        self.assertEqual(torch.ones(2) * 2, [2.0, 2.0])
        self.assertEqual({"a": (torch.tensor(1.0), None)}, {"a": (torch.tensor(1.0 + 1e-7), None)})

    def test_values(self):
        self.assertEqual(torch.ones(2), torch.tensor([1.0, 1.1]))

    def test_dtypes(self):
        self.assertEqual(torch.ones(2), torch.ones(2, dtype=torch.float64))

    def test_shapes(self):
        self.assertEqual(torch.ones(2), torch.ones(1, 2))

    def test_numbers(self):
        self.assertEqual(1.0, 1.1)

    def test_absent(self):
        no_such_name(3)

    @no_such_name("for a reason")
    def test_absent_decorator(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.fail("as expected")

    @unittest.skip("for no reason")
    def test_skipped(self):
        pass

    def test_sparse_values(self):
        pass

    def test_literal(self):
        1j

    def test_jvp(self):
        torch.autograd.forward_ad.make_dual(1, 2)

    @parametrize("x,y", [(1, True), subtest((2, False), name="second")])
    @parametrize("z", [0.5])
    def test_parameters(self, x, y, z):
        self.assertEqual(x == 1, y)

    def test_crash(self):
        os.abort()

    def test_hang(self):
        time.sleep(100)


class TestDevices(TestCase):
    @dtypes(*floating_and_complex_types_and(torch.half, torch.uint16))
    def test_dtype(self, device, dtype):
        x = make_tensor((3, 4), dtype=dtype, device=device, noncontiguous=True)
        self.assertEqual(x.t().t().numpy(), x)
        self.assertNotEqual(x, x + 1)

    @onlyCUDA
    def test_there(self, device):
        pass

    def test_check(self, device):
        self.assertTrue(gradcheck(torch.exp, (torch.ones(2, dtype=torch.float64, requires_grad=True),)))


instantiate_parametrized_tests(TestPlain)
instantiate_device_type_tests(TestDevices, globals())
'''


def test_harness_sees_what_it_must(tmp_path):
    (tmp_path / "test_small.py").write_text(FILE)
    table = tmp_path / "table.json"
    command = [sys.executable, str(HARNESS), str(tmp_path), "--file", "test_small", "--json", str(table), "--seconds", "5"]
    ended = subprocess.run([*command, "--workers", "1"], capture_output=True, text=True)
    rows = json.loads((tmp_path / "some-table.json").read_text())["test_small"]
    found = {row["variant"]: (row["status"], row["words"]) for row in rows}
    passed = {name for name, (status, _) in found.items() if status == "passed"}
    assert passed == {
        "test_right",
        "test_parameters_x_1_y_True_z_0_5",
        "test_parameters_second_z_0_5",
        "test_dtype_cpu_float16",
        "test_dtype_cpu_float32",
        "test_dtype_cpu_float64",
        "test_check_cpu",
    }
    not_counted = {name: words for name, (status, words) in found.items() if status == "not counted"}
    assert not_counted == {
        "test_sparse_values": "sparse",
        "test_literal": "complex",
        "test_jvp": "forward mode",
        "test_dtype_cpu_complex64": "complex",
        "test_dtype_cpu_complex128": "complex",
        "test_there_cpu": "CUDA",
    }
    words = {name: words for name, (status, words) in found.items() if status == "failed"}
    assert words["test_values"].startswith("AssertionError: 1 of 2 elements differ, the first at (1,): 1.0 and 1.1")
    assert "dtypes differ" in words["test_dtypes"] and "shapes differ" in words["test_shapes"]
    assert words["test_numbers"] == "AssertionError: numbers differ: 1.0 and 1.1"
    assert "no_such_name" in words["test_absent"] and "no_such_name" in words["test_absent_decorator"]
    assert words["test_dtype_cpu_uint16"] == "TypeError: there is no dtype uint16 here"
    assert words["test_skipped"] == "skipped: for no reason" and "as expected" in words["test_expected"]
    assert found["test_crash"][0] == "crashed" and found["test_hang"] == ("late", "took more than 5 s")
    assert ended.returncode == 1 and len(found) == len(passed) + len(not_counted) + len(words) + 2
