"""Inputs in chunks, evaluations and prefetchers on a stand-in: the same results, and bytes within the buffers."""

import collections
import gc
import os
import subprocess
import sys

import plimsoll as pm
import pytest
from plimsoll import nn
from plimsoll.utils.data import DataLoader, Prefetcher, TensorDataset, evaluate, process_in_chunks

CHUNK = 8 * 1024 * 4  # bytes of eight rows of 1024 numbers


def test_chunks_give_what_the_whole_gives():
    x = pm.arange(30.0).reshape(10, 3)
    whole = (x * 2).sum(1).tolist()
    gpu = pm.stand_in()
    for chunk in (1, 3, 10, 40, None):
        for options in ({}, {"device": gpu}, {"device": gpu, "results_on": gpu}, {"device": str(gpu)}):
            y = process_in_chunks(x, lambda rows: (rows * 2).sum(1), chunk, **options)
            assert y.device == (gpu if "results_on" in options else pm.device("cpu"))
            assert y.tolist() == whole
    empty = process_in_chunks(pm.empty(0, 3), lambda rows: rows.sum(1), 4)
    assert (tuple(empty.shape), empty.dtype) == ((0,), pm.float32)


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_the_device_holds_the_chunks_and_what_is_made_of_one(buffers):
    x = pm.ones(64, 1024)
    gpu = pm.stand_in(64 << 20)
    with pm.peak_scope(gpu) as peak:
        y = process_in_chunks(x, lambda rows: rows + 1, 8, device=gpu, prefetch_buffers=buffers)
    assert peak.allocated_bytes == (buffers + 1) * CHUNK
    assert pm.memory_allocated(gpu) == 0
    assert y.tolist() == [[2.0] * 1024] * 64


def test_on_one_device_a_chunk_is_a_view_and_results_are_joined_in_place():
    own = pm.private_cpu()
    x = pm.ones(16, 256, device=own)
    before = pm.memory_allocated(own)
    with pm.peak_scope(own) as peak:
        y = process_in_chunks(x, lambda rows: rows + 1, 4)
    # All results, and one chunk's before it is written there.
    assert peak.allocated_bytes - before == 16 * 1024 + 4 * 1024
    assert pm.memory_allocated(own) - before == 16 * 1024 and y.sum().item() == 2 * 16 * 256


def test_cached_memory_goes_back_when_it_is_told_to():
    x = pm.ones(4, 1 << 22)  # rows of 16 MiB, each in a segment of its own

    def reserved(**options):
        gpu, seen = pm.stand_in(256 << 20), []

        def sums(rows):
            seen.append(pm.memory_reserved(gpu))
            return (rows + 1).sum(1)

        process_in_chunks(x, sums, 1, device=gpu, prefetch_buffers=1, **options)
        return seen, pm.memory_reserved(gpu)

    seen, at_end = reserved()
    assert seen[0] < seen[1] == seen[3] and at_end >= 2 * (16 << 20)
    assert reserved(final_cleanup=True) == (seen, 0)
    each, at_end = reserved(cleanup_every=1)
    assert each == [seen[0]] * 4 and at_end == 0


def test_nothing_is_recorded_and_bad_results_are_named():
    x = pm.ones(4, 2, requires_grad=True)
    w = pm.ones(2, requires_grad=True)
    assert not process_in_chunks(x, lambda rows: rows * w, 2).requires_grad
    with pytest.raises(ValueError, match=r"shape \[\] of the 2 rows from 0 on; it must make one row"):
        process_in_chunks(x, lambda rows: rows.sum(), 2)
    with pytest.raises(ValueError, match=r"rows from 2 on has shape \[2, 1\]"):
        widths = iter([2, 1])
        process_in_chunks(x, lambda rows: rows[:, : next(widths)], 2)
    with pytest.raises(ValueError, match="at least 1"):
        process_in_chunks(x, lambda rows: rows, 0)
    with pytest.raises(ValueError, match="unsqueeze"):
        process_in_chunks(pm.tensor(1.0), lambda rows: rows)
    with pytest.raises(ZeroDivisionError):
        process_in_chunks(x, lambda rows: 1 / 0, 2, device=pm.stand_in())


def test_an_evaluation_keeps_one_batch_and_no_graph():
    gpu = pm.stand_in(64 << 20)
    model = nn.Linear(1024, 1, bias=False).to(gpu)
    held = pm.memory_allocated(gpu)
    loader = DataLoader(TensorDataset(pm.ones(32, 1024), pm.arange(32)), batch_size=8)
    kinds = []

    def loss(batch):
        x, y = batch
        assert x.device == y.device == gpu and not pm.is_grad_enabled()
        kinds.append(pm.memory_by_kind(gpu)["input"])
        return (model(x).sum() + y.sum()).item()

    with pm.peak_scope(gpu) as peak:
        results = evaluate(loader, loss, device=gpu, prefetch_buffers=2, final_cleanup=True)
    assert len(results) == 4 and results[1] - results[0] == pytest.approx(64.0, abs=1e-3)
    # Two batches (their labels are rounded to 512 bytes), one on its way.
    assert max(kinds) == 2 * (CHUNK + 512) and peak.allocated_bytes - held < 3 * CHUNK
    assert pm.memory_allocated(gpu) == held
    assert evaluate([1, 2, 3], lambda batch: batch * 2) == [2, 4, 6]


def test_a_prefetcher_keeps_the_form_of_batches():
    Pair = collections.namedtuple("Pair", ["x", "name"])
    gpu = pm.stand_in()
    x = pm.ones(3)
    batches = [x, (x, "a"), [x, {"deep": [x, 1]}], Pair(x, None), "text", 7]
    there = list(Prefetcher(batches, gpu, buffers=1))
    assert there[0].device == gpu and there[0].tolist() == [1.0] * 3
    assert isinstance(there[1], tuple) and there[1][0].device == gpu and there[1][1] == "a"
    assert there[2][1]["deep"][0].device == gpu and there[2][1]["deep"][1] == 1
    assert isinstance(there[3], Pair) and there[3].x.device == gpu
    assert there[4:] == ["text", 7]
    assert batches[2][1]["deep"][0] is x  # the program's own are left alone
    with pytest.raises(ValueError, match="4 buffers are not from 1 to 3"):
        Prefetcher(batches, gpu, buffers=4)


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_a_prefetcher_has_as_many_batches_there_as_buffers(buffers):
    gpu = pm.stand_in()
    loader = DataLoader(TensorDataset(pm.ones(32, 1024)), batch_size=8, num_workers=1)
    with pm.peak_scope(gpu) as peak:
        for (x,) in Prefetcher(loader, gpu, buffers):
            x.mul_(2)
            del x
    assert peak.allocated_bytes == buffers * CHUNK
    assert pm.memory_allocated(gpu) == 0


def test_errors_of_batches_come_through_and_early_exits_leave_nothing():
    gpu = pm.stand_in()

    def broken():
        yield pm.ones(4)
        raise KeyError("lost")

    ahead = Prefetcher(broken(), gpu)
    assert next(ahead).tolist() == [1.0] * 4
    with pytest.raises(KeyError, match="lost"):
        next(ahead)
    ahead = Prefetcher((pm.ones(1024) for _ in range(9)), gpu)
    next(ahead)
    del ahead
    gc.collect()
    pm.synchronize(gpu)
    assert pm.memory_allocated(gpu) == 0


PROGRAM = """
import plimsoll as pm
from plimsoll.utils.data import Prefetcher, evaluate, process_in_chunks
x = pm.ones(8, 1 << 21)
row = 1 << 23
gpu = pm.stand_in()
seen = []
with pm.peak_scope(gpu) as peak:
    process_in_chunks(x, lambda rows: seen.append(rows.shape[0]) or rows + 1, device=gpu)
assert seen == [2, 2, 2, 2], seen
assert peak.allocated_bytes == (3 + 1) * 2 * row, peak.allocated_bytes
assert pm.memory_reserved(gpu) == 0
seen = []
evaluate(list(x.split(1)), lambda rows: seen.append(pm.memory_reserved(gpu)), device=gpu, prefetch_buffers=1)
assert seen[0] == seen[1] == seen[2] > 0, seen
assert pm.memory_reserved(gpu) == 0
evaluate(list(x.split(1)), lambda rows: None, device=gpu, cleanup_every=0, final_cleanup=False)
assert pm.memory_reserved(gpu) > 0
"""


def test_what_calls_do_not_say_the_configuration_says():
    knobs = "chunk_size:2,prefetch_buffers:3,cleanup_every:1,final_cleanup:true"
    # Chunks of two rows, three of them there; cached memory goes back after each and at the end.
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env={**os.environ, "PLIMSOLL_CONF": knobs})
