"""What the tests of the garbage collector share."""

import gc
import weakref

import plimsoll as pm


def collected(make):
    """Whether what `make(device)` leaves behind is freed by the collector: the object and its bytes. By itself it
    does not run meanwhile (`conftest.py`)."""
    device = pm.private_cpu()
    gone = weakref.ref(make(device))
    before = pm.memory_allocated(device)
    gc.collect()
    return gone() is None and before > 0 and pm.memory_allocated(device) == 0
