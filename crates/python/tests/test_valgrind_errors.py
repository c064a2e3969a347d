"""Errors that valgrind finds are told apart: the module's own, those that pass through it, and the interpreter's."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "conformance"))

import valgrind  # noqa: E402

LOG = """==7== Invalid read of size 8
==7==    at 0x4844FA9: memmove (vg_replace_strmem.c:1382)
==7==    by 0x9C31F10: ??? (in /site/plimsoll/_plimsoll.abi3.so)
==7==    by 0x49AABA2: PyObject_Vectorcall (call.c:299)
==7==
==7== Use of uninitialised value of size 8
==7==    at 0x49E0569: get_small_int (longobject.c:62)
==7==    by 0x9C31F10: ??? (in /site/plimsoll/_plimsoll.abi3.so)
==7==
==7== Use of uninitialised value of size 8
==7==    at 0x49E0569: get_small_int (longobject.c:62)
==7==    by 0x494F9C2: _PyEval_EvalFrameDefault (ceval.c:4769)
==7==
==7== ERROR SUMMARY: 3 errors from 3 contexts (suppressed: 0 from 0)
"""


def test_errors_are_told_apart():
    assert [valgrind.judged(frames) for frames in valgrind.stacks(LOG)] == ["ours", "through ours", "not ours"]
