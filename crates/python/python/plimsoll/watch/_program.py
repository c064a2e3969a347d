"""Runs somebody's program as if Python had been started with it: its `__main__`, arguments, search path, tracebacks
and exit status are what they would be. It knows nothing of watching."""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import runpy
import sys
import types
from typing import Any, Callable, NoReturn

from ._passing import FILE

_HERE = os.path.dirname(os.path.abspath(__file__))


class Program:
    """A script, a folder or archive with a `__main__`, or a module. `run` runs it, `leave` ends the process as it
    would have."""

    def __init__(self, module: str | None, arguments: list[str], here: str = _HERE):
        """`here` is the folder whose frames tracebacks leave out."""
        self._ours = (_HERE, here, FILE)
        self.module = module
        self.arguments = arguments
        self._error: BaseException | None = None
        # Whether it ends by `os._exit`, after which nothing more runs.
        self.is_leaving = False

    def run(self, at_end: Callable[[BaseException | None], int | None]) -> None:
        """Runs it to its end, however that comes, then calls `at_end` with the error that ended it, if one did: also
        where the program calls `os._exit`. What `at_end` gives is the status of one that leaves so and has succeeded."""
        leave, pid = os._exit, os.getpid()

        def leave_after_report(status: int) -> NoReturn:
            if os.getpid() == pid:
                self.is_leaving = True
                instead = at_end(None)
                # What is no number `os._exit` refuses itself.
                status = instead if instead and type(status) is int and not status else status
            leave(status)

        os._exit = leave_after_report
        try:
            self._execute()
        except BaseException as error:  # noqa: B036 - it is told or raised again in `leave`
            self._error = error
        finally:
            at_end(self._error)
            os._exit = leave

    def _execute(self) -> None:
        if self.module is not None:
            sys.argv = [self.module, *self.arguments]
            sys.path[0] = os.getcwd()
            try:
                # `alter_sys` makes it the `__main__` that pickles and worker processes refer to.
                runpy.run_module(self.module, run_name="__main__", alter_sys=True)
            except ImportError as error:
                if not _is_of_search(error):
                    raise
                # Python has no traceback for a module that is not there, and says it so.
                raise SystemExit(f"{sys.executable}: {error}") from None
            return
        sys.argv = list(self.arguments)
        path = self.arguments[0]
        if os.path.isdir(path) or not _is_source(path):
            # As Python does: it stays right if the program changes its folder.
            sys.path[0] = os.path.abspath(path)
            runpy.run_path(path, run_name="__main__")
            return
        sys.path[0] = os.path.dirname(os.path.realpath(path))
        # As Python has it: with the `..` that are in it.
        path = os.path.join(os.getcwd(), path)
        with io.open_code(path) as file:
            source = file.read()
        main = types.ModuleType("__main__")
        names = vars(main)
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        # In `__main__` it is the module itself, elsewhere the module's dictionary.
        names.update(__file__=path, __loader__=loader, __builtins__=builtins, __annotations__={})
        if sys.version_info < (3, 15):
            names["__cached__"] = None
        sys.modules["__main__"] = main
        exec(compile(source, path, "exec", dont_inherit=True), names)

    def forgive(self) -> None:
        """Lets it end as if it had succeeded."""
        self._error = None

    def leave(self, status: int, close: Callable[[], None] = lambda: None) -> NoReturn:
        """Ends as the program would have; `status` counts only if it succeeded. `close` is called last, after the
        traceback."""
        error, self._error = self._error, None
        if error is None:
            close()
            sys.exit(status)
        if isinstance(error, SystemExit):
            if isinstance(error.code, (int, type(None))):
                close()
                sys.exit(error.code or status)
            _say(error.code)
            _say("\n")
            close()
            sys.exit(1)
        _leave_out(error, self._ours, set())
        # As Python does: what is called at the end may ask for it, and the frames live until then.
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if sys.version_info >= (3, 12):
            sys.last_exc = error
        try:
            self._tell(error)
        finally:
            close()
        if isinstance(error, KeyboardInterrupt):
            # Python waits for threads, calls what is to be called at the end, and ends by the signal itself, so that a shell sees
            # it. The traceback is told already.
            sys.excepthook = lambda *_: None
            raise error
        sys.exit(1)

    def _tell(self, error: BaseException) -> None:
        """By the program's own hook, and as Python does where that fails."""
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except SystemExit:
            raise
        except BaseException as failed:
            _leave_out(failed, self._ours, set())
            for said, one in (("Error in sys.excepthook:\n", failed), ("\nOriginal exception was:\n", error)):
                _say(said)
                sys.__excepthook__(type(one), one, one.__traceback__)


def _say(text: Any) -> None:
    """As Python says something at the very end, also where the program has taken its standard error away."""
    stream = sys.stderr if sys.stderr is not None else sys.__stderr__
    if stream is not None:
        # The stream may be closed, and a program's own object fail when it is asked for its text: Python goes on.
        with contextlib.suppress(Exception):
            stream.write(str(text))


def _is_source(path: str) -> bool:
    """Archives are told by their first bytes, compiled files by their names."""
    try:
        with open(path, "rb") as file:
            return file.read(2) != b"PK" and not path.endswith(".pyc")
    except OSError:
        missing = f"can't open file {os.path.abspath(path)!r}: [Errno 2] No such file or directory"
        print(f"{sys.executable}: {missing}", file=sys.stderr)
        raise SystemExit(2) from None


def _is_of_search(error: ImportError) -> bool:
    """Whether the module itself was not found: no line of anybody's has run."""
    traceback = error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not (name.startswith((_HERE, "<frozen")) or name == runpy.__file__):
            return False
        traceback = traceback.tb_next
    return True


def _leave_out(error: BaseException | None, ours: tuple[str, ...], done: set[int]) -> None:
    """Takes us out of the tracebacks of an error and of those that it came of: all are printed."""
    while error is not None and id(error) not in done:
        done.add(id(error))
        error.__traceback__ = _own_frames(error.__traceback__, ours)
        _leave_out(error.__cause__, ours, done)
        if sys.version_info >= (3, 11) and isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                _leave_out(one, ours, done)
        error = error.__context__


def _own_frames(traceback: types.TracebackType | None, ours: tuple[str, ...]) -> types.TracebackType | None:
    """The traceback as it is without us: from the program's first frame on, and without the call that goes through us
    while operations are noted."""
    kept: list[types.TracebackType] = []
    was_ours = False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        is_ours = code.co_filename.startswith(ours)
        is_start = not kept and "runpy" in code.co_filename
        is_call = was_ours and code.co_name == "__call__" and code.co_filename.endswith("_ops.py")
        if not (is_ours or is_start or is_call):
            kept.append(traceback)
        was_ours = is_ours
        traceback = traceback.tb_next
    after: types.TracebackType | None = None
    for one in reversed(kept):
        after = types.TracebackType(after, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return after


class _Hook(importlib.abc.MetaPathFinder):
    """Finds a module as the other finders do, and calls back once it is there."""

    def __init__(self, name: str, call: Callable[[], None]):
        self.name, self.call = name, call
        self._is_asking = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name or self._is_asking:
            return None
        # The others are asked as if this one were not there. It stays: who asks for a spec may only want to know whether
        # the module is installed.
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_asking = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_call(module: types.ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.call()

        spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


def import_hook(name: str, call: Callable[[], None]) -> None:
    """Calls `call` when the program has imported `name`. Importing it ourselves would come before what a program sets
    first (environment variables, a start method)."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Hook(name, call))
