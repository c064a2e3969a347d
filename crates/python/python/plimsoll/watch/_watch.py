"""A watch within a program: a context manager, a decorator, an assertion, and the marks `step()` and `epoch()`. The
command is `_command.py`; what both run is `_session.py`, which is imported when a watch begins, as it needs
PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable

from ._decorator import Decorator
from ._excluded import Excluded
from ._findings import Finding

if TYPE_CHECKING:
    from ._session import Session

_running: list[Session] = []
# The command's, which a watch of the program's own joins.
_joinable: list[Session] = []


class LeakError(AssertionError):
    """What a watch found, as an error; its message is the report."""


class Watch(Decorator):
    """Watches the block or function; `findings` and `text()` can be read during and after it.

    With `error_on_leak` the end of the block raises `LeakError` if something leaks. `exclude` takes growth that is
    wanted: tensors, lines (`"train.py:17"`) and names on the holder's path (`"replay"`). With `live` it can be looked at
    with `plimsoll top` meanwhile. Under the command it joins the watch that is on: what grew before the block is told too, and
    `plimsoll top` needs the command's `--live`.
    """

    def __init__(self, error_on_leak: bool = False, exclude: Iterable[Any] = (), live: bool = False):
        self.error_on_leak = error_on_leak
        self.live = live
        # For every use: a decorated function is watched at each call. Tensors are told by their storages, weakly.
        self._excluded = Excluded(exclude)
        self._session: Session | None = None
        self._has_joined = False
        # What was found when the block ended, and the report in words and for programs, where its watch goes on.
        self._found: list[Finding] | None = None
        self._told: tuple[str, str] | None = None

    def __enter__(self) -> Watch:
        try:
            from ._session import Session
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] != "torch":
                raise
            said = "watch: it watches PyTorch's tensors, and PyTorch is not installed here; use plimsoll.LeakWatch() for Plimsoll's"
            raise RuntimeError(said) from missing

        may_join = bool(_joinable) and _joinable[-1].is_ours
        if not may_join and running() is not None:
            # Nothing of this one is touched: it may be the one that is on.
            raise RuntimeError("watch: another watch is on; leave it first, there is one at a time")
        self._found = self._told = None
        self._has_joined = may_join
        if may_join:
            self._session = _joinable.pop()
            self._session.take_in(self._excluded)
            return self
        session = Session()
        session.excluded = self._excluded
        if self.live:
            session.serve_live()
        self._session = session
        _running.append(session)
        session.start()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        from ._render import as_json, text

        if self._session is not None:
            if not self._has_joined:
                _running.clear()
                self._session.stop()
            elif self._found is None:
                _joinable.append(self._session)
                self._found = self._session.let_go(self._excluded)
                self._told = (text(self._session, True), as_json(self._session, True))
            if error is None and self.error_on_leak and self.verdicts:
                raise LeakError(self.text())

    def exclude(self, *what: Any) -> None:
        """More growth that is wanted."""
        self._excluded.add(what)

    def step(self) -> None:
        """Ends a step, as `plimsoll.watch.step()` does."""
        step()

    @property
    def findings(self) -> list[Finding]:
        """What grows so far, the largest first; after the block the verdicts and the notes."""
        if self._found is not None:
            return self._found
        return self._session.findings if self._session is not None else []

    @property
    def verdicts(self) -> list[Finding]:
        """The findings that count: what had grown for long enough when the block ended."""
        return [finding for finding in self.findings if finding.is_verdict and not finding.is_note]

    def text(self) -> str:
        """The report as the command prints it."""
        from ._render import text

        if self._told is not None:
            return self._told[0]
        return text(self._session, not self._session.is_running) if self._session is not None else "watch: not begun\n"

    def snapshot(self, path: str) -> None:
        """Writes what is alive now, or, after the block, what was at its latest look: a file for `plimsoll report` and
        `view`, JSON if its name says so."""
        session = self._session
        if session is None:
            raise RuntimeError("watch: not begun, there is nothing to write")
        session.looks.keeps_snapshot = True
        if session.is_running:
            session.look_now()
        with open(path, "wb") as file:
            file.write(session.looks.take_snapshot().written(path))

    def json(self) -> str:
        """The report for programs."""
        from ._render import as_json

        if self._told is not None:
            return self._told[1]
        return as_json(self._session, not self._session.is_running) if self._session is not None else "{}\n"


def watch(*, error_on_leak: bool = False, exclude: Iterable[Any] = (), live: bool = False) -> Watch:
    """A watch for a `with` block or a function; also called as `plimsoll.watch()`."""
    return Watch(error_on_leak, exclude, live)


def running() -> Session | None:
    """The watch that is on. One that was on where this process was forked is the other's."""
    if _running and not _running[-1].is_ours:
        _running.clear()
        _joinable.clear()
    return _running[-1] if _running else None


def begin(session: Session) -> None:
    """Makes the command's session the one that `step()` speaks to, and that a watch of the program's own joins."""
    _running.append(session)
    _joinable.append(session)


def step() -> None:
    """Ends a step, for loops without optimizer, loader or module; it then tells steps alone. Without a watch it does
    nothing, so a program may keep it."""
    session = running()
    if session is not None:
        from ._steps import EXPLICIT

        session.steps.tick(EXPLICIT, "step()")


def epoch() -> None:
    """Ends an epoch where no loader tells one."""
    session = running()
    if session is not None:
        session.steps.epoch()
        session.steps.on_pass_end()


def assert_no_leak(function: Callable[[], Any], steps: int = 30, *, exclude: Iterable[Any] = ()) -> None:
    """Calls `function` as often as told, a step each, and raises `LeakError` if something grows."""
    with Watch(error_on_leak=True, exclude=exclude):
        for _ in range(steps):
            function()
            step()
