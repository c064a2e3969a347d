"""The stubs name exactly what the compiled module has."""

import ast
import pathlib

import plimsoll
from plimsoll import _plimsoll

STUB = pathlib.Path(plimsoll.__file__).with_name("_plimsoll.pyi")


def names(body):
    for node in body:
        if isinstance(node, ast.ClassDef) and [getattr(base, "id", None) for base in node.bases] == ["NamedTuple"]:
            continue  # a class that is made when an operation first gives it
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and getattr(node.annotation, "id", None) != "TypeAlias":
            yield node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            yield from (target.id for target in node.targets)


def test_the_module():
    stubbed = set(names(ast.parse(STUB.read_text()).body))
    public = {name for name in dir(_plimsoll) if not name.startswith("__")} | {"__version__"}
    assert stubbed == public


def test_the_tensor():
    module = ast.parse(STUB.read_text())
    tensor = next(node for node in module.body if getattr(node, "name", None) == "Tensor")
    stubbed = set(names(tensor.body))
    public = {name for name in vars(plimsoll.Tensor) if not name.startswith("__")}
    assert {name for name in stubbed if not name.startswith("__")} == public
