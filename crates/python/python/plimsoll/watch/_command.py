"""The command: reads its options, runs the program with a watch on, and reports to standard error. How a program is
run as if the watch were not there is `_program.py`."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import threading
from typing import Any, NoReturn

from ._program import Program, import_hook

FOUND_LEAK = 3
# From one line of figures to the next.
LIVE_SECONDS = 10.0
# Where standard error is kept open besides.
HIGH_DESCRIPTOR = 255


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="plimsoll watch",
        description="Run a PyTorch program and say what grows: the line, the kind, the holder, the remedy.",
        allow_abbrev=False,
    )
    parser.add_argument("--format", choices=["text", "json", "html"], default="text", help="how to write the report")
    parser.add_argument("--output", metavar="FILE", help="write the report there instead of standard error")
    parser.add_argument("--fail", action="store_true", help=f"exit with {FOUND_LEAK} if the program leaks")
    parser.add_argument("--every", type=_count, metavar="STEPS", help="also say what grows so far, every so many steps")
    parser.add_argument(
        "--live",
        type=_seconds,
        nargs="?",
        const=LIVE_SECONDS,
        metavar="SECONDS",
        help="let `plimsoll top` look at the program, and write a line of figures every so many seconds "
        "(--live=SECONDS, default %(const)g; 0 writes none)",
    )
    parser.add_argument("--on-oom", metavar="FILE", help="write what is alive there whenever memory runs out")
    parser.add_argument(
        "--snapshot", metavar="FILE", help="write what was alive at the latest look there, for `plimsoll report` and `view`"
    )
    parser.add_argument("--phases", action="store_true", help="also say in which phase of a step what grows is made")
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="WHAT", help="a line (train.py:17) or a name whose growth is wanted"
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module as `python -m` does")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its own arguments")
    # What follows the program or the module is the program's, even if it looks like an option of ours.
    ours, theirs = divide(arguments, {"--format", "--output", "--every", "--exclude", "--on-oom", "--snapshot"})
    options = parser.parse_args(ours)
    options.program = theirs
    for file in ("output", "snapshot", "on_oom"):
        # Of the folder in which it is asked for: a program may go to another.
        if getattr(options, file):
            setattr(options, file, os.path.abspath(getattr(options, file)))
    if not options.module and not options.program:
        parser.error("name a program to watch, or a module with -m")
    return options


def divide(arguments: list[str], with_value: set[str]) -> tuple[list[str], list[str]]:
    """The command's own arguments, up to the module's name, and what is the program's. `with_value` are the options
    that take the next argument."""
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument == "-m":
            return arguments[: at + 2], arguments[at + 2 :]
        if argument.startswith("-m") and not argument.startswith("--"):
            return arguments[: at + 1], arguments[at + 1 :]
        if argument == "--":
            return arguments[:at], arguments[at + 1 :]
        if not argument.startswith("-"):
            return arguments[:at], arguments[at:]
        at += 2 if argument in with_value else 1
    return arguments, []


def _count(text: str) -> int:
    count = int(text) if text.isdecimal() else 0
    if count < 1:
        raise argparse.ArgumentTypeError("a number of steps from 1 on")
    return count


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise argparse.ArgumentTypeError("a number of seconds from 0 to 86400")
    return seconds


class Reporter:
    """Begins a session once PyTorch is there, and writes its reports."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.session: Any = None
        self.is_done = False
        self._pid = os.getpid()
        self._missing = "watch: the program did not import PyTorch; there was nothing to watch\n"
        # The program may replace or close its own; the report needs the one that was there.
        self._errors, self._errors_are = _kept_errors()

    def begin(self) -> None:
        """Called where the program imports PyTorch: nothing that fails here may fail there. A forked process is not
        watched."""
        if not self._is_ours:
            return
        try:
            self._begin()
        except Exception as error:
            from ._errors import is_programs_own

            self.session = None
            if is_programs_own(error):
                # A handler of a signal has ended the program's import.
                raise
            self._missing = f"watch: could not begin: {type(error).__name__}: {error}\n"

    def _begin(self) -> None:
        from ._session import Session
        from ._watch import begin

        self.session = Session()
        begin(self.session)
        self.session.excluded.add(self.options.exclude)
        if self.options.phases:
            self.session.follow_phases()
        if self.options.live is not None:
            self.session.serve_live(self.options.live or None, self._line)
        self.session.looks.keeps_snapshot = bool(self.options.snapshot)
        if self.options.on_oom:
            self.session.shortages.on_shortage = self._shortage
        if self.options.every:
            self.session.on_findings = self._so_far
        self.session.start()
        self._hear_signal()

    def _hear_signal(self) -> None:
        """Reports when it is asked by SIGUSR1, unless the program hears that signal itself."""
        if not hasattr(signal, "SIGUSR1") or _has_native_handler(signal.SIGUSR1):
            return
        # Python has handlers in its main thread alone, and PyTorch may be imported in another one.
        if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGUSR1, self._asked)
            os.register_at_fork(after_in_child=self._leave_child)

    @property
    def _is_ours(self) -> bool:
        return os.getpid() == self._pid

    def _asked(self, *_: Any) -> None:
        if self._is_ours:
            self.session.ask(lambda: self._write(is_final=False))

    def _leave_child(self) -> None:
        """A forked process is ended by the signal, as it would be without the watch."""
        with contextlib.suppress(ValueError):  # where it is not the main thread that goes on
            if signal.getsignal(signal.SIGUSR1) == self._asked:
                signal.signal(signal.SIGUSR1, signal.SIG_DFL)

    def _shortage(self) -> None:
        """Memory has run out, and the error is on its way: written at once, as the process may not live on."""
        from ._render import shortage_text

        self._put(shortage_text(self.session).encode(errors="backslashreplace"), self.options.on_oom)

    def _so_far(self, step: int) -> None:
        if step % self.options.every == 0 and self.session.findings:
            self._write(is_final=False)

    def _line(self, text: str) -> None:
        """From the thread that serves: one call, so that it is never mixed with what the program writes."""
        self._say(text.encode(errors="backslashreplace"))

    def _say(self, report: bytes) -> None:
        """To standard error, if anybody reads it: the program ends as it would in any case."""
        try:
            # The program may have closed ours, and opened a file of its own under the same number.
            descriptor = next((one for one in (self._errors, 2) if _file_at(one) == self._errors_are is not None), None)
            while report and descriptor is not None:
                report = report[os.write(descriptor, report) :]
        except OSError as error:
            if not _is_an_answer(error):
                raise

    def _write(self, is_final: bool) -> None:
        from ._page import page
        from ._render import as_json, text

        write = {"json": as_json, "html": page, "text": text}[self.options.format]
        report = write(self.session, is_final).encode(errors="backslashreplace")
        self._put(report, self.options.output)
        if self.options.snapshot and self.session.looks.snapshot is not None:
            self._put_snapshot(self.session.looks.snapshot.written(self.options.snapshot), self.options.snapshot)

    def _put_snapshot(self, snapshot: bytes, path: str) -> None:
        try:
            with open(path, "wb") as file:
                file.write(snapshot)
        except OSError as error:
            if not _is_an_answer(error):
                raise
            self._say(f"watch: the snapshot could not be written: {error}\n".encode(errors="backslashreplace"))

    def _put(self, report: bytes, path: str | None) -> None:
        try:
            if path:
                with open(path, "wb") as file:
                    file.write(report)
                return
        except OSError as error:
            if not _is_an_answer(error):
                raise
            self._say(f"watch: could not write there, so it follows here: {error}\n".encode(errors="backslashreplace"))
        self._say(report)

    def end(self, error: BaseException | None) -> bool:
        """Writes the last report once, and says whether something leaks."""
        if self.is_done or not self._is_ours:
            return False
        self.is_done = True
        if self.session is None:
            self._say(self._missing.encode())
            return False
        try:
            return self._end(error)
        except Exception as trouble:  # the program ends as it would
            self._say(f"watch: no report could be made: {type(trouble).__name__}: {trouble}\n".encode(errors="backslashreplace"))
            return False

    def _end(self, error: BaseException | None) -> bool:
        from ._render import is_too_short

        if error is not None:
            from ._out_of_memory import fillings, is_out_of_memory

            if is_out_of_memory(error):
                # Its frames have ended by now, and are read from the error.
                self.session.fillings = fillings(self.session, error) or self.session.fillings
                if self.options.on_oom:
                    self._shortage()
        self.session.stop()
        running = [one for one in threading.enumerate() if not one.daemon and one is not threading.current_thread()]
        if running and is_too_short(self.session):
            self.session.limits.setdefault("threads of the program still run: what they do from here on is not watched")
        if self.options.snapshot:
            self.session.looks.take_snapshot(error)
        self._write(is_final=True)
        return bool(self.session.verdicts)


def _kept_errors() -> tuple[int, tuple[int, int] | None]:
    """A descriptor of standard error that stays, and which file it is; none where the program is started without one."""
    try:
        # A high one: the program's first file gets the number that it gets without us.
        return _duplicate(2), _file_at(2)
    except OSError:
        return 2, None


def _duplicate(descriptor: int) -> int:
    try:
        import fcntl
    except ImportError:  # not a Unix
        return os.dup(descriptor)
    # Not by `resource`: a program may have a module of that name. It is -1 where there is no limit.
    most = os.sysconf("SC_OPEN_MAX")
    most = HIGH_DESCRIPTOR if most < 0 else min(most - 1, HIGH_DESCRIPTOR)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, most)


def _has_native_handler(number: int) -> bool:
    """Whether something has a handler that Python does not know of: `faulthandler.register(SIGUSR1)`."""
    try:
        with open("/proc/self/status", "rb") as file:
            caught = next((int(line.split()[1], 16) for line in file if line.startswith(b"SigCgt:")), 0)
    except (OSError, ValueError):  # not Linux
        return False
    return bool(caught >> (number - 1) & 1)


def _file_at(descriptor: int) -> tuple[int, int] | None:
    try:
        facts = os.fstat(descriptor)
    except OSError as error:
        if not _is_an_answer(error):
            raise
        return None
    return facts.st_dev, facts.st_ino


def _is_an_answer(error: OSError) -> bool:
    # Late: a program may have modules of the names that this imports.
    from ._errors import is_an_answer

    return is_an_answer(error)


def main(arguments: list[str]) -> NoReturn:
    """Runs the program and ends with its exit status, or 3 with `--fail` if it succeeded and leaks."""
    options = _options(arguments)
    reporter = Reporter(options)
    program = Program(options.module, options.program)
    import_hook("torch", reporter.begin)
    status = 0

    def end(error: BaseException | None) -> int:
        nonlocal status
        status = FOUND_LEAK if reporter.end(error) and options.fail else status
        return status

    program.run(end)
    program.leave(status)
