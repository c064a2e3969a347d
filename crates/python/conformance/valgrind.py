"""The module's tests under valgrind: `valgrind.py [NAME ...]` (`object` for `test_object.py`), with an interpreter that has pytest and the package.

CPython reads some words before it has written all of them (it looks a small integer up by its digits, for one), so that valgrind names
errors in every program of Python's. An error is ours if the innermost function outside of the C library lies in the module, and passes
through ours if the module stands anywhere in its stack. The status is 1 if there is either, or if a test fails."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"
#: Objects, their copies and classes, exchange of memory, graphs and custom functions, and the books.
USUAL = ("object", "subclass", "copy", "numbers", "sharing", "autograd", "function", "graph", "memory", "files")
MODULE = "_plimsoll"
#: Whose own functions stand for the caller's: copying, freeing and the like.
C_LIBRARY = re.compile(r"vg_replace|vgpreload|libc\.so|libc-|ld-linux|malloc\.c|memmove|memcpy|memset|strlen")


def stacks(log):
    """The frames of each error, the innermost first."""
    for block in re.split(r"^==\d+== *$", log, flags=re.MULTILINE):
        frames = re.findall(r"^==\d+==    (?:at|by) 0x[0-9A-F]+: (.*)$", block, flags=re.MULTILINE)
        if frames:
            yield frames


def judged(frames):
    """Whether an error is ours, passes through ours, or is somebody else's."""
    inner = next((frame for frame in frames if not C_LIBRARY.search(frame)), frames[0])
    return "ours" if MODULE in inner else "through ours" if any(MODULE in frame for frame in frames) else "not ours"


def run(test):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        # pymalloc's own pools would hide what is read past an object's end.
        environment = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHONDONTWRITEBYTECODE": "1"}
        valgrind = ["valgrind", "--leak-check=no", "--num-callers=40", f"--log-file={log}"]
        tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
        answer = subprocess.run([*valgrind, *tests], capture_output=True, text=True, env=environment)
        found = [(judged(frames), frames) for frames in stacks(log.read_text())]
    last = answer.stdout.strip().splitlines()[-1:]
    counts = {kind: sum(1 for one, _ in found if one == kind) for kind in ("ours", "through ours", "not ours")}
    print(f"{test.name:28} {' '.join(last)}; errors: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()), flush=True)
    for kind, frames in found:
        if kind != "not ours":
            print(f"  {kind}:", *frames[:12], sep="\n    ")
    return answer.returncode == 0 and counts["ours"] == counts["through ours"] == 0


def main():
    wanted = sys.argv[1:] or USUAL
    tests = [path for path in sorted(TESTS.glob("test_*.py")) if any(path.stem == f"test_{name}" for name in wanted)]
    if not tests:
        raise SystemExit(f"no tests are called {', '.join(wanted)}")
    sys.exit(0 if all([run(test) for test in tests]) else 1)


if __name__ == "__main__":
    main()
