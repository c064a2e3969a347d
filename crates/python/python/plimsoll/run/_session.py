"""What is set up before the program runs, noted while it does, and read when it has ended: the devices, the history of
their memory, the steps, and who holds what is left. `_report.py` puts it into words."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import Any

import plimsoll

from .. import _plimsoll
from . import _held, _report, _spawned
from ._finder import resolve_torch
from ._holders import Looks
from ._missing import explain, line_of

# What every error says of a tensor of a dry run that is to be read.
_NEEDS_VALUES = "only accounts for memory"
# Events that the history keeps; the oldest go first.
MOST_EVENTS = 200_000


class Session:
    """One run. Everything the report says is read in `end`, while the program's names still hold their tensors."""

    def __init__(self, options: Any):
        self.options = options
        self.pid = os.getpid()
        # The program may replace or close its own; the report needs the one that was there.
        self._errors = os.dup(2)
        self.error: BaseException | None = None
        self.findings: list[dict[str, Any]] = []
        self.figures: list[_report.DeviceFigures] = []
        self.held: list[_held.Held] = []
        self.trouble: list[str] = []
        self.stopped_at: str | None = None
        self.seconds = 0.0
        self._is_over = False
        _plimsoll._print_as_torch(True)
        self._open_devices()
        torch = resolve_torch()
        if options.dry:
            # Arrays have memory of their own; tensors over them join the others.
            vars(torch)["from_numpy"] = lambda ndarray: plimsoll.from_numpy(ndarray).to(self._host)
        self.looks = Looks()
        self.steps = self._follow_steps()
        self._live = self._serve() if options.live else None
        self._began = time.monotonic()

    # ---- before ----

    def _open_devices(self) -> None:
        options = self.options
        if not _plimsoll._cuda_count() and options.device_memory:
            plimsoll.stand_in(options.device_memory, as_cuda=True)
            _spawned.device_memory = options.device_memory
        sorts = ["cpu", *(["cuda"] if _plimsoll._cuda_count() else [])]
        if options.dry:
            for sort in sorts:
                _plimsoll._answer_as(sort, plimsoll.dry(sort))
            plimsoll.set_default_device("cpu")
            self._host = plimsoll.get_default_device()
        # As tensors name them: `cuda:0`.
        self.devices = [plimsoll.empty(0, device=sort).device for sort in sorts]
        for device in self.devices:
            if options.limit is not None:
                plimsoll.set_memory_limit(options.limit, device)
            plimsoll.record_memory_history("all", max_entries=MOST_EVENTS, device=device)

    def _follow_steps(self) -> Any:
        """Marks the program's own iterations, so that findings speak of steps."""
        from ..watch._steps import Steps

        def nothing(*_: Any) -> None:
            pass

        def step(_: bool) -> None:
            plimsoll.step()
            if os.getpid() == self.pid:
                self._look()

        def epoch() -> None:
            plimsoll.epoch()

        steps = Steps(step, epoch, nothing, nothing)
        steps.start()
        return steps

    def _serve(self) -> Any:
        """For `plimsoll top`; the program runs whether or not that can be."""
        named = self.options.module or os.path.basename(self.options.program[0])
        try:
            return plimsoll.serve_live(named)
        except Exception as failure:
            self.trouble.append(f"`plimsoll top` could not look: {failure}")
            return None

    def _look(self) -> None:
        try:
            self.looks.step(self.steps.count, self.steps.loaders())
        except Exception as failure:  # the program goes on whatever happens here
            self.trouble.append(f"holders are not all named: {type(failure).__name__}: {failure}")

    # ---- after ----

    def end(self, error: BaseException | None) -> None:
        """The program is over, by its end, an error or an exit. Reads once; a forked process says nothing."""
        if self._is_over or os.getpid() != self.pid:
            return
        self._is_over = True
        self.seconds = time.monotonic() - self._began
        self.error = error
        self.steps.stop()
        if self._live is not None:
            self._live.close()
        if error is not None:
            explain(error)
            if self.options.dry and _NEEDS_VALUES in str(error):
                self.stopped_at = f"{line_of(error)}, which needs a value ({type(error).__name__}: {error})"
        try:
            self._read()
        except Exception as failure:  # the program's own end must not depend on the report
            self.trouble.append(f"the report is not whole: {type(failure).__name__}: {failure}")

    def _read(self) -> None:
        for device in self.devices:
            if plimsoll.max_memory_reserved(device):
                self.figures.append(_report.DeviceFigures(device))
        self.figures.sort(key=lambda figures: -figures.peak)
        traceback = self.error.__traceback__ if self.error is not None else None
        self.held = _held.who_holds([figures.device for figures in self.figures], traceback)
        used = [figures.device for figures in self.figures]
        if not used:
            return
        with tempfile.TemporaryDirectory(prefix="plimsoll-run-") as folder:
            path = self.options.snapshot or os.path.join(folder, "snapshot.pickle")
            _plimsoll._dump_snapshot_of(path, used)
            self.findings = json.loads(_plimsoll._report(path, "json"))["findings"]
            self._name_holders(traceback)
            if self.options.html:
                with open(self.options.html, "w", encoding="utf-8") as file:
                    file.write(_plimsoll._report(path, "html"))
        for device in self.devices:
            plimsoll.record_memory_history(None, device=device)

    def _name_holders(self, traceback: Any) -> None:
        """Says of each leak who holds it, and takes those out that are none: what one optimizer's state or a bounded
        container holds stops growing, and what one pass gathers without learning may be its purpose."""
        self.looks.look([], traceback)
        kept = []
        for finding in self.findings:
            site = finding.get("site")
            holder = self.looks.by_line.get((site["file"], site["line"])) if site else None
            if finding["kind"] == "leak":
                by_graph = self.looks.of_graphs
                holder = by_graph or holder if finding["cause"].startswith("a graph") else holder or by_graph
                if holder is not None and self._is_no_leak(finding, holder):
                    continue
                finding["held_by"] = holder.words if holder is not None else None
            kept.append(finding)
        self.findings = kept

    def _is_no_leak(self, finding: dict[str, Any], holder: Any) -> bool:
        # Not above: this file must load before `torch` names Plimsoll.
        from ..watch._steps import OPTIMIZER

        if holder.bound is not None or holder.is_optimizer_state:
            return True
        is_one_pass = self.steps.rank < OPTIMIZER and self.steps.epochs <= 1
        # Nobody gathers graphs or gradients on purpose.
        are_values = not any(word in finding["cause"] for word in ("graph", "gradient"))
        return is_one_pass and holder.ways in (("local", "entry"), ("global", "entry")) and are_values

    def write(self) -> None:
        """Writes the report, after what the program itself has printed."""
        if not self._is_over or os.getpid() != self.pid:
            return
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):  # the program closed or replaced it
                pass
        os.write(self._errors, _report.text(self).encode(errors="backslashreplace"))
