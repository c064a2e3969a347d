"""Runs programs that were written for PyTorch on Plimsoll under `plimsoll.LeakWatch`, each in a process that is forked after the
package was imported, and prints a line of JSON for each. Not a test by itself: `test_leak_programs.py` asks it."""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import signal
import sys
import tempfile
import traceback

# Seconds that a program may take.
MOST_SECONDS = 100


def judged(program: str) -> dict:
    import plimsoll

    watch = plimsoll.LeakWatch()
    with watch:
        runpy.run_path(program, run_name="__main__")
    return json.loads(watch.json())


def forked(program: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        answer, errors = pathlib.Path(folder, "answer"), pathlib.Path(folder, "errors")
        child = os.fork()
        if child == 0:
            signal.alarm(MOST_SECONDS)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
            status = 70
            try:
                sys.argv = [program]
                answer.write_text(json.dumps(judged(program)))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        report = json.loads(answer.read_text()) if answer.exists() else None
        said = errors.read_text() if errors.exists() else ""
        return {"program": program, "status": os.waitstatus_to_exitcode(ended), "errors": said, "report": report}


if __name__ == "__main__":
    import plimsoll
    import plimsoll.run

    plimsoll.run.resolve_torch()
    import plimsoll.leak_watch  # noqa: F401

    plimsoll.set_num_threads(1)
    for name in sys.argv[1:]:
        print(json.dumps(forked(name)), flush=True)
