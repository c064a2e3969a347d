"""`plimsoll.utils.data`. Expected orders, seeds and messages are PyTorch 2.15's, recorded from it."""

import collections
import warnings

import plimsoll
import pytest
from plimsoll import tensor
from plimsoll.utils import data
from plimsoll.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

TEN = list(range(10))


def seeded(seed):
    return plimsoll.Generator().manual_seed(seed)


def lists(loader):
    return [batch.tolist() for batch in loader]


def numbers(loader):
    return [int(batch) for batch in loader]


@pytest.fixture(autouse=True)
def no_warning_of_few_processors():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


# Orders


def test_a_shuffled_loader_has_pytorchs_order():
    assert numbers(DataLoader(TEN, shuffle=True, generator=seeded(7))) == [1, 3, 5, 7, 9, 4, 6, 2, 8, 0]


def test_the_second_epoch_of_one_generator_too():
    generator = seeded(5)
    numbers(DataLoader(TEN, shuffle=True, generator=generator))
    assert numbers(DataLoader(TEN, shuffle=True, generator=generator)) == [2, 1, 6, 3, 5, 9, 4, 7, 8, 0]


@pytest.mark.parametrize("workers", [0, 2])
def test_so_has_one_by_the_programs_seed(workers):
    plimsoll.manual_seed(3)
    loader = DataLoader(TEN, batch_size=4, shuffle=True, num_workers=workers)
    assert lists(loader) == [[6, 2, 0, 1], [8, 3, 5, 4], [7, 9]]
    assert lists(loader) == [[3, 4, 0, 9], [6, 7, 1, 2], [5, 8]]


def test_a_state_that_is_set_again_gives_the_same_order():
    generator = seeded(5)
    list(RandomSampler(range(1000), generator=generator))
    state = generator.get_state()
    first = list(RandomSampler(range(1000), generator=generator))
    generator.set_state(state)
    assert list(RandomSampler(range(1000), generator=generator)) == first
    other = plimsoll.Generator()
    other.set_state(state)
    assert list(RandomSampler(range(1000), generator=other)) == first


def test_samplers_draw_as_pytorchs_do():
    assert list(RandomSampler(TEN, True, 40, seeded(1))) == [
        5, 9, 4, 8, 3, 3, 1, 1, 9, 2, 8, 9, 6, 3, 3, 0, 2, 1, 2, 6, 0, 3, 6, 4, 3, 6, 4, 2, 9, 4, 8, 6, 7, 3, 7, 3, 3, 6, 2, 0,
    ]  # fmt: skip
    assert list(RandomSampler(range(2**31 + 7), True, 3, seeded(1))) == [682370859, 1494711077, 543412631]
    assert list(RandomSampler(range(2**40), True, 3, seeded(1))) == [163196666091, 605300724808, 1095766950793]
    assert list(RandomSampler(TEN, num_samples=25, generator=seeded(1))) == [
        5, 6, 1, 2, 0, 8, 9, 3, 7, 4, 2, 3, 1, 8, 9, 0, 6, 7, 4, 5, 2, 8, 1, 5, 6,
    ]  # fmt: skip
    assert list(SubsetRandomSampler([5, 7, 9, 11], seeded(1))) == [7, 11, 9, 5]
    weighted = WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], 12, True, seeded(1))
    assert list(weighted) == [1, 2, 2, 2, 4, 1, 4, 4, 4, 4, 4, 3]
    assert [len(sampler) for sampler in (weighted, RandomSampler(TEN, True, 40))] == [12, 40]


def test_weights_without_replacement_draw_each_once():
    drawn = list(WeightedRandomSampler([1.0, 0.0, 2.0, 5.0], 3, False, seeded(1)))
    assert sorted(drawn) == [0, 2, 3]
    firsts = [next(iter(WeightedRandomSampler([1.0, 9.0], 1, False, seeded(n)))) for n in range(300)]
    assert 240 < sum(firsts) < 300


def test_parts_are_pytorchs():
    parts = random_split(range(11), [0.3, 0.3, 0.4], seeded(42))
    assert [list(part.indices) for part in parts] == [[6, 8, 9, 2], [1, 10, 0], [7, 3, 5, 4]]
    assert [len(part) for part in random_split(TEN, [3, 7], seeded(0))] == [3, 7]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(TEN, [3, 8])
    with pytest.raises(ValueError, match="Fraction at index 0"):
        random_split(TEN, [1.5, -0.5])
    with pytest.warns(UserWarning, match="split at index 1 is 0"):
        random_split(range(1), [0.5, 0.5])


def test_batches_of_keys():
    assert list(BatchSampler(SequentialSampler(TEN), 4, False)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(BatchSampler(TEN, 4, True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [len(BatchSampler(TEN, 4, drop)) for drop in (False, True)] == [3, 2]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: RandomSampler(TEN, num_samples=0), ValueError, "num_samples should be a positive"),
        (lambda: RandomSampler([], True), ValueError, "num_samples=0"),
        (lambda: RandomSampler(TEN, replacement=1), TypeError, "replacement should be a boolean"),
        (lambda: BatchSampler(TEN, 0, False), ValueError, "batch_size should be a positive"),
        (lambda: BatchSampler(TEN, True, False), ValueError, "batch_size=True"),
        (lambda: BatchSampler(TEN, 2, 1), ValueError, "drop_last should be a boolean"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "1d sequence"),
        (lambda: list(WeightedRandomSampler([-1.0, 2.0], 1)), RuntimeError, "."),
    ],
)
def test_bad_samplers_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


# Datasets


def test_datasets_of_others():
    x, y = plimsoll.arange(6).view(3, 2), plimsoll.arange(3)
    rows = TensorDataset(x, y)
    assert len(rows) == 3
    assert [part.tolist() for part in rows[1]] == [[2, 3], 1]
    with pytest.raises(AssertionError, match="Size mismatch"):
        TensorDataset(x, plimsoll.arange(2))
    joined = Subset(TEN, [7, 8]) + Subset(TEN, [1])
    assert isinstance(joined, ConcatDataset)
    assert [joined[at] for at in (0, 2, -1, -3)] == [7, 1, 1, 7]
    assert joined.cumulative_sizes == [2, 3]
    with pytest.raises(ValueError, match="absolute value"):
        joined[-4]
    with pytest.raises(AssertionError, match="empty"):
        ConcatDataset([])
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]


def test_datasets_side_by_side():
    assert StackDataset(TEN, TEN[::-1])[2] == (2, 7)
    named = StackDataset(a=TEN, b=Subset(TEN, TEN[::-1]))
    assert named[2] == {"a": 2, "b": 7}
    assert named.__getitems__([0, 9]) == [{"a": 0, "b": 9}, {"a": 9, "b": 0}]
    assert lists(DataLoader(StackDataset(TEN), batch_size=5).__iter__().__next__()) == [[0, 1, 2, 3, 4]]
    with pytest.raises(ValueError, match="At least one"):
        StackDataset()
    with pytest.raises(ValueError, match="both types"):
        StackDataset(TEN, a=TEN)
    with pytest.raises(ValueError, match="Size mismatch"):
        StackDataset(TEN, [1])


def test_a_subset_asks_for_whole_batches():
    class AtOnce(list):
        def __getitems__(self, keys):
            return [self[key] * 10 for key in keys]

    assert lists(DataLoader(Subset(AtOnce(TEN), [3, 4]), batch_size=2)) == [[30, 40]]

    class Half(Subset):
        def __getitem__(self, idx):
            return 0

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__"):
        Half(TEN, [1])


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(7))
        return iter(range(info.id, 7 + info.id * 4, info.num_workers))


@pytest.mark.parametrize(
    ("workers", "batches", "full"),
    [
        (0, [[0, 1], [2, 3], [4, 5], [6]], [[0, 1], [2, 3], [4, 5]]),
        (1, [[0, 1], [2, 3], [4, 5], [6]], [[0, 1], [2, 3], [4, 5]]),
        (2, [[0, 2], [1, 3], [4, 6], [5, 7], [9]], [[0, 2], [1, 3], [4, 6], [5, 7]]),
        (3, [[0, 3], [1, 4], [2, 5], [6], [7, 10], [8, 11], [14]], [[0, 3], [1, 4], [2, 5], [7, 10], [8, 11]]),
    ],
)
def test_workers_go_through_a_stream_in_turn(workers, batches, full):
    loader = DataLoader(Stream(), batch_size=2, num_workers=workers, persistent_workers=workers > 0)
    assert lists(loader) == batches
    assert lists(loader) == batches
    assert lists(DataLoader(Stream(), batch_size=2, num_workers=workers, drop_last=True)) == full


def test_worker_init_fn_gives_each_worker_its_part():
    class Span(IterableDataset):
        def __init__(self):
            self.start, self.end = 3, 7

        def __iter__(self):
            return iter(range(self.start, self.end))

    def halve(worker):
        info = get_worker_info()
        assert info.id == worker
        info.dataset.start, info.dataset.end = 3 + 2 * worker, 5 + 2 * worker

    whole = Span()
    assert numbers(DataLoader(whole, num_workers=2)) == [3, 3, 4, 4, 5, 5, 6, 6]
    assert numbers(DataLoader(whole, num_workers=2, worker_init_fn=halve)) == [3, 5, 4, 6]
    assert (whole.start, whole.end) == (3, 7)


def test_chained_streams():
    chain = Stream() + Stream()
    assert isinstance(chain, ChainDataset)
    assert list(chain) == [*range(7), *range(7)]
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([TEN]))


def test_a_stream_that_is_longer_than_it_said_is_warned_of():
    class Short(Stream):
        def __len__(self):
            return 5

    loader = DataLoader(Short())
    assert len(loader) == 5
    with pytest.warns(UserWarning, match="was reported to be 5"):
        assert len(numbers(loader)) == 7


# Batches


def test_samples_side_by_side():
    Point = collections.namedtuple("Point", "x y")
    assert default_collate([0, 1]).tolist() == [0, 1]
    assert default_collate([0.5, 1.0]).dtype == plimsoll.float64
    assert default_collate([True, False]).dtype == plimsoll.bool
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([{"a": 0, "b": 1}, {"a": 100, "b": 100}])["a"].tolist() == [0, 100]
    pair = default_collate([Point(0, 1), Point(2, 3)])
    assert isinstance(pair, Point) and pair.y.tolist() == [1, 3]
    assert [part.tolist() for part in default_collate([(0, 1), (2, 3)])] == [[0, 2], [1, 3]]
    assert [part.tolist() for part in default_collate([[0, 1], [2, 3]])] == [[0, 2], [1, 3]]
    assert default_collate([tensor([1.0]), tensor([2.0])]).tolist() == [[1.0], [2.0]]
    ordered = default_collate([collections.OrderedDict(z=1, a=2)])
    assert isinstance(ordered, collections.OrderedDict) and list(ordered) == ["z", "a"]
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="must contain tensors.*object"):
        default_collate([object()])
    with pytest.raises(RuntimeError, match=r"\[2\] at entry 0 and \[3\] at entry 1"):
        default_collate([plimsoll.zeros(2), plimsoll.zeros(3)])


def test_arrays_become_tensors():
    numpy = pytest.importorskip("numpy")
    assert default_collate([numpy.arange(2), numpy.arange(2)]).tolist() == [[0, 1], [0, 1]]
    assert default_collate([numpy.float64(1.5), numpy.float64(2.5)]).tolist() == [1.5, 2.5]
    converted = default_convert({"a": numpy.ones(2), "b": (numpy.zeros(1), "text")})
    assert converted["a"].tolist() == [1, 1] and converted["b"][0].tolist() == [0] and converted["b"][1] == "text"
    assert default_convert(5) == 5
    with pytest.raises(TypeError, match="found <U1|found"):
        default_collate([numpy.array(["a"])])


def test_without_batches_samples_come_as_they_are():
    assert list(DataLoader([5, "a"], batch_size=None)) == [5, "a"]
    assert list(DataLoader(TEN, batch_size=None, sampler=[3, 1], num_workers=1)) == [3, 1]
    assert lists(DataLoader(TEN, batch_sampler=[[1, 2], [3]], num_workers=2)) == [[1, 2], [3]]
    assert list(DataLoader(TEN, batch_size=5, collate_fn=sum)) == [10, 35]


def test_batches_are_inputs_of_the_line_that_asks():
    own = plimsoll.private_cpu()
    rows = TensorDataset(plimsoll.zeros(8, 256, device=own))
    for workers in ({"num_workers": 0}, {"num_workers": 1, "multiprocessing_context": "thread"}):
        batches = list(DataLoader(rows, batch_size=4, **workers))  # this line
        assert plimsoll.memory_by_kind(own)["input"] == 2 * 4096
        [line] = [row for row in plimsoll.memory_by_line(own) if "stack" in str(row)]
        assert "test_utils_data.py" in str(line)
        del batches


def test_pinning_needs_an_accelerator():
    with pytest.warns(UserWarning, match="no accelerator is found") if not data.dataloader._has_accelerator() else (
        warnings.catch_warnings()
    ):
        batch = next(iter(DataLoader([plimsoll.zeros(2)], pin_memory=True)))
    assert batch.is_pinned() == data.dataloader._has_accelerator()


def test_pinning_goes_into_what_a_batch_is_made_of():
    class Own:
        def pin_memory(self):
            return "pinned"

    pinned = data._collate.pin_memory({"a": [plimsoll.zeros(2), "text"], "b": (Own(), 5)})
    assert pinned["a"][0].is_pinned() and pinned["a"][1] == "text"
    assert pinned["b"] == ("pinned", 5)


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used"),
        ({"num_workers": 1, "multiprocessing_context": "bad"}, "valid start method"),
    ],
)
def test_options_that_contradict_are_refused_in_pytorchs_words(options, words):
    with pytest.raises(ValueError, match=words):
        DataLoader(TEN, **options)


def test_a_stream_takes_no_order():
    for options in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspecified"):
            DataLoader(Stream(), **options)
    assert len(numbers(DataLoader(Stream(), shuffle=False))) == 7


def test_what_is_fixed_cannot_be_changed():
    loader = DataLoader(TEN, num_workers=1)
    assert (loader.prefetch_factor, loader.batch_size, len(loader)) == (2, 1, 10)
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 2
    with pytest.raises(NotImplementedError):
        iter(DataLoader(TEN)).__getstate__()


@pytest.mark.parametrize("given", [{}, {"rank": 0}, {"num_replicas": 2}])
def test_a_distributed_sampler_without_a_process_group_is_a_value_error(given):
    with pytest.raises(ValueError, match="give num_replicas and rank"):
        data.DistributedSampler(range(3), **given)


def test_draws_in_workers_follow_from_the_loaders_seed():
    class Noise(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return plimsoll.rand(2)

    def drawn():
        return [batch.tolist() for batch in DataLoader(Noise(), batch_size=2, num_workers=2, generator=seeded(3))]

    before = plimsoll.get_rng_state()
    first = drawn()
    assert plimsoll.equal(plimsoll.get_rng_state(), before), "the program's own numbers are not used up"
    plimsoll.rand(5)
    assert drawn() == first and len({str(batch) for batch in first}) == 4
