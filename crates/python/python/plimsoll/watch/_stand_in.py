"""The package `plimsoll` where Plimsoll is not installed: a program that marks its steps imports `plimsoll.watch`, and Python
wants the package around it first. It has nothing else, and is asked for last, so that a real one comes before it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any

_NAME = "plimsoll"


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the package that nobody else has found."""

    def __init__(self, watch: types.ModuleType):
        self._watch = watch

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name == _NAME else None

    def exec_module(self, module: types.ModuleType) -> None:
        module.watch = self._watch  # type: ignore[attr-defined]


def stand_in(watch: types.ModuleType) -> None:
    """Has `import plimsoll.watch` find `watch`."""
    sys.modules[f"{_NAME}.watch"] = watch
    sys.meta_path.append(StandIn(watch))
