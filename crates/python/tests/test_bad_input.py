"""Bad input: the class of exception that PyTorch 2.15 raises (recorded from it by `conformance/bad_input.py`), and nothing kept,
broken or waiting afterwards."""

import gc
import json
import mmap
import multiprocessing
import os
import pathlib
import pickle
import signal
import threading
import time
import warnings

import pytest

pytest.importorskip("numpy")

import bad_input
import plimsoll
import plimsoll.optim
import plimsoll.utils.checkpoint
import plimsoll.utils.data
import plimsoll.utils.dlpack

RECORDED = json.loads(pathlib.Path(__file__).with_name("bad_input.json").read_text())

#: Classes that differ from PyTorch's.
DIFFERENT = {
    "index_by_an_angry_number": "IndexError",
    # PyTorch's is that of Python's pickle, which changed with Python 3.14.
    "save_what_cannot_be_pickled": "PicklingError",
}


def state():
    """What a bad call must leave as it was."""
    gc.collect()
    return (
        plimsoll.memory_allocated(),
        plimsoll.memory_external(),
        plimsoll.is_grad_enabled(),
        plimsoll.is_inference_mode_enabled(),
        plimsoll.is_autocast_enabled("cpu"),
        plimsoll.get_default_dtype(),
        len(multiprocessing.active_children()),
        len(os.listdir("/proc/self/fd")),
    )


def works():
    """Whether a step of training still does."""
    x = plimsoll.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad.tolist() == [2, 2, 2]


def test_every_case_is_recorded():
    assert RECORDED.keys() == bad_input.CASES.keys()
    assert all(RECORDED.values())


@pytest.fixture(autouse=True)
def interrupts_are_raised():
    """Also where the tests run in the background of a shell, which has its children ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", bad_input.CASES)
def test_bad_input_raises_pytorchs_class_and_leaves_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bad_input.raised_by(bad_input.CASES[name], plimsoll)  # What is made once is not counted.
        before = state()
        classes = bad_input.raised_by(bad_input.CASES[name], plimsoll)
    assert DIFFERENT.get(name, RECORDED[name]) in classes
    assert state() == before
    assert works()


# Where PyTorch crashes or computes with memory that is gone


def test_a_buffer_does_not_go_while_a_tensor_uses_it():
    memory = bytearray(8)
    tensor = plimsoll.frombuffer(memory, dtype=plimsoll.uint8)
    with pytest.raises(BufferError):
        memory.extend(b"more")
    mapped = mmap.mmap(-1, 4096)
    page = plimsoll.frombuffer(mapped, dtype=plimsoll.uint8)
    with pytest.raises(BufferError):
        mapped.close()
    assert tensor.tolist() == [0] * 8 and int(page.sum()) == 0
    del page
    mapped.close()


def rebuilt(*changes):
    """A tensor's pickle with some arguments of `_rebuild_tensor` replaced: class, bytes, dtype, shape, strides, device, gradient."""
    function, arguments = plimsoll.arange(6.0).view(2, 3).__reduce_ex__(2)
    arguments = list(arguments)
    for place, value in changes:
        arguments[place] = value
    return pickle.loads(pickle.dumps(_Call(function, tuple(arguments))))


class _Call:
    def __init__(self, function, arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "change",
    [
        (0, int),
        (0, None),
        (1, b""),
        (1, b"short"),
        (1, "text"),
        (2, "complex64"),
        (2, None),
        (3, (-1, 3)),
        (3, (2**62, 2**62)),
        (3, (10**9, 10**9)),
        (3, "ab"),
        (4, (10**12, 1)),
        (4, (-3, 1)),
        (4, (1,)),
        (5, "abacus"),
        (5, None),
        (6, "maybe"),
    ],
)
def test_a_pickle_that_lies_about_its_tensor_is_an_error(change):
    before = state()
    with pytest.raises((RuntimeError, ValueError, TypeError, OverflowError, NotImplementedError)):
        rebuilt(change)
    assert state() == before
    assert rebuilt().tolist() == [[0, 1, 2], [3, 4, 5]]


# Forks


def test_forks_while_other_threads_compute():
    stop = threading.Event()

    def compute():
        x = plimsoll.rand(200, 200, requires_grad=True)
        while not stop.is_set():
            (x @ x).sum().backward()
            x.grad = None

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    y = plimsoll.ones(64, 64, requires_grad=True)
                    (y @ y).sum().backward()
                    status = 0 if float(y.grad[0, 0]) == 128 else 2
                finally:
                    os._exit(status)
            assert _status(child) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _status(child, seconds=30):
    """The exit status of a child; one that waits for ever is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it waited for ever"


def test_a_fork_in_the_middle_of_backward():
    x = plimsoll.ones(3, requires_grad=True)
    statuses = []

    def fork(grad):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                y = plimsoll.ones(3, requires_grad=True)
                with plimsoll.enable_grad():  # A hook runs without.
                    (y * 3).sum().backward()
                status = 0 if y.grad.tolist() == [3, 3, 3] else 2
            finally:
                os._exit(status)
        statuses.append(_status(child))

    y = x * 2
    y.register_hook(fork)
    y.sum().backward()
    assert statuses == [0] and x.grad.tolist() == [2, 2, 2]


def test_an_interrupt_leaves_gradients_that_can_be_computed_again():
    x = plimsoll.ones(3, requires_grad=True)
    y = x * 2
    handle = y.register_hook(lambda grad: (_ for _ in ()).throw(KeyboardInterrupt))
    total = (y * y).sum()
    with pytest.raises(KeyboardInterrupt):
        total.backward(retain_graph=True)
    assert x.grad is None
    handle.remove()
    total.backward()
    assert x.grad.tolist() == [8, 8, 8]
