"""A module as a function of its parameters and buffers: for the length of one call others stand in their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._plimsoll import Tensor
from ..modules.module import Module


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers, by path. What is not named stays the module's own. With
    `tie_weights` a tensor that the module has under several names is replaced under all of them; with `strict` each one must
    be named, and no other. Buffers that the call replaces are put into the dictionary."""
    given = _merged(parameter_and_buffer_dicts)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _in_place(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    merged: dict[str, Tensor] = {}
    for one in dicts:
        if not isinstance(one, dict):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        repeated = [name for name in one if name in merged]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        merged.update(one)
    return merged


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Where the module has its tensors: the table and the name in it, by path."""
    places = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    places[f"{path}.{name}" if path else name] = (table, name)
    return places


def _untied(given: dict[str, Tensor], places: dict[str, Any]) -> dict[str, Tensor]:
    """The given tensors under all names that the module has for what they replace."""
    by_tensor: dict[int, list[str]] = {}
    for path, (table, name) in places.items():
        by_tensor.setdefault(id(table[name]), []).append(path)
    complete = dict(given)
    for names in by_tensor.values():
        named = [name for name in names if name in given]
        if any(given[name] is not given[named[0]] for name in named[1:]):
            raise ValueError(f"functional_call got multiple values for keys {sorted(named)}, which are tied.")
        complete.update((name, given[named[0]]) for name in names if named)
    return complete


@contextmanager
def _in_place(module: Module, given: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    places = _places(module)
    complete = _untied(given, places) if tie_weights else dict(given)
    _check(module, complete, places, strict)
    # As in PyTorch, a name that the module does not have is passed over unless the call is strict.
    before = {path: places[path][0][places[path][1]] for path in complete if path in places}
    try:
        for path in before:
            table, name = places[path]
            table[name] = complete[path]
        yield
    finally:
        for path, own in before.items():
            table, name = places[path]
            if path in given and name in table:
                given[path] = table[name]
            table[name] = own


def _check(module: Module, given: dict[str, Tensor], places: dict[str, Any], strict: bool) -> None:
    for tensor in given.values():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if not strict:
        return
    unexpected = [path for path in given if path not in places]
    missing = [path for path in places if path not in given]
    if unexpected or missing:
        said = [("Unexpected", unexpected), ("Missing", missing)]
        lines = [f"{word} key(s): {', '.join(map(repr, names))}." for word, names in said if names]
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(lines))
