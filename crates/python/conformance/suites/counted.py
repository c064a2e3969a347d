"""Which tests do not count, and why: a rule that reads a test's name and source. Not counted are tests of forward-mode
differentiation, vmap, sparse and complex tensors, TorchScript and CUDA, none of which exists here on a CPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORWARD = {"fwAD", "forward_ad", "check_forward_ad", "dual_level", "make_dual", "unpack_dual", "_is_fwd_grad_enabled"}
VMAP = {"vmap", "is_grads_batched", "check_batched_grad", "check_batched_forward_grad", "generate_vmap_rule", "_vmap_internals"}
COMPLEX = {"cfloat", "cdouble", "chalf", "view_as_real", "view_as_complex", "imag", "polar"}
DEVICES = {"cuda", "mps", "xpu", "mtia"}
# Decorators that run a test on every entry of a database of samples.
SAMPLES = {"ops", "optims", "modules"}


class Sources:
    """The methods of the classes of some files, as syntax trees."""

    def __init__(self) -> None:
        self.read: dict[str, dict[str, dict[str, ast.FunctionDef]]] = {}

    def test(self, path: str, owner: str, name: str) -> list[ast.FunctionDef]:
        """A test, then what it calls of its own class: `self._check(...)`."""
        if path not in self.read:
            classes = [node for node in ast.parse(Path(path).read_text()).body if isinstance(node, ast.ClassDef)]
            self.read[path] = {node.name: {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)} for node in classes}
        methods = self.read[path].get(owner, {})
        found = [methods[name]] if name in methods else []
        for node in found:
            called = {item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute) and getattr(item.value, "id", "") == "self"}
            found += [methods[each] for each in sorted(called) if each in methods and methods[each] not in found]
        return found


def words(node: ast.AST) -> Iterator[str]:
    """Every identifier of the code, keywords of calls unless they are switched off, and names of functions defined within."""
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            yield item.id
        elif isinstance(item, ast.Attribute):
            yield item.attr
        elif isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            yield item.name
        elif isinstance(item, ast.keyword) and item.arg and not (isinstance(item.value, ast.Constant) and item.value.value is False):
            yield item.arg
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            yield from (part for alias in item.names for part in alias.name.split("."))
            yield from (getattr(item, "module", None) or "").split(".")


def why_not(owner: str, name: str, nodes: list[ast.FunctionDef], arguments: dict[str, Any]) -> str | None:
    """The reason why a variant of a test does not count, or `None`."""
    dtypes = [value for value in [arguments.get("dtype"), *arguments.get("dtypes", ())] if value is not None]
    if "Complex" in owner or "complex" in name or any(str(dtype).rpartition(".")[2].startswith("complex") for dtype in dtypes):
        return "complex"
    if "ForwardMode" in owner or re.search(r"forward_mode|forward_ad|fwd_ad|fwAD", name):
        return "forward mode"
    if "vmap" in name or "batched_grad" in name or arguments.get("vectorize") is True:
        return "vmap"
    if "sparse" in name:
        return "sparse"
    if nodes and SAMPLES & {word for item in nodes[0].decorator_list for word in words(item)}:
        return "samples of PyTorch's databases, which the tables above compare"
    return next((why for node in nodes if (why := source_says(node, bool(dtypes)))), None)


def source_says(node: ast.FunctionDef, by_dtype: bool) -> str | None:
    within = {word for statement in node.body for word in words(statement)}
    defined = {item.name for item in ast.walk(node) if isinstance(item, ast.FunctionDef)}
    if within & FORWARD or "jvp" in defined or says_forward_mode(node):
        return "forward mode"
    if within & VMAP or has_keyword(node, "vectorize", True):
        return "vmap"
    if any("sparse" in word and word != "is_sparse" for word in within):
        return "sparse"
    # Where variants have dtypes, the variant decides.
    if not by_dtype and (has_complex_numbers(node) or within & COMPLEX or any("complex" in word and word != "is_complex" for word in within)):
        return "complex"
    if "jit" in {word for item in [*node.body, *node.decorator_list] for word in words(item)}:
        return "TorchScript"
    return "CUDA" if needs_another_device(node, within) else None


def says_forward_mode(node: ast.FunctionDef) -> bool:
    """`strategy="forward-mode"`."""
    return any(isinstance(item, ast.Constant) and item.value == "forward-mode" for item in ast.walk(node))


def has_keyword(node: ast.FunctionDef, name: str, value: object) -> bool:
    found = [item.value for item in ast.walk(node) if isinstance(item, ast.keyword) and item.arg == name]
    return any(isinstance(item, ast.Constant) and item.value is value for item in found)


def has_complex_numbers(node: ast.FunctionDef) -> bool:
    return any(isinstance(item, ast.Constant) and isinstance(item.value, complex) for item in ast.walk(node))


def needs_another_device(node: ast.FunctionDef, within: set[str]) -> bool:
    """By a decorator, or by what its body does without asking whether there is such a device."""
    decorators = {word for decorator in node.decorator_list for word in words(decorator)}
    if "onlyCUDA" in decorators or any(count > 1 for count in counts(node)):
        return True
    if within & {"is_available", "TEST_CUDA", "device_type", "device_count"}:
        return False
    compared = {id(item) for comparison in ast.walk(node) if isinstance(comparison, ast.Compare) for item in ast.walk(comparison)}
    for item in (item for statement in node.body for item in ast.walk(statement)):
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and re.fullmatch(r"(cuda|mps|xpu)(:\d)?", item.value):
            if id(item) not in compared:
                return True
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in DEVICES:
            return True
    return False


def counts(node: ast.FunctionDef) -> Iterator[int]:
    """How many devices its decorators ask for."""
    for item in node.decorator_list:
        if isinstance(item, ast.Call) and getattr(item.func, "id", "") == "deviceCountAtLeast" and isinstance(item.args[0], ast.Constant):
            yield item.args[0].value
