"""Resolves `torch` to Plimsoll in this process: `import torch.nn` finds `plimsoll.nn`, and so on for every module that exists.
PyTorch itself is never imported, also where it is installed."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers for `torch` and what is below it."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        ours = "plimsoll" + fullname.removeprefix("torch")
        try:
            found = importlib.util.find_spec(ours)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}: there is no {ours}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module("plimsoll" + spec.name.removeprefix("torch"))
        self.own = (module.__spec__, module.__name__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run; the module keeps its own name, which the import system has just replaced."""
        ours = "plimsoll" + module.__spec__.name.removeprefix("torch")
        module.__spec__ = sys.modules[ours].__spec__ = importlib.util.spec_from_loader(ours, module.__loader__)


def resolve() -> None:
    sys.meta_path.insert(0, Finder())
    importlib.import_module("torch")
