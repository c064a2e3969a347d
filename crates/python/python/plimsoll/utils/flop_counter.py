"""Floating point operations of a block, by module and operation: PyTorch's `FlopCounterMode`. The profiler counts them
from shapes; this file gives each count to PyTorch's name of the operation and to the modules that it was made in."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from ..autograd import _profiler_session
from ..autograd.profiler import record_function
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

if TYPE_CHECKING:
    from ..nn import Module

_SUFFIXES = ["", "K", "M", "B", "T"]
_CONVOLUTIONS = tuple(f"aten::conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3))
_GRADIENTS = ("aten::convolution_input", "aten::convolution_result", "aten::convolution_weight")
_ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu"
#: How ranges of modules that no other calls are named in the recording.
_RANGE = "FlopCounterMode: "
_NAMES = {
    "aten::mm": "aten.mm",
    "aten::bmm": "aten.bmm",
    "aten::addmm": "aten.addmm",
    "aten::baddbmm": "aten.baddbmm",
    **dict.fromkeys(_CONVOLUTIONS, "aten.convolution"),
    **dict.fromkeys(_GRADIENTS, "aten.convolution_backward"),
    "aten::scaled_dot_product_attention": _ATTENTION,
    "aten::attention_backward": f"{_ATTENTION}_backward",
}


class FlopCounterMode:
    """Counts the floating point operations of matrix products, convolutions and attention, forward and backward, that
    run in its block. A multiplication and an addition are two. Operations are named in texts, as `aten.mm`. Recurrent
    layers and cells are operations of their own here, which count nothing.

    What is counted counts for `Global` and for every module that it was made in, in its backward pass as well, unless
    modules of several classes that no other calls have parts of one name. While it counts, no profiler can record.

    >>> import plimsoll
    >>> from plimsoll.utils.flop_counter import FlopCounterMode
    >>> model = plimsoll.nn.Linear(16, 32)
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = model(plimsoll.randn(4, 16))
    >>> counter.get_total_flops(), counter.get_flop_counts()
    (4096, {'Global': {'aten.addmm': 4096}, 'Linear': {'aten.addmm': 4096}})
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
        skip_unsupported: bool = False,
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        if custom_mapping:
            raise NotImplementedError("FlopCounterMode: formulas of one's own (custom_mapping) are not here")
        self.depth, self.display, self.skip_unsupported = depth, display, skip_unsupported
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._inside = 0
        #: For each class of modules that no other calls, the paths of their parts, and those of them that were called.
        self._roots: dict[str, set[str]] = defaultdict(set)
        self._called_paths: dict[str, set[str]] = defaultdict(set)
        #: The class and the parts of the one that is being called.
        self._root = ""
        self._parts: dict[int, str] = {}
        self._root_ranges: list[record_function] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._roots.clear()
        self._called_paths.clear()
        if _profiler_session.owner() is not None:
            raise ValueError("FlopCounterMode: a profiler is running already; stop it before counting")
        _profiler_session.begin(self, shapes=True, memory=False, stacks=False, flops=True, modules=True)
        self._inside = 0
        self._hooks = [
            register_module_forward_pre_hook(self._called),
            register_module_forward_hook(self._returned, always_call=True),
        ]
        return self

    def __exit__(self, *failure: object) -> None:
        for hook in self._hooks:
            hook.remove()
        recording = _profiler_session.end(self)
        if recording is None:
            raise RuntimeError("FlopCounterMode: a profiler that started in its block cancelled the count")
        self._add_up(recording.events())
        if self.display:
            print(self.get_table(self.depth))

    def _called(self, module: Module, args: Any) -> None:
        if self._inside == 0:
            self._root = type(module).__name__
            self._parts = {id(part): path for path, part in module.named_modules()}
            self._roots[self._root].update(self._parts.values())
            self._root_ranges.append(record_function(_RANGE + self._root))
            self._root_ranges[-1].__enter__()
        if id(module) in self._parts:
            self._called_paths[self._root].add(self._parts[id(module)])
        self._inside += 1

    def _returned(self, module: Module, args: Any, result: Any) -> None:
        self._inside -= 1
        if self._inside == 0:
            self._root_ranges.pop().__exit__(None, None, None)

    def _add_up(self, events: list[dict[str, Any]]) -> None:
        counted = []
        for event in events:
            name = _name(event) if event["flops"] else None
            if name is not None:
                around = _names_around(event, events)
                called = [one.removeprefix(_RANGE) for one in around if one.startswith(_RANGE)]
                counted.append((event, name, called[-1] if called else None))
        # A backward pass does not say whether its operations were of the module itself or of none.
        forward = [(event["module"], root) for event, _, root in counted if event["phase"] != "backward"]
        has_own = any(root is not None and not path for path, root in forward)
        is_of_roots = has_own and all(root is not None for _, root in forward)
        for event, name, root in counted:
            path = event["module"]
            if root is None and event["phase"] == "backward" and (path or is_of_roots):
                found = [one for one, paths in self._roots.items() if path in paths]
                root = found[0] if len(found) == 1 else None
            for parent in ["Global", *(self._with_parents(root, path) if root is not None else [])]:
                self.flop_counts[parent][name] += event["flops"]

    def _with_parents(self, root: str, path: str) -> list[str]:
        """The names of the module that was called and of all on the way to the one at the path, less containers that
        hold others and are not called themselves."""
        parts = path.split(".") if path else []
        above = [".".join(parts[:length]) for length in range(1, len(parts))]
        called = [one for one in above if one in self._called_paths[root]]
        return [root, *(f"{root}.{one}" for one in ([*called, path] if path else []))]

    def get_total_flops(self) -> int:
        """All that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operation."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_unsupported_ops(self) -> Counter[str]:
        """Nothing: operations without a count are not noted."""
        return Counter()

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a text, down to so many levels of modules."""
        limit = depth if depth is not None else self.depth
        total = self.get_total_flops()
        rows: list[tuple[str, str, str]] = []
        shown = sorted(name for name in self.flop_counts if name != "Global")
        shown = [name for name in shown if limit is None or name.count(".") < limit]
        is_all_shown = any(sum(self.flop_counts[name].values()) >= total for name in shown)
        if not is_all_shown and "Global" in self.flop_counts:
            rows += self._rows("Global", 0, total)
        for name in shown:
            rows += self._rows(name, name.count(".") + (0 if is_all_shown else 1), total)
        return _table(rows or [("Global", "0", "0%")])

    def _rows(self, module: str, depth: int, total: int) -> list[tuple[str, str, str]]:
        power = max(0, min(len(_SUFFIXES) - 1, (len(str(total)) - 2) // 3))
        counts = self.flop_counts[module]
        lines = [(module, sum(counts.values())), *((f" - {name}", count) for name, count in counts.items())]
        figures = [f"{count / 1000**power:.3f}{_SUFFIXES[power]}" if power else str(count) for _, count in lines]
        texts = [" " * depth + text for text, _ in lines]
        return list(zip(texts, figures, [_share(count, total) for _, count in lines], strict=True))


def _share(count: int, total: int) -> str:
    return f"{count / total:.2%}" if total else "0%"


def _names_around(event: dict[str, Any], events: list[dict[str, Any]]) -> list[str]:
    """The names of the events that it is in, from the inside."""
    names = []
    while event["parent"] is not None:
        event = events[event["parent"]]
        names.append(event["name"])
    return names


def _name(event: dict[str, Any]) -> str | None:
    """PyTorch's name of the operation that is counted; products with a vector are not."""
    name, shapes = event["name"], event["input_shapes"]
    if name not in ("aten::matmul", "aten::linear"):
        return _NAMES.get(name)
    if min(len(shapes[0]), len(shapes[1])) < 2:
        return None
    if name == "aten::linear":
        return "aten.addmm" if len(shapes) > 2 else "aten.mm"
    # A batch times one matrix is one product of matrices.
    return "aten.mm" if len(shapes[1]) == 2 else "aten.bmm"


def _table(rows: list[tuple[str, str, str]]) -> str:
    header = ("Module", "FLOP", "% Total")
    widths = [max(len(header[at]) + 2, *(len(row[at]) for row in rows)) for at in range(3)]
    lines = [header, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "  ".join([first.ljust(widths[0]), second.rjust(widths[1]), third.rjust(widths[2])])
        for first, second, third in lines
    )
