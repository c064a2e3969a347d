"""Handles of hooks, where programs import them from."""

from __future__ import annotations

import itertools
import weakref
from abc import ABCMeta
from collections import OrderedDict
from typing import Any

from .. import _plimsoll

__all__ = ["RemovableHandle", "unserializable_hook"]


class RemovableHandle(metaclass=ABCMeta):
    """Takes a hook off again: `remove()`, or the end of a `with` block. Made with the dictionary that holds the hook under the
    handle's `id`, and others that are told when it goes. The handles of tensors' and nodes' hooks are of this class too.

    >>> import collections
    >>> import plimsoll as pm
    >>> hooks = collections.OrderedDict()
    >>> handle = pm.utils.hooks.RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> len(hooks)
    0
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(RemovableHandle._ids)
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(one) for one in extra)

    def remove(self) -> None:
        """Takes it off; a second time does nothing."""
        for listed in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = listed()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *failure: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        if not self.extra_dict_ref:
            return self.hooks_dict_ref(), self.id
        return self.hooks_dict_ref(), self.id, tuple(listed() for listed in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, extra = (*state, ()) if len(state) == 2 else state
        # Ids that are given out later stay apart from it.
        RemovableHandle._ids = itertools.count(max(self.id + 1, next(RemovableHandle._ids)))
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if one is None else one) for one in extra)


RemovableHandle.register(_plimsoll.RemovableHandle)


def unserializable_hook(f: Any) -> Any:
    """Marks a hook that a tensor may not be pickled with."""
    f.__torch_unserializable__ = True
    return f
