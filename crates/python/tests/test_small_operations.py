"""What small operations take shortcuts for: lines read from the interpreter's own frames, objects without a dictionary, and work
that keeps the interpreter. Each is held to the long way round."""

import gc
import sys
import threading
import weakref

import pytest

import plimsoll as pm
from plimsoll import _plimsoll


def line_of(tensor):
    file, line, _operation = _plimsoll._origin(tensor)
    assert file == __file__
    return line


def test_frames_are_read_where_the_layout_is_known():
    known = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 13)
    plain = not getattr(sys, "abiflags", "") and not hasattr(sys, "gettotalrefcount")
    assert _plimsoll._reads_frames() == (known and plain)


def rows():
    for _ in range(2):
        yield _plimsoll._reads_frames()


def deep(levels):
    return _plimsoll._reads_frames() if levels == 0 else deep(levels - 1)


class Made:
    def __init__(self):
        self.reads = _plimsoll._reads_frames()


def test_frames_agree_with_the_interpreter_wherever_they_run():
    """`_reads_frames` raises where a frame that was read is not the one that runs."""
    expected = _plimsoll._reads_frames()
    found = list(rows()) + [deep(200), Made().reads]
    # Calls that the interpreter has specialised put a frame of its own under `__init__`.
    found += [Made().reads for _ in range(20)]
    found += [_plimsoll._reads_frames() for _ in range(2)]
    sorted([1, 0], key=lambda _: found.append(_plimsoll._reads_frames()) or 0)
    thread = threading.Thread(target=lambda: found.append(_plimsoll._reads_frames()))
    thread.start()
    thread.join()
    assert len(found) == 29 and all(one == expected for one in found)


def test_a_line_of_a_loop_a_generator_and_a_call_that_spans_lines():
    def made():
        yield pm.ones(2) + 1

    first = sys._getframe().f_lineno + 1
    here = pm.ones(2) + 1
    spread = pm.add(
        here,
        1,
    )
    assert line_of(here) == first
    assert line_of(spread) == first + 1
    assert line_of(next(made())) == first - 3


def test_a_new_tensor_has_attributes_and_weak_references():
    x = pm.ones(2) + 1
    noted = weakref.ref(x)
    assert vars(x) == {} and noted() is x
    x.note = "x"
    assert vars(x) == {"note": "x"}
    del x
    gc.collect()
    assert noted() is None


def test_an_object_and_its_attributes_outlive_each_other():
    x = pm.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    # The gradient's object goes, its tensor stays; the next object is another one, of the same class.
    assert x.grad is x.grad and type(x.grad) is pm.Tensor
    x.grad.note = [1]
    gc.collect()
    assert x.grad.note == [1]


def test_a_tensor_that_takes_anothers_memory_keeps_its_object():
    x, y = pm.ones(2), pm.zeros(3)
    view = x[:1]
    x.data = y
    assert x.shape == (3,) and view._base is not None
    before = id(x)
    x.t_()
    assert id(x) == before and (x + 1).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("elements", [4, 4096])
def test_threads_work_on_one_tensor(elements):
    """Small work keeps the interpreter, other work lets it go: both among threads, with writes between."""
    x = pm.zeros(elements)
    done = []

    def work():
        for _ in range(200):
            x.add_(1)
            (x + x)[:2].sum()
        done.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4 and x.tolist() == [800.0] * elements


def test_slices_are_clamped_and_refused_as_pythons_own():
    x = pm.arange(6)
    assert x[: 10**30].tolist() == x[-(10**30) :].tolist() == x.tolist()
    assert x[pm.tensor(1) : pm.tensor(4) : pm.tensor(2)].tolist() == [1, 3]
    for step in (0, -1):
        with pytest.raises(ValueError, match="positive"):
            x[::step]
    with pytest.raises(TypeError, match="slice indices must be integers or None or have an __index__ method"):
        x["a":]
