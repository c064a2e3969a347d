"""What documents say of a device's memory and of what is done to free it, in bytes, on a stand-in. Sayings about training are in
`test_memory_claims.py`; which saying of which document is where is listed in `conformance/documents/claims.py`."""

import gc
import threading
from queue import Queue

import plimsoll as pm
import pytest
from plimsoll import nn
from plimsoll.utils.checkpoint import checkpoint

MIB = 1 << 20
# A thousand by a thousand numbers: 4,000,000 bytes, which the allocator rounds to its unit of 512.
SQUARE = 4_000_256


@pytest.fixture
def gpu():
    return pm.stand_in(capacity_bytes=256 * MIB)


def held(device):
    """Allocated bytes, once everything that was queued is done."""
    pm.synchronize(device)
    return pm.memory_allocated(device)


def square(device):
    return pm.randn(1000, 1000, device=device)


# Letting go


def test_the_last_name_frees_with_the_collector_off():
    device = pm.private_cpu()
    gc.disable()
    try:
        x = square(device)
        y = x
        del x
        assert pm.memory_allocated(device) == SQUARE  # y is the same tensor
        del y
        assert pm.memory_allocated(device) == 0
    finally:
        gc.enable()


def test_none_frees_as_del_does(gpu):
    x = square(gpu)
    assert held(gpu) == SQUARE
    x = None
    assert held(gpu) == 0
    outputs = square(gpu)
    kept = [outputs]  # another name keeps it, whatever becomes of the first
    outputs = None
    assert held(gpu) == SQUARE
    assert kept[0].shape == (1000, 1000) and (x, outputs) == (None, None)


def test_freed_memory_is_cached_and_used_again(gpu):
    x = square(gpu)
    address, reserved = x.data_ptr(), pm.memory_reserved(gpu)
    del x
    pm.synchronize(gpu)
    assert (pm.memory_allocated(gpu), pm.memory_reserved(gpu)) == (0, reserved)
    y = square(gpu)
    assert y.data_ptr() == address and pm.memory_reserved(gpu) == reserved


def test_emptying_the_cache_lowers_what_is_reserved_and_nothing_else(gpu):
    kept, dropped = square(gpu), pm.empty(30 * MIB // 4, device=gpu)
    pm.synchronize(gpu)
    del dropped
    allocated, reserved = held(gpu), pm.memory_reserved(gpu)
    assert (allocated, reserved) == (SQUARE, 50 * MIB)  # a block of 20 MiB that is cut, one of its own
    # Before and after: allocated bytes tell nothing of it.
    assert pm.empty_cache(gpu) == 30 * MIB
    assert (held(gpu), pm.memory_reserved(gpu)) == (allocated, 20 * MIB)
    del kept


def test_a_copy_on_the_host_frees_nothing_on_the_device(gpu):
    x = square(gpu)
    copy = x.cpu()
    assert held(gpu) == SQUARE
    del x
    assert held(gpu) == 0
    back = copy.to(gpu)
    assert held(gpu) == SQUARE and pm.equal(back.cpu(), copy)


def test_a_number_read_frees_nothing(gpu):
    weight = pm.ones(1000, device=gpu, requires_grad=True)
    before = held(gpu)
    loss = weight.exp().sum()
    loss.item()
    assert held(gpu) - before == 512 + 4096  # the loss, and what exp saved
    del loss
    assert held(gpu) == before


def test_much_more_reserved_than_allocated_is_cache_and_no_fragmentation(gpu):
    blocks = [pm.empty(20 * MIB // 4, device=gpu) for _ in range(3)]
    small = pm.empty(512, device=gpu)
    del blocks
    allocated, reserved = held(gpu), pm.memory_reserved(gpu)
    assert reserved > 1.5 * allocated  # what the documents call fragmentation
    # All of it is wholly free segments, which go back at once.
    assert pm.empty_cache(gpu) == 60 * MIB and pm.memory_reserved(gpu) == 2 * MIB
    del small


# Loops


def test_a_buffer_made_in_a_loop_is_the_same_memory_each_time(gpu):
    pm.zeros(1024, 1024).to(gpu)
    reserved, addresses = pm.memory_reserved(gpu), set()
    for _ in range(20):
        temp = pm.zeros(1024, 1024).to(gpu)
        addresses.add(temp.data_ptr())
        pm.synchronize(gpu)
        del temp
    assert len(addresses) == 1 and pm.memory_reserved(gpu) == reserved


def test_emptying_the_cache_in_every_iteration_asks_the_system_every_time(gpu):
    def segments():
        return pm.memory_stats(gpu)["segment.all.allocated"]

    def loop(empty_every):
        before = segments()
        for number in range(16):
            square(gpu)
            pm.synchronize(gpu)
            if number % empty_every == 0:
                pm.empty_cache(gpu)
        return segments() - before

    assert (loop(empty_every=1), loop(empty_every=8)) == (16, 3)


def test_moving_each_batch_holds_one_batch(gpu):
    model = nn.Linear(256, 256).to(gpu)
    batches = [pm.randn(64, 256) for _ in range(4)]
    before, one = held(gpu), 64 * 256 * 4
    pm.reset_peak_memory_stats(gpu)
    with pm.no_grad():
        for batch in batches:
            batch = batch.to(gpu)
            output = model(batch)
            pm.synchronize(gpu)
            assert held(gpu) - before == 2 * one
            del batch, output
    assert held(gpu) == before


def test_features_gathered_on_the_host_leave_the_device_empty(gpu):
    model = nn.Linear(64, 128).to(gpu)
    before, found = held(gpu), []
    with pm.no_grad():
        for _ in range(4):
            inputs = pm.randn(32, 64).to(gpu)
            features = model(inputs)
            found.append(features.cpu())
            del inputs, features
            assert held(gpu) == before
    assert pm.cat(found).shape == (128, 128)


def test_a_queue_of_two_holds_at_most_four_batches(gpu):
    # Two wait in the queue, one is being put there, one is being used.
    one, queue = 64 * 1024 * 4, Queue(maxsize=2)

    def load():
        for _ in range(12):
            queue.put(pm.randn(64, 1024).to(gpu))
        queue.put(None)

    worker = threading.Thread(target=load, daemon=True)
    worker.start()
    while True:
        batch = queue.get()
        if batch is None:
            break
        pm.synchronize(gpu)
        assert pm.memory_allocated(gpu) <= 4 * one
    worker.join()
    assert pm.max_memory_allocated(gpu) <= 4 * one
    del batch
    assert held(gpu) == 0


# Views and layout


def test_a_transposed_view_is_free_and_a_contiguous_one_a_copy():
    device = pm.private_cpu()
    x = pm.randn(512, 512, device=device)
    one = x.nbytes
    y = x.t()
    assert pm.memory_allocated(device) == one
    z = y.contiguous()
    assert pm.memory_allocated(device) == 2 * one and z.is_contiguous()
    again = z.contiguous()  # is so already
    assert again.data_ptr() == z.data_ptr() and pm.memory_allocated(device) == 2 * one
    flat = y.reshape(512 * 512)
    assert pm.memory_allocated(device) == 3 * one and not flat.data_ptr() == x.data_ptr()
    assert x.view(-1).data_ptr() == x.data_ptr() and pm.memory_allocated(device) == 3 * one


def test_views_share_one_storage():
    device = pm.private_cpu()
    x = pm.arange(12, device=device).reshape(3, 4)
    y = x[1:3, 1:3]
    assert x.data_ptr() != y.data_ptr()
    assert x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    assert pm.memory_allocated(device) == 512  # one block for both
    y[0, 0] = 100
    assert x[1, 1].item() == 100


def test_selecting_by_index_into_a_buffer_takes_no_second_one():
    device = pm.private_cpu()
    full, indices = pm.randn(1024, 128, device=device), pm.arange(512, device=device)
    buffer = pm.empty(512, 128, device=device)
    before = pm.memory_allocated(device)
    pm.reset_peak_memory_stats(device)
    pm.index_select(full, 0, indices, out=buffer)
    assert pm.max_memory_allocated(device) == before
    subset = full[indices]
    assert pm.memory_allocated(device) == before + buffer.nbytes and pm.equal(subset, buffer)


# Figures


def test_three_ways_to_run_a_linear_layer_as_they_are_measured(gpu):
    # The result of the run before is still alive in the second and third: they seem to cost more.
    model, data = nn.Linear(1024, 1024).to(gpu), pm.randn(128, 1024).to(gpu)
    one, peaks = 128 * 1024 * 4, []
    for mode in (None, pm.no_grad, pm.inference_mode):
        pm.reset_peak_memory_stats(gpu)
        if mode is None:
            output = model(data)
        else:
            with mode():
                output = model(data)
        pm.synchronize(gpu)
        peaks.append(pm.max_memory_allocated(gpu))
    assert [peak - peaks[0] for peak in peaks] == [0, one, one]
    del output


def test_the_fraction_caps_what_is_reserved_and_resetting_peaks_leaves_it(gpu):
    before = pm.set_per_process_memory_fraction(0.25, gpu)
    assert before == 1.0
    kept = pm.empty(40 * MIB // 4, device=gpu)
    with pytest.raises(pm.OutOfMemoryError):
        pm.empty(40 * MIB // 4, device=gpu)
    pm.empty_cache(gpu)  # keeps no block back, and does not lift the cap
    pm.reset_peak_memory_stats(gpu)
    with pytest.raises(pm.OutOfMemoryError):
        pm.empty(40 * MIB // 4, device=gpu)
    assert pm.set_per_process_memory_fraction(1.0, gpu) == 0.25
    more = pm.empty(40 * MIB // 4, device=gpu)
    del kept, more


def test_every_layer_checkpointed_costs_more_than_none(gpu):
    def network():
        layers = [part for _ in range(2) for part in (nn.Linear(256, 256), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(256, 256)).to(gpu)

    model, one = network(), 64 * 256 * 4
    data = pm.randn(64, 256, requires_grad=True).to(gpu)
    before = held(gpu)

    def kept(run):
        output = run(data)
        output = output.sum() if output.dim() else output
        return held(gpu) - before

    def by_layers(x):
        for layer in model:
            x = checkpoint(layer, x, use_reentrant=False)
        return x

    def whole(x):
        return checkpoint(model, x, use_reentrant=False)

    plain, layers, together = kept(model), kept(by_layers), kept(whole)
    assert together < plain < layers
    assert layers - plain == 2 * one  # the inputs of both ReLUs, which they themselves do not save


# What two blocks of comments tell one to do


def test_where_memory_grows_is_found_by_running_more_of_the_loop():
    """First the forward pass alone, then with backward, then with the step: the first that grows has the leak."""
    device = pm.private_cpu()
    model = nn.Linear(128, 128).to(device)
    optimizer = pm.optim.Adam(model.parameters(), lr=1e-3)
    batch, history = pm.randn(64, 128, device=device), []

    def loop(part, leaks_in=None, steps=4):
        found = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            if part != "forward":
                loss.backward()
            if part == "step":
                optimizer.step()
            if leaks_in is not None and (leaks_in == part or part == "step" or leaks_in == "forward"):
                history.append(model(batch) if leaks_in == "forward" else model.weight.detach().clone())
            del loss
            found.append(pm.memory_allocated(device))
        return found

    def grows(figures):
        # The first iteration makes gradients and states.
        return figures[-1] > figures[1]

    for part in ("forward", "backward", "step"):
        assert not grows(loop(part)), part
    assert grows(loop("forward", leaks_in="forward"))
    history.clear()
    assert [grows(loop(part, leaks_in="step")) for part in ("forward", "backward", "step")] == [False, False, True]
    # The book names the line without any search.
    rows = pm.memory_by_line(device)
    leaked = [row for row in rows if row["operation"] == "clone"]
    assert sum(row["count"] for row in leaked) == 4 and sum(row["bytes"] for row in leaked) == 4 * 128 * 128 * 4


@pytest.mark.parametrize(
    "reads",
    [pm.Tensor.item, pm.Tensor.cpu, str, bool, lambda loss: loss.tolist()],
    ids=["item", "cpu", "print", "assert", "tolist"],
)
def test_reading_a_value_waits_for_the_device_and_is_told_of(gpu, reads):
    x = pm.randn(512, 512, device=gpu)
    pm.synchronize(gpu)

    def told(read):
        with pm.profiler.profile() as prof:
            for _ in range(10):
                read((x @ x).sum())
        return "\n".join(prof.advice())

    assert "the host waits for the device for " in told(reads)
    assert "waits for the device" not in told(lambda _: None)
