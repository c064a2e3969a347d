"""The profiler from Python: PyTorch's names and tables over what Rust records, to the ledger's bytes."""

import gc
import gzip
import json
import time
import warnings

import pytest

import plimsoll as pm
from plimsoll.autograd import profiler as old
from plimsoll.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from plimsoll.utils.data import DataLoader, Dataset


def work(x):
    (x @ x).exp().sum().backward()


def leaf(n=8):
    return pm.ones(n, n, requires_grad=True)


def test_without_arguments():
    with profile() as prof:
        work(leaf())
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::exp"].count == 1
    assert rows["ExpBackward0"].scope == 1
    assert rows["aten::exp"].self_cpu_time_total > 0
    table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    assert "Self CPU %" in table and "CPU Mem" not in table
    assert table.splitlines()[-1].startswith("Self CPU time total: ")


@pytest.mark.parametrize("key", ["cpu_time", "self_cpu_time_total", "cuda_time_total", "self_device_memory_usage", "count"])
def test_sort_keys(key):
    with profile(profile_memory=True) as prof:
        work(leaf())
    assert prof.key_averages().table(sort_by=key)


def test_an_unknown_key_raises_as_pytorch_does():
    with profile() as prof:
        pm.ones(2).exp()
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'beauty'"):
        prof.key_averages().table(sort_by="beauty")


def test_self_bytes_are_the_ledgers():
    x = leaf()
    before = pm.memory_allocated()
    with profile(profile_memory=True) as prof:
        work(x)
        kept = x.detach() + 1
    assert sum(event.self_cpu_memory_usage for event in prof.events()) == pm.memory_allocated() - before
    assert prof.key_averages().total_average().self_cpu_memory_usage == 1024
    assert kept.numel() == 64


def test_events_lie_in_each_other():
    with profile(record_shapes=True, with_flops=True) as prof:
        with record_function("outer"):
            pm.ones(4, 3).mm(pm.ones(3, 2))
    events = prof.events()
    mm = next(event for event in events if event.name == "aten::mm")
    assert (mm.input_shapes, mm.flops, mm.cpu_parent.name) == ([[4, 3], [3, 2]], 48, "outer")
    assert mm.cpu_parent.is_user_annotation and mm in mm.cpu_parent.cpu_children
    assert mm.time_range.elapsed_us() == mm.cpu_time_total
    outer = mm.cpu_parent
    assert outer.self_cpu_time_total == outer.cpu_time_total - sum(c.cpu_time_total for c in outer.cpu_children)
    grouped = prof.key_averages(group_by_input_shape=True).table()
    assert "Input Shapes" in grouped and "[[4, 3], [3, 2]]" in grouped and "Total FLOPs" in grouped


def test_stacks_are_the_users_lines(tmp_path):
    def inner():
        return pm.ones(1 << 16).exp()

    with profile(with_stack=True) as prof:
        inner()
    exp = next(event for event in prof.events() if event.name == "aten::exp")
    assert "test_profiler.py(" in exp.stack[0] and exp.stack[0].endswith(": inner")
    assert exp.stack[1].endswith(": test_stacks_are_the_users_lines")
    table = prof.key_averages(group_by_stack_n=2).table()
    assert "Source Location" in table
    path = tmp_path / "stacks.txt"
    prof.export_stacks(str(path), "self_cpu_time_total")
    lines = path.read_text().splitlines()
    assert any("test_stacks_are_the_users_lines;" in line and line.rsplit(" ", 1)[1].isdigit() for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(path), "count")


def test_backward_has_the_forward_line():
    with profile(with_stack=True) as prof:
        y = leaf().exp()
        y.sum().backward()
    node = next(event for event in prof.events() if event.name == "ExpBackward0")
    assert node.stack[0].endswith(": test_backward_has_the_forward_line")


def test_a_trace_with_counters(tmp_path):
    with profile(profile_memory=True) as prof:
        kept = pm.ones(256)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())["traceEvents"]
    assert any(event["ph"] == "X" and event["name"] == "aten::ones" for event in trace)
    counters = [event for event in trace if event["ph"] == "C" and event["name"] == "memory cpu"]
    assert counters[-1]["args"]["allocated_bytes"] == pm.memory_allocated()
    packed = tmp_path / "trace.json.gz"
    prof.export_chrome_trace(str(packed))
    assert json.loads(gzip.decompress(packed.read_bytes()))["traceEvents"] == trace
    prof.export_memory_timeline(str(path))
    times, allocated = json.loads(path.read_text())
    assert times == sorted(times) and allocated[-1] == pm.memory_allocated()
    assert kept.numel() == 256
    with pytest.raises(RuntimeError, match="averages"):
        prof.key_averages().export_chrome_trace(str(path))


def test_a_schedule_is_pytorchs():
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    named = [plan(step).name for step in range(11)]
    cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert named == ["NONE", *cycle, *cycle, "NONE", "NONE"]
    assert schedule(wait=2, warmup=1, active=1, skip_first_wait=1)(0) == ProfilerAction.WARMUP
    with pytest.raises(AssertionError, match=r"active=0 \(need > 0\)"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=1, warmup=0, active=1)


def test_steps_by_a_schedule(tmp_path):
    ready = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = schedule(wait=1, warmup=1, active=1, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda prof: ready.append(prof.events())) as prof:
        for _ in range(8):
            pm.ones(4).exp()
            prof.step()
    steps = [[event.trace_name for event in events if event.name == "ProfilerStep*"] for events in ready]
    assert steps == [["ProfilerStep#2"], ["ProfilerStep#5"]]
    assert all(sum(event.name == "aten::exp" for event in events) == 1 for events in ready)
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), "worker")):
        pm.ones(4)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("worker.") and file.name.endswith(".pt.trace.json")


def test_activities():
    assert ProfilerActivity.CPU in supported_activities()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        pm.ones(4)
    assert len(prof.events()) > 0
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])


def test_a_range_as_a_decorator():
    @record_function("named")
    def countdown(n):
        return n and countdown(n - 1)

    countdown(3)  # nobody listens
    with profile() as prof:
        countdown(2)
    (row,) = prof.key_averages()
    assert (row.key, row.count, row.is_user_annotation) == ("named", 3, True)


def test_results_only_at_the_end():
    with profile() as prof, pytest.raises(AssertionError, match="end its block"):
        prof.events()


@pytest.mark.parametrize("kind", [profile, old.profile])
def test_one_that_starts_cancels_the_one_that_runs(kind):
    """As in PyTorch, where the outer one has no events then."""
    with kind() as outer:
        pm.ones(2).exp()
        with pytest.warns(UserWarning, match="it is cancelled") as told, kind() as inner:
            pm.ones(2).log()
        pm.ones(2).sin()
    assert told[0].filename == __file__
    assert list(outer.key_averages()) == []
    found = {row.key for row in inner.key_averages()}
    assert "aten::log" in found and not found & {"aten::exp", "aten::sin"}
    if kind is profile:
        with pytest.raises(AssertionError, match="start no other in it"):
            outer.advice()
    # One that was cancelled and forgotten leaves the others alone.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = kind(), kind()
        first.__enter__(), second.__enter__()
        del first
        pm.ones(2).exp()
        second.__exit__(None, None, None)
    assert "aten::exp" in {row.key for row in second.key_averages()}


def test_the_old_name():
    with old.profile(profile_memory=True, record_shapes=True) as prof:
        with old.record_function("range"):
            pm.ones(4, 4).exp()
    assert prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_memory_usage")
    assert prof.total_average().count == len(prof.function_events)
    assert prof.self_cpu_time_total > 0
    with old.profile(enabled=False) as none:
        pm.ones(4)
    assert none is None
    assert str(old.profile()) == "<unfinished torch.autograd.profile>"


def test_advice_names_the_line():
    x = pm.ones(256, 256)
    with profile() as prof:
        for _ in range(4):
            x.mm(x)
    first = prof.advice()[0]
    assert first.startswith("aten::mm takes ") and "test_profiler.py" in first
    assert first in prof.report()


# What a training loop opens by itself, by PyTorch's names


def ranges(prof):
    return [event.name for event in prof.events() if event.is_user_annotation]


def test_steps_and_cleared_gradients_are_ranges():
    model = pm.nn.Linear(8, 8)
    optimizer = pm.optim.Adam(model.parameters())
    with profile(profile_memory=True) as prof:
        model(pm.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert ranges(prof) == ["Optimizer.step#Adam.step", "Optimizer.zero_grad#Adam.zero_grad"]
    step, cleared = (event for event in prof.events() if event.is_user_annotation)
    assert step.cpu_children and step.cpu_parent is None
    # Two moments and a count for each of two parameters; each of at most 512 bytes.
    assert step.cpu_memory_usage == 6 * 512
    assert cleared.self_cpu_memory_usage == -2 * 512


def test_a_step_with_a_closure_lies_in_one_range():
    class Own(pm.optim.SGD):
        pass

    weight = pm.ones(4, requires_grad=True)

    def closure():
        loss = weight.exp().sum()
        loss.backward()
        return loss

    def negate(*_):
        weight.neg()

    optimizer = Own([weight], lr=0.1)
    optimizer.register_step_pre_hook(negate)
    with profile() as prof:
        optimizer.step(closure)
        pm.optim.LBFGS([weight], max_iter=1).step(closure)
    assert ranges(prof) == ["Optimizer.step#Own.step", "Optimizer.step#LBFGS.step"]
    inside = {event.cpu_parent.name for event in prof.events() if event.name == "aten::exp"}
    assert inside == set(ranges(prof))
    assert next(event.cpu_parent.name for event in prof.events() if event.name == "aten::neg") == ranges(prof)[0]


def test_ranges_end_with_what_fails():
    optimizer = pm.optim.SGD([pm.ones(2, requires_grad=True)], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: 1 / 0)
    with profile() as prof:
        with pytest.raises(ZeroDivisionError):
            optimizer.step()
        pm.ones(2)
    assert next(event for event in prof.events() if event.name == "aten::ones").cpu_parent is None


@pytest.mark.parametrize("workers, kind", [(0, "_SingleProcessDataLoaderIter"), (1, "_MultiProcessingDataLoaderIter")])
def test_waits_for_a_loader_are_ranges(workers, kind):
    loader = DataLoader(list(range(6)), batch_size=2, num_workers=workers)
    assert type(iter(loader)).__name__ == kind
    with profile() as prof:
        for _ in loader:
            pass
    # Three batches, and the end of the epoch.
    assert ranges(prof) == [f"enumerate(DataLoader)#{kind}.__next__"] * 4


class Slow(Dataset):
    """Four numbers, each of which takes some time to get."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return index


def looped(sample_seconds, compute_seconds, workers):
    with profile() as prof:
        for batch in DataLoader(Slow(sample_seconds), batch_size=2, num_workers=workers):
            with record_function("compute"):
                batch + 1
                time.sleep(compute_seconds)
    return prof.advice()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loop_that_waits_for_its_loader_is_told_so(workers):
    first = looped(0.02, 0.0, workers)[0]
    assert first.startswith("the loop waits for its loader for ") and "in 3 waits" in first
    # A worker's process takes a while to start.
    assert not any("waits for its loader" in line for line in looped(0.0, 0.5 + 1.5 * workers, workers))


def test_waits_copies_and_late_memory_are_told_of_on_a_device():
    gpu = pm.stand_in()
    x, host = pm.ones(1 << 20, device=gpu), pm.ones(1 << 20)
    pm.synchronize(gpu)

    def told(work):
        with profile() as prof:
            work()
        return "\n".join(prof.advice())

    assert "the host waits for the device for " in told(lambda: [x.exp().sum().item() for _ in range(20)])
    assert "waits for the device" not in told(lambda: time.sleep(0.05))
    assert "1 copies (4.00 MB" in told(lambda: host.to(gpu))
    assert "not pinned" not in told(lambda: host.pin_memory().to(gpu, non_blocking=True))
    assert "aten::exp takes " in told(lambda: [host.exp() for _ in range(8)])

    def one_small_operation():
        with record_function("the rest"):
            pm.ones(4)
            time.sleep(0.2)

    assert "aten::ones takes" not in told(one_small_operation)


@pytest.mark.parametrize("late", [True, False])
def test_memory_from_the_system_in_the_middle_of_training(late):
    own = pm.private_cpu()
    with profile(schedule=lambda step: ProfilerAction.RECORD) as prof:
        for step in range(3):
            pm.ones((64 if late and step == 2 else 1) << 18, device=own)
            prof.step()
    assert any("in the middle of training were served by the driver" in line for line in prof.advice()) == late


def assert_another_records():
    with profile() as prof:
        pm.ones(2).exp()
    assert [row.count for row in prof.key_averages() if row.key == "aten::exp"] == [1]


@pytest.mark.parametrize("make", [profile, old.profile])
def test_one_that_is_forgotten_does_not_stand_in_the_way(make):
    prof = make()
    prof.__enter__()
    del prof
    assert_another_records()


@pytest.mark.parametrize("make", [profile, old.profile])
def test_one_that_is_forgotten_in_a_circle_does_not_stand_in_the_way_either(make):
    forgotten = make()
    forgotten.itself = forgotten
    forgotten.__enter__()
    del forgotten
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_another_records()


def test_steps_before_the_start_record_nothing():
    prof = profile()
    prof.step()
    assert_another_records()
    with pytest.raises(AssertionError, match="Profiler must be initialized before stopping trace"):
        prof.stop()
    warming = profile(schedule=schedule(wait=0, warmup=1, active=1))
    with pytest.raises(AssertionError, match="Profiler must be initialized before starting trace"):
        warming.step()
    assert_another_records()


def test_stop_needs_a_start_and_may_come_twice():
    with pytest.raises(AssertionError, match="Profiler must be initialized before stopping trace"):
        profile().stop()
    prof = profile()
    prof.start()
    prof.stop()
    prof.stop()
    assert_another_records()


def test_started_twice_it_begins_anew():
    prof = profile()
    prof.start()
    pm.ones(2).exp()
    prof.start()
    pm.ones(2).sin()
    prof.stop()
    names = {row.key for row in prof.key_averages()}
    assert "aten::sin" in names and "aten::exp" not in names
    assert_another_records()


def test_stacks_need_to_have_been_recorded(tmp_path):
    with profile() as prof:
        pm.ones(2).exp()
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks.txt"))


def test_activities_are_of_their_class():
    with pytest.raises(TypeError, match="Expected ProfilerActivity, got <class 'str'>"):
        profile(activities=["cpu"])


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_trace_holds_what_a_program_says_of_itself(tmp_path, ending):
    path = tmp_path / f"trace.{ending}"
    with pm.profiler.profile() as prof:
        pm.ones(2) + 1
        prof.add_metadata("run", 'the "first"')
        prof.add_metadata_json("shape", '{"layers": [1, 2]}')
        prof.preset_metadata_json("later", "1")
    prof.add_metadata("late", "after the end")
    prof.export_chrome_trace(str(path))
    trace = json.loads(gzip.decompress(path.read_bytes()) if ending.endswith("gz") else path.read_bytes())
    assert trace["run"] == 'the "first"' and trace["shape"] == {"layers": [1, 2]}
    assert "later" not in trace and "late" not in trace and trace["schemaVersion"] == 1
    assert any(event.get("name") == "aten::add" for event in trace["traceEvents"])
    with pytest.raises(ValueError, match="'shape' is not JSON"):
        prof.add_metadata_json("shape", "{layers")
