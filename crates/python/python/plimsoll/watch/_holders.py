"""Who holds a tensor: a breadth-first walk from the program's globals and the locals of its running functions, so
that the shortest path is the name. It runs none of the program's code: no `__getattr__`, `__eq__`, `__iter__` or
property is called. All references it takes end with the walk. What lies behind a tensor (graphs, gradients) is
followed in `_census.py`."""

from __future__ import annotations

import collections
import contextvars
import dis
import functools
import gc
import inspect
import itertools
import sys
import threading
import types
import weakref
from typing import Any, TypeVar

from ._attributes import Attributes, is_programs_module, names_in, names_of_threads
from ._frames import frames_of_threads
from ._places import is_user_code

# Objects that are visited before the walk gives up.
MOST_OBJECTS = 300_000
# Entries of one container that are visited, the latest: what grows is at the end.
MOST_ENTRIES = 20_000
# Steps of one link of a chain that is told once.
LONGEST_LINK = 4
# Mappings up to this length name their keys; longer ones are told by their length.
NAMED_KEYS = 16
# Numbers beyond it are no names.
MOST_BITS = 128

_T = TypeVar("_T")
# Names of a frame's locals, and where those wait that are added later.
_Later = tuple[tuple[str, ...], "collections.deque[tuple[Any, Hold]]"]

# By these attributes modules and optimizers are known: PyTorch's, Plimsoll's and the program's own that are like them.
_OWN = {"module": frozenset(("_parameters", "_modules", "_buffers")), "optimizer": frozenset(("state", "param_groups"))}
# Classes of PyTorch's operators: compiled functions lead to all of them, and they to no tensor.
_OPERATORS = ("OpOverload", "OpOverloadPacket", "_OpNamespace", "_Ops")

# Python's functions that have to do with the dictionary of a frame's locals; `vars` only without arguments.
_ASKS_FOR_LOCALS = {"locals", "vars", "eval", "exec"}
# What the locals of a function's frame are: a dictionary, from Python 3.13 on a view of their own.
_VIEW: Any = type((lambda: sys._getframe().f_locals)())
_asking: dict[types.CodeType, frozenset[str]] = {}
# Iterators of the interpreter that hold others, or what those have given.
_ITERATORS = {itertools.cycle, itertools.chain, itertools.islice, itertools.starmap, itertools.takewhile, itertools.dropwhile}
_ITERATORS |= {itertools.filterfalse, itertools.zip_longest, zip, enumerate, map, filter}
_LEAVES = (str, bytes, bytearray, int, float, complex, range, types.ModuleType, types.CodeType, types.BuiltinFunctionType)
_ENTRIES = {list: list.__iter__, tuple: tuple.__iter__, set: set.__iter__, frozenset: frozenset.__iter__}
_ENTRIES[collections.deque] = collections.deque.__iter__
# Functions that wait, and what each calls its frame and its code.
_WAITING: dict[type, tuple[Any, Any]] = {
    types.GeneratorType: (types.GeneratorType.gi_frame, types.GeneratorType.gi_code),
    types.CoroutineType: (types.CoroutineType.cr_frame, types.CoroutineType.cr_code),
    types.AsyncGeneratorType: (types.AsyncGeneratorType.ag_frame, types.AsyncGeneratorType.ag_code),
}


class Hold:
    """How one object is held: a step of a path. `how` is global, local, loop, context, attribute, class, item, entry, key,
    closure, default, cache, hook, frame, grad, graph, saved or inside; `name` is a name or key where there is one,
    `size` the container's length and `most` its bound."""

    __slots__ = ("parent", "how", "name", "of", "size", "most", "held")

    def __init__(
        self, parent: Hold | None, how: str, name: str = "", of: str = "", size: int = 0, most: int | None = None
    ):
        self.parent, self.how, self.name = parent, how, name
        self.of, self.size, self.most = of, size, most
        # The id of what is held; entries of a container share one hold, whose id says nothing.
        self.held = 0

    def edge(self) -> tuple[tuple[str, str, str], ...]:
        """The path as names alone, without lengths: the same in every walk. A chain of objects that hold each other
        (`.next.next.next`) is one link of it."""
        path = self.path()
        # Gradients of all modules of a model are told together.
        has_parts = not any(hold.how == "grad" for hold in path)
        steps = [
            # Lengths and keys of a dictionary change as it grows.
            (("part" if has_parts and hold.is_child else "entry") if hold.how == "item" else hold.how,
             "" if hold.how == "item" else hold.name, "" if hold.how == "graph" else hold.of)
            for hold in path
        ]  # fmt: skip
        return tuple(step for link, _ in folded(steps) for step in link)

    @property
    def is_child(self) -> bool:
        """Whether this is a module within a module: no entry of something that grows, so that what children hold under different
        names is told apart."""
        return self.how == "item" and self.parent is not None and self.parent.is_of("module") and self.parent.name == "_modules"

    def is_of(self, kind: str) -> bool:
        """Whether this is what a "module" or "optimizer" has its own by: other objects have a `state` or `_buffers` too."""
        return self.how == "attribute" and self.of == kind

    @property
    def is_optimizer_state(self) -> bool:
        """Whether this is the state that an optimizer has for its parameters."""
        return self.name == "state" and self.is_of("optimizer")

    def path(self) -> tuple[Hold, ...]:
        steps: list[Hold] = []
        hold: Hold | None = self
        while hold is not None:
            steps.append(hold)
            hold = hold.parent
        return tuple(reversed(steps))

    def words(self) -> str:
        if self.how == "global":
            return f"global `{self.name}`" if self.of == "__main__" else f"global `{self.name}` of {self.of}"
        if self.how in ("local", "frame"):
            kept = "" if self.how == "local" else "a kept frame's "
            return f"{kept}local `{self.name}` of {self.of}()"
        if self.how == "loop":
            return f"a running loop's {self.of}"
        if self.how == "entry":
            bound = f", bounded to {self.most}" if self.most is not None else ""
            return f"{self.of} of {self.size}{bound}"
        many = {"item": f"[{self.name}]", "attribute": f".{self.name}", "key": f"a key of a {self.of} of {self.size}"}
        many |= {"class": f"class attribute {self.of}.{self.name}", "default": f"a default of {self.of}()"}
        many |= {"context": f"context variable `{self.name}`"}
        many |= {"closure": f"closure variable `{self.name}` of {self.of}()", "hook": f"a hook ({self.of})"}
        many |= {"grad": ".grad", "graph": f"grad_fn {self.of}", "saved": f"{self.of}.{self.name}"}
        bound = f", bounded to {self.most}" if self.most is not None else ""
        many |= {"cache": f"memoised results of {self.of}(){bound}", "inside": f"inside a {self.of}"}
        return many[self.how]


def folded(steps: list[_T]) -> list[tuple[list[_T], int]]:
    """Steps that come again and again behind each other, once, and how often: a chain whose links are up to `LONGEST_LINK` steps
    long."""
    found = []
    at = 0
    while at < len(steps):
        length, times = 1, 1
        for length in range(1, LONGEST_LINK + 1):
            link, times = steps[at : at + length], 1
            while steps[at + times * length : at + (times + 1) * length] == link:
                times += 1
            if times > 1:
                break
        if times == 1:
            length = 1
        found.append((steps[at : at + length], times))
        at += length * times
    return found


class Walk:
    """Everything that is reachable by name. `on_object` is told each object with its hold once; where it answers True
    the walk does not look inside."""

    def __init__(self, skip: set[int], skip_edges: set[Any], on_object: Any):
        self.seen = set(skip)
        self._skip_edges = skip_edges
        self._skip_names = {edge[-1][1] for edge in skip_edges}
        self.on_object = on_object
        self.is_complete = True
        names = names_in(sys.modules.get("torch._ops"))
        self._leaves = {*_LEAVES, *(names[name] for name in _OPERATORS if name in names)}
        # How attributes are read, as the census behind the tensors does too.
        self.read = Attributes()
        self._keep: list[Any] = []
        self._queue: collections.deque[tuple[Any, Hold]] = collections.deque()
        # What is added when all of that is done: arguments that have names, then `*args` and `**kwargs`, which pass on many.
        self._arguments: collections.deque[tuple[Any, Hold]] = collections.deque()
        self._passed_on: collections.deque[tuple[Any, Hold]] = collections.deque()

    def close(self) -> None:
        self._keep.clear()
        self._queue.clear()
        self._arguments.clear()
        self._passed_on.clear()
        self.on_object = None
        self.read.forget()

    def add(self, value: Any, hold: Hold) -> None:
        if value is None or type(value) in self._leaves or id(value) in self.seen:
            return
        if self._skip_edges and self.is_skipped(hold):
            return
        hold.held = hold.held or id(value)
        self.seen.add(id(value))
        # Until the walk ends: an object that is freed meanwhile would give its id away.
        self._keep.append(value)
        self._queue.append((value, hold))

    def is_skipped(self, hold: Hold) -> bool:
        """Whether this walk is to find what others hold."""
        # As in an edge: keys of a dictionary are one.
        name = "" if hold.how == "item" else hold.name
        return name in self._skip_names and hold.edge() in self._skip_edges

    def user_globals(self) -> None:
        done: set[int] = set()
        for name, module in list(sys.modules.items()):
            if name == "__main__" or is_programs_module(name, module):
                names = names_in(module)
                # A module may have two names: `multiprocessing` gives the program's own a second.
                if id(names) not in done:
                    done.add(id(names))
                    self._names_of(names, name)

    def finalizers(self, wanted: type) -> None:
        """Arguments that `weakref.finalize` keeps for an object that lives: no name of the program leads to them. Only
        those of the wanted type and containers of it: the rest are libraries' own, of which PyTorch has hundreds."""
        registry = weakref.finalize._registry  # type: ignore[attr-defined]
        if id(registry) in self.seen:
            return
        self.seen.add(id(registry))
        hold = Hold(Hold(None, "global", "finalize", "weakref"), "class", "_registry", "finalize")
        hold.held = id(registry)
        entry = Hold(hold, "entry", "", "dict", len(registry))
        for kept in list(registry.values()):
            for argument in (*kept.args, *(kept.kwargs or {}).values()):
                inner = argument.values() if type(argument) is dict else argument
                entries = list(inner) if type(argument) in (list, tuple, dict) else [argument]
                if any(issubclass(type(one), wanted) for one in entries):
                    self.add(argument, Hold(entry, "attribute", "args"))

    def library_globals(self) -> None:
        """The same of everything that was imported: what a library caches is found here, slowly."""
        for name, module in list(sys.modules.items()):
            if type(module) is types.ModuleType and not name.startswith(__package__ or __name__):
                self._names_of(names_in(module), name)

    def _names_of(self, names: dict[str, Any], module: str) -> None:
        # Functions that the compiler has made have the dictionary too, and with it a module's loader.
        whole = Hold(None, "global", "__dict__", module)
        whole.held, is_passed_by = id(names), id(names) in self.seen
        self.seen.add(id(names))
        for name, value in list(names.items()):
            if type(name) is not str:
                # `globals()` or `vars(module)` taken for a dictionary of any keys.
                if not is_passed_by:
                    self.add(value, Hold(whole, "entry", "", "dict", len(names)))
            elif not (name.startswith("__") and name.endswith("__")):
                self.add(value, Hold(None, "global", name, module))

    def running_loops(self, loops: list[Any]) -> None:
        """Iterators of loops that go on: `for x in DataLoader(...)` gives them no name."""
        for iterator in loops:
            if iterator is not None:
                self.add(iterator, Hold(None, "loop", "", "loader"))

    def running_frames(self) -> None:
        """Callers come before what they call, and arguments that a caller of the program's has given after everything else: they
        are second names of what the caller holds by its own."""
        for frame in list(frames_of_threads().values()):
            frames: list[types.FrameType] = []
            walked: types.FrameType | None = frame
            while walked is not None:
                if is_user_code(walked.f_code):
                    frames.append(walked)
                walked = walked.f_back
            for depth, walked in enumerate(reversed(frames)):
                self._locals_of(walked, None, "local", *self._later(walked.f_code, is_called=depth > 0))
        # This frame is among them: a cycle that would keep every tensor seen until a collection.
        del frames, frame, walked

    def nameless_iterators(self) -> None:
        """The program's own generators that wait, and objects with `__next__`: `for x in batches()` gives them no name. It
        asks the collector for all objects there are, which is slow."""
        is_iterator: dict[type, bool] = {}
        for one in gc.get_objects():
            kind = type(one)
            if kind in _WAITING:
                frame = _frame_of_user(one)
                if frame is not None:
                    self.add(one, Hold(None, "loop", "", f"generator {frame.f_code.co_name}()"))
                continue
            if kind in _ITERATORS:
                self.add(one, Hold(None, "loop", "", kind.__name__))
                continue
            if kind not in is_iterator:
                is_iterator[kind] = self.read.is_iterator_of_user(kind)
            if is_iterator[kind]:
                self.add(one, Hold(None, "loop", "", kind.__name__))

    def context_variables(self) -> None:
        """What the running thread's `contextvars` are set to: neither their names nor their objects lead to it."""
        for variable, value in contextvars.copy_context().items():
            self.add(value, Hold(None, "context", variable.name))

    def traceback(self, traceback: types.TracebackType | None) -> None:
        while traceback is not None:
            if is_user_code(traceback.tb_frame.f_code):
                self._locals_of(traceback.tb_frame, None, "frame")
            traceback = traceback.tb_next

    def _later(self, code: types.CodeType, is_called: bool) -> tuple[_Later, ...]:
        """Which of a frame's locals come later, and where they go until then."""
        named = code.co_argcount + code.co_kwonlyargcount
        many = sum(bool(code.co_flags & flag) for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS))
        passed_on = (code.co_varnames[named : named + many], self._passed_on)
        return ((code.co_varnames[:named], self._arguments), passed_on) if is_called else (passed_on,)

    def _locals_of(self, frame: types.FrameType, parent: Hold | None, how: str, *later: _Later) -> None:
        is_cached = sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if is_cached and _asks_for_locals(frame.f_code, frame.f_globals):
            # The program may have this frame's dictionary, and reading it here would fill it anew.
            return
        names = frame.f_locals
        if names is frame.f_globals:
            return
        # `exec` takes mappings of any class, whose own code is not to run.
        items = _VIEW.items if type(names) is _VIEW else dict.items if issubclass(type(names), dict) else None
        # A list of them, as a view would be one more who has the dictionary.
        for name, value in list(items(names)) if items is not None else ():
            if type(name) is str:
                hold = Hold(parent, how, name, frame.f_code.co_name)
                waits_in = next((queue for names_of, queue in later if name in names_of), None)
                if waits_in is not None:
                    waits_in.append((value, hold))
                else:
                    self.add(value, hold)
        # Before 3.13 this dictionary is cached on the frame and would keep its values alive. Who else has it,
        # besides the frame, this name and the question, has got it from the frame.
        if is_cached and sys.getrefcount(names) <= 3:
            names.clear()

    def run(self) -> None:
        self._run()
        for later in (self._arguments, self._passed_on):
            while later:
                self.add(*later.popleft())
                self._run()

    def _run(self) -> None:
        while self._queue:
            if len(self.seen) > MOST_OBJECTS:
                self.is_complete = False
                self._queue.clear()
                return
            value, hold = self._queue.popleft()
            if not self.on_object(value, hold):
                self._inside(value, hold)

    def _inside(self, value: Any, hold: Hold) -> None:
        kind = type(value)
        if issubclass(kind, dict):
            self._mapping(value, hold)
        elif kind in _ENTRIES or issubclass(kind, tuple(_ENTRIES)):
            self._sequence(value, hold)
        elif kind is types.FunctionType:
            self._function(value, hold)
        elif kind is types.FrameType:
            if is_user_code(value.f_code):
                self._locals_of(value, hold, "frame")
            self.add(value.f_back, hold)
        elif kind is types.TracebackType:
            self.add(value.tb_frame, hold)
            self.add(value.tb_next, hold)
        elif kind in _WAITING and (frame := _frame_of_user(value)) is not None:
            self._locals_of(frame, hold, "local")
        elif kind is functools._lru_cache_wrapper:
            self._memoised(value, hold)
        elif issubclass(kind, type):
            self._class(value, hold)
        elif self.read.is_array(kind):
            # The collector knows nothing of arrays: one made of a tensor has it as its base.
            self.add(self.read.base(value), Hold(hold, "inside", "", kind.__name__))
            length, entries = self.read.entries(value)
            step = Hold(hold, "entry", "", kind.__name__, length)
            for entry in entries[-MOST_ENTRIES:]:
                self.add(entry, step)
            self.attributes(value, hold)
        else:
            self._instance(value, hold)

    def _mapping(self, value: Any, hold: Hold) -> None:
        entries, of = list(dict.items(value)), type(value).__name__
        length = len(entries)
        entry, at_key = Hold(hold, "entry", "", of, length), Hold(hold, "key", "", of, length)
        for key, item in entries[-MOST_ENTRIES:]:
            # Python refuses to write very large numbers.
            is_short = type(key) is str or (type(key) is int and key.bit_length() <= MOST_BITS)
            has_name = length <= NAMED_KEYS and is_short
            self.add(item, Hold(hold, "item", repr(key)[:40], of, length) if has_name else entry)
            # Parameters are no one's by being the keys of their state: it goes with them.
            if not hold.is_optimizer_state:
                self.add(key, at_key)
        if type(value) is not dict:
            self.attributes(value, hold)

    def _sequence(self, value: Any, hold: Hold) -> None:
        kind = type(value)
        base = kind if kind in _ENTRIES else next(base for base in _ENTRIES if issubclass(kind, base))
        entries = list(_ENTRIES[base](value))  # type: ignore[index, operator]
        most = collections.deque.maxlen.__get__(value) if base is collections.deque else None
        step = Hold(hold, "entry", "", kind.__name__, len(entries), most)
        for entry in entries[-MOST_ENTRIES:]:
            self.add(entry, step)
        if kind is not base:
            self.attributes(value, hold)

    def _function(self, function: types.FunctionType, hold: Hold) -> None:
        name = function.__code__.co_name
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                inner = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self.add(inner, Hold(hold, "closure", variable, name))
        for default in function.__defaults__ or ():
            self.add(default, Hold(hold, "default", "", name))
        for default in (function.__kwdefaults__ or {}).values():
            self.add(default, Hold(hold, "default", "", name))
        for attribute, item in list(function.__dict__.items()):
            self.add(item, Hold(hold, "attribute", str(attribute)))

    def _memoised(self, cached: Any, hold: Hold) -> None:
        wrapped = cached.__wrapped__ if "__wrapped__" in self.read.of(cached) else None
        name = getattr(wrapped, "__name__", "a function") if type(wrapped) is types.FunctionType else "a function"
        step = Hold(hold, "cache", "", name, cached.cache_info().currsize, cached.cache_info().maxsize)
        for item in gc.get_referents(cached):
            # The table of results holds them in records of its own.
            if type(item) is dict:
                for key, result in list(dict.items(item)):
                    self.add(result, step)
                    self.add(key, step)
            elif item is wrapped:
                self.add(item, Hold(hold, "attribute", "__wrapped__"))
            elif not isinstance(item, type):
                self.add(item, step)

    def _class(self, kind: type, hold: Hold) -> None:
        names = type.__dict__["__dict__"].__get__(kind)
        if not self.read.is_of_user(kind):
            return
        for name, value in list(names.items()):
            if name not in ("__dict__", "__weakref__"):
                self.add(value, Hold(hold, "class", name, kind.__name__))

    def _instance(self, value: Any, hold: Hold) -> None:
        named = self.attributes(value, hold)
        self._its_class(value, hold)
        referents = [inner for inner in gc.get_referents(value) if id(inner) not in named]
        if issubclass(type(value), threading.local):
            for names in names_of_threads(referents):
                self._attributes_in(names, hold)
        for inner in referents:
            if not issubclass(type(inner), type):
                # One for each: who else holds the same is looked for without the one that is named.
                self.add(inner, Hold(hold, "inside", "", type(value).__name__))

    def _its_class(self, value: Any, hold: Hold) -> None:
        for kind in type.__dict__["__mro__"].__get__(type(value)):
            if id(kind) not in self.seen and self.read.is_of_user(kind):
                self.add(kind, Hold(None, "global", kind.__name__, "__main__"))

    def attributes(self, value: Any, hold: Hold) -> set[int]:
        """Goes on with what an object holds under names, and gives back whose ids those are: the collector tells of them
        too."""
        names = self.read.of(value)
        named = set(map(id, dict.values(names)))
        if named:
            self._attributes_in(names, hold)
        for name, slot in self.read.slots(type(value)):
            try:
                inner = slot.__get__(value)
            except AttributeError:  # not assigned
                continue
            named.add(id(inner))
            self.add(inner, Hold(hold, "attribute", name))
        return named

    def _attributes_in(self, names: dict[str, Any], hold: Hold) -> None:
        # Known under their own names; the dictionary itself is no step of the path.
        self.seen.add(id(names))
        kind = next((kind for kind, own in _OWN.items() if dict.keys(names) >= own), "")
        own = _OWN.get(kind, ())
        for name, item in list(dict.items(names)):
            # A key of another type may have words of its own.
            said = name if type(name) is str else type(name).__name__
            self.add(item, Hold(hold, "attribute", said, kind if said in own else ""))


def _frame_of_user(waiting: Any) -> types.FrameType | None:
    """The frame of a generator or coroutine of the program's own that has not ended."""
    frame, code = _WAITING[type(waiting)]
    return frame.__get__(waiting) if is_user_code(code.__get__(waiting)) else None


def _asks_for_locals(code: types.CodeType, names: dict[str, Any]) -> bool:
    """Whether a function uses one of those; `names` are the globals, where the program may have others of the same name."""
    if _ASKS_FOR_LOCALS.isdisjoint(code.co_names):
        return False
    known = _asking.get(code)
    if known is None:
        # The same words are names of methods too: `model.eval()`.
        loads = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "PUSH_NULL")]
        known = _asking[code] = frozenset(
            one.argval
            for one, after in itertools.zip_longest(loads, loads[1:])
            if one.opname in ("LOAD_GLOBAL", "LOAD_NAME") and one.argval in _ASKS_FOR_LOCALS
            if one.argval != "vars" or (after is not None and after.opname in _CALLS and after.argval == 0)
        )
    return any(name not in names for name in known)


_CALLS = ("CALL", "PRECALL", "CALL_FUNCTION")
