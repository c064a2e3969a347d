"""A loader's workers as processes: what they share, what comes of their errors and ends, and that nothing is left of them. Expected
messages and seeds are PyTorch 2.15's, recorded from it."""

import gc
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import time
import warnings

import plimsoll
import pytest
from plimsoll.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from shared_names import shared_names

TEN = list(range(10))
LARGE = 40_000  # Elements of float32 that lie in shared memory.


def numbers(loader):
    return [int(batch) for batch in loader]


def as_they_are(samples):
    return samples[0]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def interrupts_are_raised():
    """Also where the tests run in the background of a shell, which has its children ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Of no test: no process, no name in shared memory, no descriptor, no byte."""
    gc.collect()
    before = (set(multiprocessing.active_children()), shared_names(), descriptors(), plimsoll.memory_external())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield
    gc.collect()
    after = (set(multiprocessing.active_children()), shared_names(), descriptors(), plimsoll.memory_external())
    assert after == before


class Samples(Dataset):
    """Numbers; at 2 something happens."""

    def __init__(self, happens=lambda: None, count=6):
        self.happens = happens
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.happens() if index == 2 and self.happens() is not None else index


def raises(problem):
    def happens():
        raise problem

    return happens


# What workers are


def test_workers_are_processes_with_one_thread_each():
    class Asks(Samples):
        def __getitem__(self, index):
            return os.getpid(), plimsoll.get_num_threads(), get_worker_info().worker_method == "multiprocessing"

    here = plimsoll.get_num_threads()
    told = [[part.item() for part in batch] for batch in DataLoader(Asks(), num_workers=2)]
    pids = [pid for pid, _, _ in told]
    assert len(set(pids)) == 2 and os.getpid() not in pids and pids[0] == pids[2] == pids[4]
    assert all(threads == 1 and said for _, threads, said in told)
    assert plimsoll.get_num_threads() == here


def test_workers_have_pytorchs_seeds_and_numbers():
    numpy = pytest.importorskip("numpy")

    class Draws(Samples):
        def __getitem__(self, index):
            info = get_worker_info()
            return info.id, info.seed, plimsoll.initial_seed(), random.random(), numpy.random.rand(), info.rng

    plimsoll.manual_seed(11)
    told = list(DataLoader(Draws(), num_workers=2, collate_fn=as_they_are))
    seed = 3325388913236545215
    assert told[0] == (0, seed, seed, 0.10437156952704962, 0.7784028814550128, None)
    assert told[1] == (1, seed + 1, seed + 1, 0.08768933326737272, 0.8672182439354458, None)
    assert get_worker_info() is None


def test_a_generator_gives_the_seed_and_draws_in_workers_repeat():
    class Draws(Samples):
        def __getitem__(self, index):
            return plimsoll.rand(3)

    def drawn():
        generator = plimsoll.Generator().manual_seed(5)
        return [batch.tolist() for batch in DataLoader(Draws(), num_workers=2, generator=generator)]

    first = drawn()
    assert first == drawn() and len({str(batch) for batch in first}) == 6


def test_every_thread_of_a_worker_knows_the_worker():
    class Asks(Samples):
        def __getitem__(self, index):
            told = []
            thread = threading.Thread(target=lambda: told.append(get_worker_info().id))
            thread.start()
            thread.join()
            return told[0]

    assert numbers(DataLoader(Asks(), num_workers=2)) == [0, 1, 0, 1, 0, 1]


def test_a_forked_worker_computes_after_the_pool_of_threads_has_started():
    assert plimsoll.get_num_threads() > 1 or os.cpu_count() == 1
    x = plimsoll.rand(300, 300)
    expected = (x @ x).sum().item()

    class Computes(Samples):
        def __getitem__(self, index):
            leaf = x.clone().requires_grad_()
            (leaf @ x).sum().backward()
            return (x @ x).sum().item(), leaf.grad.sum().item()

    for product, gradient in DataLoader(Computes(), num_workers=2, collate_fn=as_they_are):
        assert product == pytest.approx(expected, rel=1e-5)
        assert gradient == pytest.approx(300 * x.sum().item(), rel=1e-4)


class Named(Dataset):
    """At the top of a module, so that it can be pickled."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return plimsoll.full((2,), float(index)), os.getpid()


def note(worker):
    assert get_worker_info().id == worker


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_every_way_to_start_a_process(method, monkeypatch):
    folder = os.path.dirname(os.path.dirname(plimsoll.__file__))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))
    context = multiprocessing.get_context(method) if method == "spawn" else method
    loader = DataLoader(Named(), num_workers=2, multiprocessing_context=context, worker_init_fn=note, batch_size=2)
    assert [batch.tolist() for batch, _ in loader] == [[[0.0, 0.0], [1.0, 1.0]], [[2.0, 2.0], [3.0, 3.0]]]
    if method == "forkserver":
        multiprocessing.forkserver._forkserver._stop()
    if method != "fork":
        multiprocessing.resource_tracker._resource_tracker._stop()


def test_what_cannot_be_pickled_cannot_be_sent_to_a_new_interpreter():
    class Local(Samples):
        pass

    loader = DataLoader(Local(), num_workers=1, multiprocessing_context="spawn")
    with pytest.warns(UserWarning, match="Got pickle error when attempting to start a worker Process"):
        with pytest.raises((AttributeError, TypeError)):
            iter(loader)
    multiprocessing.resource_tracker._resource_tracker._stop()


# What comes of them


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(200, 200), (3,), (0, 4), ()])
def test_tensors_of_every_dtype_come_as_they_are(dtype, shape):
    sample = (plimsoll.rand(shape) * 3).to(getattr(plimsoll, dtype))
    [came] = DataLoader([sample], batch_size=None, num_workers=1)
    assert came.dtype == sample.dtype and came.shape == sample.shape and plimsoll.equal(came, sample)
    came += 1 if dtype != "bool" else True


def test_large_tensors_lie_in_shared_memory_and_small_ones_do_not():
    rows = TensorDataset(plimsoll.arange(4.0 * LARGE).view(4, LARGE), plimsoll.arange(4))
    before = plimsoll.memory_external()
    [(large, small)] = DataLoader(rows, batch_size=4, num_workers=1)
    assert large.is_shared() and not small.is_shared()
    assert large[1, 3] == LARGE + 3 and small.tolist() == [0, 1, 2, 3]
    assert plimsoll.memory_external() - before == 4 * LARGE * 4
    large.zero_()
    part = large[1:]
    del large
    assert part.sum() == 0 and part.is_shared()


def test_strides_views_subclasses_and_gradients_come_along():
    class Own(plimsoll.Tensor):
        pass

    base = plimsoll.arange(float(4 * LARGE)).view(4, LARGE)
    own = base.as_subclass(Own)
    own.note = "kept"
    samples = [base.t(), base[::2, 1::2], base[:1].expand(50, LARGE), plimsoll.nn.Parameter(base[1]), base.clone().requires_grad_()]
    for sample, came in zip(samples, DataLoader(samples, batch_size=None, num_workers=1)):
        assert plimsoll.equal(came, sample) and type(came) is type(sample) and came.requires_grad == sample.requires_grad
        assert came.is_leaf
    assert next(iter(DataLoader(samples[:1], batch_size=None, num_workers=1))).stride() == (1, LARGE)


def test_arrays_come_in_shared_memory_too():
    numpy = pytest.importorskip("numpy")
    arrays = [numpy.arange(LARGE, dtype="float32"), numpy.arange(3)]
    for array, came in zip(arrays, DataLoader(arrays, batch_size=None, num_workers=1, collate_fn=lambda x: x)):
        assert isinstance(came, numpy.ndarray) and (came == array).all()
        came[0] = 5


def test_texts_of_any_length_and_other_objects_come():
    samples = ["a" * n for n in (0, 10, 100_000, 3_000_000)] + [{"a": [1, [b"c" * 90_000]]}, None]
    assert list(DataLoader(samples, batch_size=None, num_workers=2)) == samples


def test_many_batches_can_be_kept_without_a_descriptor_each():
    before = descriptors()
    batches = list(DataLoader([plimsoll.full((LARGE,), float(n)) for n in range(40)], batch_size=None, num_workers=1))
    assert descriptors() <= before
    assert [int(batch[7]) for batch in batches] == list(range(40))


def test_keys_larger_than_a_socket_holds_do_not_stop_the_loader():
    keys = [list(range(200_000)) for _ in range(6)]

    class Counts(Dataset):
        def __getitems__(self, wanted):
            return [len(wanted)]

    assert numbers(DataLoader(Counts(), batch_sampler=keys, num_workers=1, prefetch_factor=6)) == [200_000] * 6


def test_a_time_limit_for_the_programs_sockets_is_not_the_loaders():
    class Slow(Samples):
        def __getitem__(self, index):
            time.sleep(0.05)
            return "a" * 60_000

    socket.setdefaulttimeout(0.01)
    try:
        steps = iter(DataLoader(Slow(count=12), num_workers=1, prefetch_factor=12))
        time.sleep(0.8)  # The worker fills its socket.
        assert sum(1 for _ in steps) == 12
    finally:
        socket.setdefaulttimeout(None)


# Errors and ends


def test_an_error_is_the_same_class_with_the_workers_traceback():
    steps = iter(DataLoader(Samples(raises(KeyError("two"))), num_workers=1))
    assert [int(next(steps)), int(next(steps))] == [0, 1]
    with pytest.raises(KeyError) as raised:
        next(steps)
    text = str(raised.value)
    assert text.startswith("Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n")
    assert "raise problem" in text and text.endswith("KeyError: 'two'\n")
    assert numbers(steps) == [3, 4, 5]


def test_an_error_that_cannot_be_made_again_is_a_runtime_error():
    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    with pytest.raises(RuntimeError, match="Caught Odd in DataLoader worker process 0"):
        list(DataLoader(Samples(raises(Odd(1, 2))), num_workers=1))
    with pytest.raises(RuntimeError, match="Caught UnicodeDecodeError in DataLoader worker process 0"):
        list(DataLoader(Samples(lambda: b"\xff".decode()), num_workers=1))


def test_an_error_at_the_start_is_told_once():
    def refuse(worker):
        raise ValueError("no")

    steps = iter(DataLoader(TEN, num_workers=2, worker_init_fn=refuse))
    for worker in range(2):
        with pytest.raises(ValueError, match=f"Caught ValueError in DataLoader worker process {worker}"):
            next(steps)
    assert numbers(steps) == TEN[2:]


def test_what_cannot_be_sent_is_an_error_in_its_place():
    steps = iter(DataLoader(Samples(lambda: lambda: 0), num_workers=1, collate_fn=as_they_are))
    assert [next(steps), next(steps)] == [0, 1]
    with pytest.raises(AttributeError, match="Can't pickle local object|Can't get local object"):
        next(steps)
    assert list(steps) == [3, 4, 5]
    grown = plimsoll.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(DataLoader([grown], batch_size=None, num_workers=1))


@pytest.mark.parametrize(
    ("happens", "cause"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: Killed. "),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "is killed by signal: Terminated. "),
        (lambda: sys.exit(3), "exited unexpectedly with exit code 3. Details are lost due to multiprocessing. "),
        (lambda: os._exit(4), "exited unexpectedly with exit code 4. Details are lost due to multiprocessing. "),
        (raises(KeyboardInterrupt()), "exited unexpectedly with exit code 0. Details are lost due to multiprocessing. "),
    ],
)
@pytest.mark.parametrize("in_order", [True, False])
def test_a_worker_that_is_gone_is_told_of_and_the_others_go_on(happens, cause, in_order):
    # The timeout is there so that a consumer that waits for ever fails.
    steps = iter(DataLoader(Samples(happens), num_workers=1, timeout=30, in_order=in_order))
    [pid] = steps._workers.pids()
    assert [int(next(steps)), int(next(steps))] == [0, 1]
    with pytest.raises(RuntimeError) as raised:
        next(steps)
    assert str(raised.value) == f"DataLoader worker (pid(s) {pid}) exited unexpectedly"
    assert str(raised.value.__cause__).startswith(f"DataLoader worker (pid {pid}) {cause}")
    with pytest.raises(StopIteration):
        next(steps)


def test_one_of_two_that_is_killed_leaves_the_other_at_work():
    class Slow(Samples):
        def __getitem__(self, index):
            time.sleep(60 if index == 0 else 0)
            return index

    steps = iter(DataLoader(Slow(count=10), num_workers=2, timeout=30))
    os.kill(steps._workers.pids()[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(steps)
    # What it was asked for is lost, as in PyTorch.
    assert numbers(steps) == [1, 3, 4, 5, 6, 7, 8, 9]


def test_a_worker_that_takes_too_long_is_told_of():
    class Slow(Samples):
        def __getitem__(self, index):
            time.sleep(1.5 if index == 0 else 0)
            return index

    steps = iter(DataLoader(Slow(), num_workers=1, timeout=0.5))
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        next(steps)
    time.sleep(1.2)
    assert numbers(steps) == [0, 1, 2, 3, 4, 5]


def test_an_interrupt_of_the_loop_ends_the_workers():
    class Waits(Samples):
        def __getitem__(self, index):
            time.sleep(60)

    steps = iter(DataLoader(Waits(), num_workers=2))
    pids = steps._workers.pids()
    timer = threading.Timer(0.3, lambda: [os.kill(pid, signal.SIGINT) for pid in (*pids, os.getpid())])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    timer.join()
    del steps
    gc.collect()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


# Beginning and leaving


def test_leaving_early_leaves_nothing():
    for batch in DataLoader([plimsoll.zeros(LARGE)] * 50, num_workers=2):
        assert len(multiprocessing.active_children()) == 2
        break
    # The fixture looks for what is left.


def test_persistent_workers_live_between_epochs_and_pass_over_what_was_left():
    class Names(Samples):
        def __getitem__(self, index):
            return index, os.getpid()

    loader = DataLoader(Names(), num_workers=2, persistent_workers=True)
    first = [(int(n), int(pid)) for n, pid in loader]
    next(iter(loader))
    assert [(int(n), int(pid)) for n, pid in loader] == first
    assert len({pid for _, pid in first}) == 2 and len(multiprocessing.active_children()) == 2


def test_persistent_workers_go_on_with_their_random_numbers():
    class Draws(Samples):
        def __getitem__(self, index):
            return plimsoll.rand(())

    loader = DataLoader(Draws(), num_workers=1, persistent_workers=True)
    drawn = [float(batch) for _ in range(2) for batch in loader]
    assert len(set(drawn)) == 12


def test_workers_go_no_further_ahead_than_they_may():
    asked = plimsoll.zeros(2, dtype=plimsoll.int64).share_memory_()

    class Counts(Samples):
        def __getitem__(self, index):
            asked[get_worker_info().id] += 1
            return index

    steps = iter(DataLoader(Counts(count=30), num_workers=2, prefetch_factor=3))
    for taken in range(1, 20):
        next(steps)
        assert asked.sum() <= taken + 6
    assert asked.min() > 0


def test_a_worker_ends_when_its_loaders_process_is_killed(tmp_path):
    told = tmp_path / "pids"
    child = os.fork()
    if child == 0:
        steps = iter(DataLoader(Samples(), num_workers=2))
        other = os.fork()  # Somebody else's child must not keep the workers waiting.
        if other == 0:
            time.sleep(20)
            os._exit(0)
        told.write_text(" ".join(map(str, [*steps._workers.pids(), other])))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    *workers, other = map(int, told.read_text().split())
    end = time.monotonic() + 10
    while any(_is_running(pid) for pid in workers) and time.monotonic() < end:
        time.sleep(0.02)
    assert _is_running(other) and not any(_is_running(pid) for pid in workers)
    os.kill(other, signal.SIGKILL)


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_forked_child_that_drops_an_iterator_leaves_the_workers_alone():
    steps = iter(DataLoader(TEN, num_workers=2))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with pytest.raises(RuntimeError, match="of the process that this one was forked from"):
                next(steps)
            del steps
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert numbers(steps) == TEN


def test_batches_out_of_order_are_all_there():
    class Uneven(Samples):
        def __getitem__(self, index):
            time.sleep(0.2 if index == 0 else 0)
            return index

    came = numbers(DataLoader(Uneven(count=8), num_workers=2, in_order=False))
    assert sorted(came) == list(range(8)) and came[0] != 0


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, 7, info.num_workers))


@pytest.mark.parametrize("in_order", [True, False])
def test_streams_end_each_by_itself(in_order):
    loader = DataLoader(Stream(), num_workers=3, persistent_workers=True, in_order=in_order)
    for _ in range(2):
        came = numbers(loader)
        assert sorted(came) == list(range(7))
        assert not in_order or came == list(range(7))


def test_a_pinning_thread_is_between_workers_and_loop():
    from plimsoll.utils.data._pinned import Pinned
    from plimsoll.utils.data._processes import Processes
    from plimsoll.utils.data.dataloader import MapFetcher

    def make(dataset):
        return MapFetcher(dataset, True, as_they_are, False)

    own = threading.current_thread().name

    def pin(value):
        if value == 3:
            raise ValueError("three")
        return value, threading.current_thread().name != own

    pinned = Pinned(Processes(2, TEN, make, 0, None, None), pin)
    for step in range(6):
        pinned.submit(step % 2, step, [step])
    assert [pinned.take(step, 10) for step in (1, 0, 2)] == [(1, (1, True)), (0, (0, True)), (2, (2, True))]
    with pytest.raises(ValueError, match="Caught ValueError in pin memory thread for device 0"):
        pinned.take(3, 10)[1].reraise()
    pinned.begin_epoch()
    pinned.submit(0, 0, [9])
    assert pinned.take(0, 10) == (0, (9, True))
    with pytest.raises(RuntimeError, match="timed out"):
        pinned.take(5, 0.05)
    pinned.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "plimsoll pin"]


def test_batches_are_pinned_where_there_is_a_device():
    plimsoll.stand_in()
    rows = TensorDataset(plimsoll.arange(8), plimsoll.zeros(8, LARGE))
    loader = DataLoader(rows, batch_size=4, num_workers=2, pin_memory=True, persistent_workers=True)
    for _ in range(2):
        batches = list(loader)
        assert [small.tolist() for small, _ in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert all(part.is_pinned() for batch in batches for part in batch)
        next(iter(loader))
    steps = iter(DataLoader(Samples(lambda: os._exit(4)), num_workers=1, pin_memory=True))
    assert [int(next(steps)), int(next(steps))] == [0, 1]
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(steps)
