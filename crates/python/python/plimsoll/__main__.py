"""The command `plimsoll`, as `python -m plimsoll` and as the script that pip installs."""

from __future__ import annotations

import os
import signal
import sys

from ._plimsoll import _command


def main() -> int:
    if sys.argv[1:2] == ["watch"]:
        # This Python again, without Plimsoll's own module in it.
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watch")
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, folder, *sys.argv[2:]])
    if sys.argv[1:2] == ["run"]:
        from .run._command import main as run

        run(sys.argv[2:])
    measures = sys.argv[1:] == ["doctor", "--measure"]
    if measures:
        sys.argv.pop()
    # Python would only note Ctrl-C until the command is done; the executable ends at once, and so does this.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = _command(["plimsoll", *sys.argv[1:]])
    if measures and status == 0:
        from ._measured_costs import main as measure

        sys.stdout.flush()
        return measure()
    return status


if __name__ == "__main__":
    sys.exit(main())
