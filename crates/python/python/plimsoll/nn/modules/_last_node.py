"""The older kind of backward hooks, `register_backward_hook`: they see the gradients of the last operation of a module's call,
and not those of the module. Full ones are in `_hooks.py`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..._plimsoll import Tensor


def hook_last_node(module: Any, hooks: Iterable[Callable[..., Any]], args: Any, result: Any) -> None:
    """Has the operation that made the first tensor of the result call the hooks in backward."""
    first = result
    while not isinstance(first, Tensor):
        first = next(one for one in first.values() if isinstance(one, Tensor)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))
    missing = _missing(args, result, node)
    if missing is not None:
        warnings.warn(
            f"a backward hook that is not full, on a module {missing}: it misses some of them. Use register_full_backward_hook",
            FutureWarning,
            stacklevel=5,
        )


def _missing(args: Any, result: Any, node: Any) -> str | None:
    """Why gradients will be missing."""
    results = (result,) if isinstance(result, Tensor) else result
    if not _only_tensors(results):
        return "whose result is no Tensor or tuple of Tensors, for which it should get gradients"
    if not _only_tensors(args):
        return "some of whose arguments are no Tensors, for which it should get gradients"
    nodes = {one.grad_fn for one in results if one.grad_fn is not None}
    if len(nodes) > 1:
        return "whose results come from several operations, for each of which it should get gradients"
    sources = {one.grad_fn for one in args if one.grad_fn is not None}
    known = {following for following, _ in node.next_functions}
    if sources != known:
        return "of several operations, for whose arguments it should get gradients"
    return None


def _only_tensors(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, Tensor) for value in values)
