"""Which names a piece of Python uses before it has bound them: those that a document takes for granted."""

from __future__ import annotations

import ast
import builtins

# A document that says `input` means a tensor, not the function that reads a line.
MEANT = {"input"}
GIVEN_ANYWAY = set(dir(builtins)) - MEANT | {"__name__", "__file__"}


def undefined(source: str) -> list[str]:
    """The names, in the order of the alphabet."""
    tree = ast.parse(source)
    reader = _Reader()
    for statement in tree.body:
        reader.visit(statement)
    # Bodies of functions run when they are called: what the text binds anywhere is there by then.
    late = reader.late - reader.bound
    return sorted((reader.wanted | late) - GIVEN_ANYWAY)


class _Reader(ast.NodeVisitor):
    """Goes through statements in the order in which they run."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.wanted: set[str] = set()
        self.late: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.bound:
                self.wanted.add(node.id)
        elif isinstance(node.ctx, ast.Del):
            if node.id not in self.bound:
                self.wanted.add(node.id)
            self.bound.discard(node.id)
        else:
            self.bound.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.visit(ast.Name(node.target.id, ast.Load()))
        self.visit(node.target)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self.visit(node.target)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        inner = _Reader()
        inner.bound = set(self.bound)
        for generator in node.generators:
            inner.visit(generator.iter)
            inner.visit(generator.target)
            for condition in generator.ifs:
                inner.visit(condition)
        for child in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            inner.visit(child)
        self.wanted |= inner.wanted
        self.late |= inner.late

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for child in [*node.decorator_list, *node.args.defaults]:
            self.visit(child)
        self.bound.add(node.name)
        self.late |= _free(node.body, {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)})

    def visit_Lambda(self, node: ast.Lambda) -> None:
        names = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        self.late |= _free([ast.Expr(node.body)], names)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for child in [*node.decorator_list, *node.bases]:
            self.visit(child)
        for statement in node.body:
            inner = _Reader()
            inner.bound = set(self.bound)
            inner.visit(statement)
            self.wanted |= inner.wanted
            self.late |= inner.late
        self.bound.add(node.name)

    def visit_Import(self, node: ast.Import) -> None:
        self.bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.bound |= {alias.asname or alias.name for alias in node.names}

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self.bound.add(node.name)
        for statement in node.body:
            self.visit(statement)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.visit(item.optional_vars)
        for statement in node.body:
            self.visit(statement)


def _free(body: list[ast.stmt], parameters: set[str]) -> set[str]:
    """What the body of a function takes from outside: a name that it binds anywhere is its own."""
    inner = _Reader()
    for statement in body:
        inner.visit(statement)
    return (inner.wanted | inner.late) - inner.bound - parameters
