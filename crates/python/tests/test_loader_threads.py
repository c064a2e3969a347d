"""A loader's workers as threads: `multiprocessing_context="thread"`."""

import functools
import gc
import threading
import weakref

import plimsoll
import pytest
from plimsoll.utils import data
from plimsoll.utils.data import Dataset, IterableDataset, get_worker_info

DataLoader = functools.partial(data.DataLoader, multiprocessing_context="thread")
TEN = list(range(10))


def numbers(loader):
    return [int(batch) for batch in loader]


class Failing(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 2:
            raise KeyError("two")
        return index


def test_an_error_of_a_worker_comes_with_its_traceback_and_the_loader_goes_on():
    steps = iter(DataLoader(Failing(), num_workers=1))
    assert [int(next(steps)), int(next(steps))] == [0, 1]
    with pytest.raises(KeyError) as raised:
        next(steps)
    text = str(raised.value)
    assert text.startswith("Caught KeyError in DataLoader worker thread 0.\nOriginal Traceback (most recent call last):\n")
    assert 'raise KeyError("two")' in text and "\\n" not in text
    assert int(next(steps)) == 3
    with pytest.raises(StopIteration):
        next(steps)


def test_an_error_that_cannot_be_made_again_is_a_runtime_error():
    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    class Raises(Failing):
        def __getitem__(self, index):
            raise Odd(1, 2)

    with pytest.raises(RuntimeError, match="Caught Odd in DataLoader worker thread 0"):
        list(DataLoader(Raises(), num_workers=1))

    def refuse(worker):
        raise ValueError("no")

    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker thread 0"):
        list(DataLoader(TEN, num_workers=1, worker_init_fn=refuse))


class Leaving(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 2:
            raise SystemExit(3)
        return index


class Interrupted(IterableDataset):
    def __iter__(self):
        yield 0
        yield 1
        raise KeyboardInterrupt


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(("dataset", "cause"), [(Leaving(), "SystemExit"), (Interrupted(), "KeyboardInterrupt")])
def test_a_worker_that_ends_is_told_of(dataset, cause, in_order):
    # The timeout is there so that a consumer that waits for ever fails.
    steps = iter(DataLoader(dataset, num_workers=1, in_order=in_order, timeout=10))
    assert [int(next(steps)), int(next(steps))] == [0, 1]
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(thread\(s\) 0\) exited unexpectedly by {cause}"):
        next(steps)
    with pytest.raises(StopIteration):
        next(steps)


def test_a_worker_that_ends_at_once_is_told_of():
    def leave(worker):
        raise SystemExit(worker)

    with pytest.raises(RuntimeError, match="exited unexpectedly by SystemExit"):
        list(DataLoader(TEN, num_workers=2, worker_init_fn=leave, timeout=10))


class Modes(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        leaf = plimsoll.ones(2, 2, requires_grad=True)
        product = leaf @ leaf
        return product.requires_grad, product.is_inference(), product.dtype, plimsoll.is_autocast_cache_enabled()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (plimsoll.enable_grad(), (True, False, plimsoll.float32, True)),
        (plimsoll.no_grad(), (False, False, plimsoll.float32, True)),
        (plimsoll.inference_mode(), (False, True, plimsoll.float32, True)),
        (plimsoll.autocast("cpu", plimsoll.float16, cache_enabled=False), (True, False, plimsoll.float16, False)),
    ],
)
def test_workers_are_in_the_modes_of_the_line_that_makes_them(mode, expected):
    def as_they_are(samples):
        return samples

    with mode:
        steps = iter(DataLoader(Modes(), num_workers=1, collate_fn=as_they_are))
    assert list(steps) == [[expected]]


def test_workers_have_pytorchs_seeds_and_numbers_of_their_own():
    class Asks(Failing):
        def __getitem__(self, index):
            info = get_worker_info()
            assert info.worker_method == "thread" and info.rng.torch_generator.initial_seed() == info.seed
            return info.id, info.seed, info.num_workers

    plimsoll.manual_seed(11)
    told = [[int(part) for part in batch] for batch in DataLoader(Asks(), num_workers=2)]
    assert told == [[0, 3325388913236545215, 2], [1, 3325388913236545216, 2]] * 2
    assert get_worker_info() is None


@pytest.fixture
def workers_alive():
    """Asks which workers there are beside those that earlier tests may have left in a traceback."""
    before = threading.enumerate()
    return lambda: [t for t in threading.enumerate() if t.name.startswith("plimsoll data") and t not in before]


def test_leaving_early_stops_workers_and_leaves_no_byte(workers_alive):
    own = plimsoll.private_cpu()

    class Rows(Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, index):
            return plimsoll.zeros(256, device=own)

    for batch in DataLoader(Rows(), batch_size=4, num_workers=2):
        assert len(workers_alive()) == 2
        break
    del batch
    gc.collect()
    assert not workers_alive()
    assert plimsoll.memory_allocated(own) == 0


def test_persistent_workers_live_between_epochs_and_end_with_the_loader(workers_alive):
    names = set()

    class Names(Failing):
        def __getitem__(self, index):
            names.add(threading.get_ident())
            return index

    loader = DataLoader(Names(), num_workers=2, persistent_workers=True)
    assert numbers(loader) == [0, 1, 2, 3]
    next(iter(loader))
    assert numbers(loader) == [0, 1, 2, 3]
    assert len(names) == 2 and len(workers_alive()) == 2
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None and not workers_alive()


def test_workers_go_no_further_ahead_than_they_may():
    asked = []

    class Counts(Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, index):
            asked.append(index)
            return index

    steps = iter(DataLoader(Counts(), num_workers=2, prefetch_factor=3))
    for taken in range(1, 20):
        next(steps)
        assert len(asked) <= taken + 6


def test_a_worker_that_takes_too_long_is_told_of():
    wait = threading.Event()

    class Slow(Failing):
        def __getitem__(self, index):
            wait.wait(20)
            return index

    steps = iter(DataLoader(Slow(), num_workers=1, timeout=0.05))
    with pytest.raises(RuntimeError, match="timed out after 0.05 seconds"):
        next(steps)
    wait.set()


def test_batches_out_of_order_are_all_there():
    loader = DataLoader(TEN, num_workers=2, in_order=False)
    assert sorted(numbers(loader)) == TEN


def test_an_error_of_a_worker_keeps_no_batch_until_the_collector_comes():
    own = plimsoll.private_cpu()

    class Rows(Failing):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            if index == 8:
                raise ValueError("eight")
            return plimsoll.zeros(256, device=own)

    def consume():
        try:
            for _ in DataLoader(Rows(), batch_size=4, num_workers=2):
                pass
        except ValueError:
            return
        raise AssertionError("the error did not come")

    gc.disable()
    try:
        consume()
        assert plimsoll.memory_allocated(own) == 0
    finally:
        gc.enable()
