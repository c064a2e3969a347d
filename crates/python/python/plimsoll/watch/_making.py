"""Where and in which step each storage was made, noted while a window is open. A dispatch mode sees every operation
of PyTorch; that costs about 13 us each, so windows are short and grow rarer. This is the slower way: it needs no
native code and works on every device. Rows are weak: a storage lives as long as it would without them. `_growth.py`
judges the rows."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import Any, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, _get_current_dispatch_mode_stack

from ._attributes import is_passed_on
from ._errors import is_an_answer, is_programs_own, let_go_of_frames
from ._frames import frames_of_threads
from ._places import Place, place_of
from ._uncompiled import leave_alone

# Steps that are noted at a time while the run is young or something stays, and the longest pause.
# In the steady state one step is noted after each pause; a whole window follows only if something
# of it stays. A leak that starts late is named before 100 steps are over: the pause, the noted
# step and those it must outlive, and a window with those.
WINDOW_STEPS = 6
SAMPLE_STEPS = 1
LONGEST_PAUSE = 72
# Rows beyond it are not noted, so that the watch's own memory is bounded.
MOST_ROWS = 200_000
# Noted steps that are judged, and rows a line that are kept from before.
MOST_NOTED = 240
KEPT_OLD_ROWS = 16
# Sums that are followed; the weights that an optimizer adds to are larger.
MOST_SUM_BYTES = 4096
_ADD_IN_PLACE = torch.ops.aten.add_.Tensor
_JOIN = torch.ops.aten.cat.default
_COPY_INTO = torch.ops.aten.copy_.default
_COPIES = {torch.ops.aten.clone.default, torch.ops.aten._to_copy.default}
_OPERATOR = type(_JOIN)
_uses = getattr(torch._C, "_storage_Use_Count", None)
_WithoutFunctions = torch._C.DisableTorchFunction
# Where the compiler's calls are, and whose they are.
_COMPILER = os.path.join(os.path.dirname(torch.__file__), "_dynamo", "eval_frame.py")
_CALL = "_TorchDynamoContext."
# What sparse tensors consist of, by layout.
_T = torch.Tensor
_PARTS: dict[Any, tuple[Any, ...]] = {torch.sparse_coo: (_T._indices, _T._values)}
_PARTS |= dict.fromkeys((torch.sparse_csr, torch.sparse_bsr), (_T.crow_indices, _T.col_indices, _T.values))
_PARTS |= dict.fromkeys((torch.sparse_csc, torch.sparse_bsc), (_T.ccol_indices, _T.row_indices, _T.values))
# By these the dispatcher knows that a mode is on; an older PyTorch may not name them.
_MODE_KEYS = [getattr(torch._C.DispatchKey, name, None) for name in ("Python", "PythonTLSSnapshot")]


# Its functions look at storages that exist through tensors of their own; what they make is seen
# when a tensor takes it up.
_STORAGES = torch.storage.__file__


class Row:
    """One storage that was seen being made."""

    __slots__ = ("weak", "key", "bytes", "place", "step", "epoch", "phase", "is_copy")

    def __init__(
        self, storage: torch.UntypedStorage, nbytes: int, place: Place | None, step: int, epoch: int, phase: str = ""
    ):
        # PyTorch's own weak reference has a `__del__` in Python, in which an error that the program's handler of a
        # signal raises would be lost.
        self.weak = weakref.ref(storage)
        self.key = storage._cdata
        self.bytes = nbytes
        self.place = place
        self.step = step
        # The epoch after which it was made, before the next one began; 0 within steps.
        self.epoch = epoch
        # Where phases are followed.
        self.phase = phase
        # Whether it was copied from what an earlier step has made.
        self.is_copy = False

    def is_alive(self) -> bool:
        return living(self.weak) is not None


def living(weak: weakref.ref[Any]) -> Any:
    """The storage, if it lives. In an older PyTorch (2.4) its object may be there for longer: as long as others, such as the
    loaders' cache of shared memory, have weak references of PyTorch's own."""
    storage = weak()
    return storage if storage is not None and (_uses is None or _uses(storage._cdata) > 0) else None


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """The storage behind a tensor if it has bytes: wrappers, sparse and meta tensors have none of their own."""
    try:
        # PyTorch's own, and no subclass or mode of the program's is asked: either may define it otherwise.
        with _WithoutFunctions():
            storage = torch.Tensor.untyped_storage(tensor)
        return storage if has_bytes(storage) else None
    except RuntimeError as error:
        if not is_an_answer(error):
            raise
        return None


def has_bytes(storage: torch.UntypedStorage) -> bool:
    # A fake tensor says another device than its storage.
    return bool(storage.nbytes()) and storage.device.type != "meta"


def parts_of_sparse(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that a sparse tensor consists of, which have storages; of others none. Neither autograd nor a mode of the
    program hears of the question."""
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        return []
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch._C._AutoDispatchBelowAutograd():
        try:
            return [of(tensor) for of in _PARTS.get(torch.Tensor.layout.__get__(tensor), ())]
        except RuntimeError as error:  # within `torch.func`, whose wrappers are of this type too
            if not is_an_answer(error):
                raise
            return []


def address_of(storage: torch.UntypedStorage) -> tuple[str, int] | None:
    """The device and address of a storage that has bytes."""
    try:
        return str(storage.device), storage.data_ptr()
    except RuntimeError as error:  # a storage without an address: a fake tensor's
        if not is_an_answer(error):
            raise
        return None


class _Noting(TorchDispatchMode):  # type: ignore[misc]
    """Notes what operations return and otherwise does nothing."""

    supports_higher_order_operators = True

    def __init__(self, making: Making):
        super().__init__()
        self.making = making

    # Wrapping the method for the compiler would import all of it, which takes 1.6 s.
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    # What is compiled stays compiled while a window is open.
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        making = self.making
        makes = making.makes.get(func)
        if makes is None:
            makes = making.learn(func)
        try:
            # What tensors and modes of the program have for functions was asked before the operation came here. In
            # operators of its own, and in those of its classes, its code may run, and finds them on where it does alone.
            if (making.foreign and func in making.foreign) or (types and all(map(is_passed_on, types))):
                result = func(*args, **kwargs) if kwargs else func(*args)
            else:
                with _WithoutFunctions():
                    result = func._op(*args, **kwargs) if kwargs else func._op(*args)
        except BaseException as error:
            if making.on_error is not None and isinstance(error, (RuntimeError, MemoryError)):
                making.on_error(error)
            # Who keeps the error keeps this frame.
            args = kwargs = None
            raise
        # Half of the operations make nothing, and this is all that they pay.
        if making.is_noting and (makes or func is _ADD_IN_PLACE or func is _COPY_INTO):
            try:
                # On the threads of a device's backward there is no frame below.
                making.note(func, result, sys._getframe().f_back, args, makes)
            except BaseException as error:  # the program goes on whatever happens here
                if not isinstance(error, Exception) or is_programs_own(error):
                    # Who keeps the error of a handler keeps these frames.
                    let_go_of_frames(error)
                    args = kwargs = result = None
                    raise
                making.is_noting = False
                making.trouble = f"noting stopped: {type(error).__name__}: {error}"
        return result


leave_alone(torch, _Noting.__torch_dispatch__, and_calls=False)


class Making:
    """The rows, and the windows in which they are noted."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.noted: list[int] = []
        self.noted_epochs: list[int] = []
        self.is_noting = False
        self.step = 0
        self.epoch = 0
        self.phase = ""
        # Is told errors of noted operations, and tensors that are joined with the rows of their parts.
        self.on_error: Any = None
        self.on_join: Any = None
        self.full = False
        self.trouble: str | None = None
        # Why the latest window could not be opened; `is_elsewhere` if another thread has it.
        self.refused = ""
        self.is_elsewhere = False
        self._mode: _Noting | None = None
        self._thread = 0
        # Whether operations outside `inference_mode()` come to the mode: leaving such a block puts back
        # what the dispatcher was told before it.
        self._is_outside = False
        # Small storages that were added to in place: a running sum is made once, before any window.
        self.added_to: dict[int, Row] = {}
        # Storages that something of an earlier step was copied into before a tensor took them up, in this step.
        self._copied_into: set[int] = set()
        # Whether an operation can make memory, of those that were met.
        self.makes: dict[Any, bool] = {}
        # Those of them that are not PyTorch's own.
        self.foreign: set[Any] = set()
        self._since = 0
        self.is_between = False

    def learn(self, func: Any) -> bool:
        """Whether an operation can make memory, when it is met for the first time."""
        if type(func) is not _OPERATOR or func.namespace != "aten":
            self.foreign.add(func)
        makes = self.makes[func] = _makes_memory(func)
        return makes

    def note(self, func: Any, result: Any, frame: Any, args: Any, makes: bool) -> None:
        if func is _ADD_IN_PLACE:
            self._note_sum(result, frame)
        elif func is _COPY_INTO:
            self._note_copy(args)
        if not makes or (frame is not None and frame.f_code.co_filename == _STORAGES):
            return
        place: Place | None = None
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = storage_of(tensor)
            if storage is None:
                parts = parts_of_sparse(tensor)
                if parts:
                    self.note(func, parts, frame, args, makes)
                continue
            known = self.rows.get(storage._cdata)
            if known is not None and known.is_alive():
                continue
            if len(self.rows) >= MOST_ROWS:
                self.full = True
                return
            place = place or place_of(frame)
            row = Row(storage, storage.nbytes(), place, self.step, self.epoch, self.phase)
            # Before the row: a part that has died meanwhile may have had its address.
            if func is _JOIN and args and self.on_join is not None:
                self.on_join(row, self._rows_of(args[0]))
            row.is_copy = row.key in self._copied_into or (func in _COPIES and self._is_of_earlier_step(args[0]))
            self.rows[row.key] = row

    def _rows_of(self, tensors: Any) -> list[Row]:
        storages = (storage_of(tensor) for tensor in tensors)
        rows = (self.rows.get(storage._cdata) for storage in storages if storage is not None)
        return [row for row in rows if row is not None and row.is_alive()]

    def _is_of_earlier_step(self, tensor: torch.Tensor) -> bool:
        return any(row.step < self.step for row in self._rows_of([tensor]))

    def _note_copy(self, args: Any) -> None:
        storage = storage_of(args[0])
        known = self.rows.get(storage._cdata) if storage is not None else None
        # An address may have the row of a storage that is gone.
        if storage is not None and (known is None or not known.is_alive()) and self._is_of_earlier_step(args[1]):
            self._copied_into.add(storage._cdata)

    def _note_sum(self, result: Any, frame: Any) -> None:
        storage = storage_of(result)
        if storage is not None and storage.nbytes() <= MOST_SUM_BYTES and storage._cdata not in self.rows:
            self.added_to[storage._cdata] = Row(storage, storage.nbytes(), place_of(frame), self.step, self.epoch)

    def place_of_key(self, key: int) -> Place | None:
        """The line that made a storage, or that adds to it."""
        row = self.rows.get(key) or self.added_to.get(key)
        return row.place if row is not None and row.is_alive() else None

    @property
    def window(self) -> int:
        """The step at whose beginning the window was opened."""
        return self._since

    @property
    def is_open(self) -> bool:
        return self._mode is not None

    def open(self) -> bool:
        """Opens a window on this thread, unless the program has a dispatch mode of its own on: modes are a stack, and
        the program's must come off first."""
        if self._mode is not None and not self._is_on():
            # It was put on in backward, which puts the stack back afterwards, or in a thread that has ended.
            self._mode = None
        self.is_elsewhere = self._mode is not None and not self.is_here
        if self.is_elsewhere:
            self.refused = "a window is open in another thread: lines of this one are not noted"
            return False
        if self._mode is not None:
            self.is_noting, self._since, self.refused = True, self.step, ""
            return True
        if _get_current_dispatch_mode() is not None:
            self.refused = "the program has a dispatch mode of its own on: lines are not noted under it"
            return False
        if _graph_task() >= 0:
            self.refused = "steps ended within backward, where noting cannot begin: lines may be missing"
            return False
        if _is_in_compiled_call():
            self.refused = "steps ended within a compiled function, where noting cannot begin: lines may be missing"
            return False
        mode = _Noting(self)
        try:
            mode.__enter__()
        except BaseException as error:  # an internal interface of PyTorch has changed
            if any(one is mode for one in _get_current_dispatch_mode_stack()):
                mode.__exit__(None, None, None)
            if not isinstance(error, Exception) or is_programs_own(error):
                raise
            self.trouble = f"windows cannot be opened in this PyTorch: {error}"
            return False
        self._mode, self._thread = mode, threading.get_ident()
        self._is_outside = not torch.is_inference_mode_enabled()
        self.is_noting, self._since, self.refused = True, self.step, ""
        return True

    @property
    def is_here(self) -> bool:
        """Whether it is this thread in which the window is open."""
        return self._mode is not None and self._thread == threading.get_ident()

    def _is_on(self) -> bool:
        """Whether the mode is still on: in this thread, or in another one that goes on, which alone can take it off."""
        if self._thread != threading.get_ident():
            return self._thread in frames_of_threads()
        return any(one is self._mode for one in _get_current_dispatch_mode_stack())

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A block in which nothing is noted."""
        was_noting, self.is_noting = self.is_noting, False
        try:
            yield
        finally:
            self.is_noting = was_noting

    def be_heard(self) -> None:
        """A mode that was put on in a block of `inference_mode()` is not asked after it: tells the dispatcher again."""
        if self._mode is None or self._thread != threading.get_ident() or None in _MODE_KEYS:
            return
        # Without a mode on the stack the dispatcher would fail.
        if _get_current_dispatch_mode() is not self._mode:
            return
        if not torch._C._dispatch_tls_is_dispatch_key_included(_MODE_KEYS[0]):
            for key in _MODE_KEYS:
                torch._C._dispatch_tls_set_dispatch_key_included(key, True)
            self._is_outside = not torch.is_inference_mode_enabled()

    def close(self) -> None:
        """Stops noting, and takes the mode off if it is on top of this thread's stack; otherwise it idles until it
        is."""
        self.is_noting = False
        if self._mode is None or self._thread != threading.get_ident():
            return
        if self._is_outside and torch.is_inference_mode_enabled():
            # The end of the block would ask the dispatcher for a mode that is gone, which is an error.
            return
        if _get_current_dispatch_mode() is self._mode and not _is_in_compiled_call():
            self._mode.__exit__(None, None, None)
            self._mode = None

    def pass_ended(self, epoch: int) -> None:
        """A loader has run out: what is made until the next batch belongs to the epoch, not to a step."""
        self.epoch = epoch
        if not self.is_noting:
            self.is_between = self.open()
        if self.is_noting and self.noted_epochs[-1:] != [epoch]:
            self.noted_epochs.append(epoch)
            del self.noted_epochs[:-MOST_NOTED]

    def pass_begun(self) -> None:
        self.epoch = 0
        if self.is_between:
            self.is_between = False
            self.close()

    def tick(self, step: int) -> None:
        """A step has ended: it was noted if the window was open all through it."""
        self.pass_begun()
        if self.is_noting:
            self.be_heard()
        if self.is_noting and not self.is_here:
            # Another thread has ended this step: that of the window's own goes on.
            return
        self._copied_into.clear()
        if self.is_noting and self._since < step:
            self.noted.append(self.step)
            if len(self.noted) > 2 * MOST_NOTED:
                self._forget_old()
        elif self._mode is not None and not self.is_noting:
            self.close()
        self.step = step

    def _forget_old(self) -> None:
        """A long run is judged by its latest windows. Of older rows a few a line are kept: when they die, they tell
        how long the line keeps things."""
        del self.noted[:-MOST_NOTED]
        old = [row for row in self.rows.values() if row.step < self.noted[0]]
        kept = {row.key for row in _oldest_of_each_line(old)}
        for row in old:
            if row.key not in kept:
                del self.rows[row.key]

    def prune(self) -> list[Row]:
        """Forgets rows whose storages are gone, and gives back those."""
        gone = [row for row in list(self.rows.values()) if not row.is_alive()]
        for row in gone:
            del self.rows[row.key]
        for row in [row for row in list(self.added_to.values()) if not row.is_alive()]:
            del self.added_to[row.key]
        if gone:
            self.full = False
        return gone


for _part in (Making.learn, Making.note):
    leave_alone(torch, _part)


def _graph_task() -> int:
    """The number of the backward pass that runs in this thread; negative if none does."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task() if task is not None else -1


def _is_in_compiled_call() -> bool:
    """Whether this is within a call of what `torch.compile` has made. At its end it puts back what the dispatcher was told before
    it: of a mode that has come within it nothing is known then, and one that has gone is asked for, which is an error."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (frame.f_code.co_filename == _COMPILER and _name_of(frame.f_code).startswith(_CALL)):
        frame = frame.f_back
    return frame is not None


def _name_of(code: CodeType) -> str:
    # Before Python 3.11 a function does not know its class: uncompiled blocks look alike.
    return getattr(code, "co_qualname", _CALL)


def _oldest_of_each_line(rows: list[Row]) -> list[Row]:
    kept: dict[Place | None, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.step):
        of = kept.setdefault(row.place, [])
        if len(of) < KEPT_OLD_ROWS:
            of.append(row)
    return [row for of in kept.values() for row in of]


def _makes_memory(func: Any) -> bool:
    """Views and in-place operations make no memory; what has no schema may. Two take up storages that were made outside
    operations: copies of a storage (`copy.deepcopy`) and Python's own data (`torch.tensor`)."""
    schema = getattr(func, "_schema", None)
    if schema is None or schema.name in ("aten::set_", "aten::lift_fresh"):
        return True
    return any(result.alias_info is None for result in schema.returns)
