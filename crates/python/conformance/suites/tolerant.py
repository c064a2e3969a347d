"""Loads a test file so that what is missing costs only the tests that use it. The file's syntax tree is changed: every import of a
name, statement of the module and definition of a class stands in a `try` of its own. A name that cannot be had becomes an
`Absent`, which raises the error again where a test uses it; a test that cannot be defined becomes one that raises."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from stand_in.dtypes import NAMES, SECOND, by_name


class Absent:
    """Stands for a name that does not exist here; whatever is done with it raises the error of its import."""

    def __init__(self, name: str, error: BaseException) -> None:
        self.__dict__.update(name=name, error=error)

    def _raise(self, *args: Any, **named: Any) -> Any:
        raise self.__dict__["error"].with_traceback(None)

    def __getattr__(self, name: str) -> Any:
        return self._raise()

    def __mro_entries__(self, bases: tuple) -> tuple[type]:
        """As a class's base: the class exists, its objects do not."""
        raising = self._raise
        return (type(self.__dict__["name"], (), {"__new__": lambda cls, *args, **named: raising()}),)

    __call__ = __enter__ = __iter__ = __getitem__ = __bool__ = __instancecheck__ = _raise


def undefined(name: str, error: BaseException) -> Any:
    """In place of a name whose definition raised: for a test, one that raises the same."""
    if not name.startswith("test"):
        return Absent(name, error)

    def test(self: Any, *args: Any, **named: Any) -> None:
        raise error

    test.__name__ = name
    return test


class Tolerant(ast.NodeTransformer):
    """Puts every statement that may fail into a `try` of its own."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = [made for statement in node.body for made in self._statement(statement)]
        return node

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return [node]
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return [self._import(node, alias) for alias in node.names]
        if isinstance(node, ast.ClassDef):
            node.body = [made for statement in node.body for made in self._member(statement)]
            return [self._guarded(node, [node.name])]
        if isinstance(node, ast.FunctionDef):
            return [self._guarded(node, [node.name])]
        if isinstance(node, ast.Assign):
            return [self._guarded(node, [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)])]
        if isinstance(node, ast.If):
            node.body = [made for statement in node.body for made in self._statement(statement)]
            node.orelse = [made for statement in node.orelse for made in self._statement(statement)]
        if isinstance(node, (ast.For, ast.With, ast.Expr)) and "instantiate" not in ast.dump(node):
            return [self._guarded(node, [])]
        return [node]

    def _member(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            node.decorator_list = [Dtypes().visit(decorator) for decorator in node.decorator_list]
            return [self._guarded(node, [node.name])]
        if isinstance(node, ast.Assign):
            return [self._guarded(node, [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)])]
        if isinstance(node, (ast.For, ast.With, ast.If)):
            return [self._guarded(node, [])]
        return [node]

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
        if isinstance(node, ast.ImportFrom):
            return self._guarded(ast.copy_location(ast.ImportFrom(node.module, [alias], node.level), node), [alias.asname or alias.name])
        made = ast.copy_location(ast.Import([alias]), node)
        if alias.asname or "." not in alias.name:
            return self._guarded(made, [alias.asname or alias.name])
        # `import a.b` defines `a`, which is there also where `a.b` is not.
        return self._guarded(made, [], f"import {alias.name.partition('.')[0]}")

    def _guarded(self, node: ast.stmt, names: list[str], otherwise: str = "pass") -> ast.stmt:
        """`try: node` and, if that raises, `name = __undefined__("name", error)` for what it would have defined."""
        lines = [f"{name} = __undefined__({name!r}, __error__)" for name in names] or [otherwise]
        instead: list[ast.stmt] = ast.parse("\n".join(lines)).body
        handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), "__error__", instead)
        return ast.fix_missing_locations(ast.copy_location(ast.Try([node], [handler], [], []), node))


class Dtypes(ast.NodeTransformer):
    """In a decorator, `torch.complex64` names a variant, also where there is no such dtype."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "torch" and node.attr in {*NAMES, *SECOND}:
            call = ast.Call(ast.Name("__dtype__", ast.Load()), [ast.Constant(node.attr)], [])
            return ast.fix_missing_locations(ast.copy_location(call, node))
        return self.generic_visit(node)


class Files(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the files of a folder, those that a test file imports from it among them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        below = self.folder.joinpath(*fullname.split("."))
        if below.with_suffix(".py").is_file():
            return importlib.util.spec_from_file_location(fullname, below.with_suffix(".py"), loader=self)
        if below.is_dir() and list(below.glob("test_*.py")):
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(below)]
            return spec
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        path = Path(module.__spec__.origin)
        tree = Tolerant().visit(ast.parse(path.read_text(), str(path)))
        vars(module).update(__undefined__=undefined, __dtype__=by_name, __file__=str(path))
        exec(compile(tree, str(path), "exec"), vars(module))
