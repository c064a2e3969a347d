"""What lies in the system's shared memory by a name of Plimsoll's, for tests that nothing is left there."""

import os
from pathlib import Path


def _parent(pid):
    """The parent of a process that runs."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(parent)


def _is_of_others(pid):
    """Whether it runs, and neither is this process nor comes from it."""
    at = pid
    while at not in (None, 0, os.getpid()):
        at = _parent(at)
    return at == 0


def shared_names():
    """Names that this process and its children made, or that no living process did. Other programs, as the same tests
    in another folder, make and remove their own at any time."""
    names = {name for name in os.listdir("/dev/shm") if name.startswith("plimsoll_")}
    return {name for name in names if not _is_of_others(int(name.split("_")[1]))}
