"""Bytes, lines and reports: what Plimsoll adds to PyTorch."""

import json
import pathlib
import pickle
import threading

import pytest

import plimsoll as pm


def own():
    return pm.private_cpu()


def test_bytes_are_counted_and_freed():
    device = own()
    x = pm.zeros(256, device=device)
    assert pm.memory_allocated(device) == 1024
    y = x + 1
    assert pm.memory_allocated(device) == 2048
    del x, y
    assert pm.memory_allocated(device) == 0
    assert pm.max_memory_allocated(device) == 2048
    assert pm.memory_reserved(device) > 0
    assert pm.empty_cache(device) > 0
    assert pm.memory_reserved(device) == 0


def test_statistics_have_the_keys_of_pytorch():
    device = own()
    x = pm.zeros(256, device=device)
    stats = pm.memory_stats(device)
    assert len(stats) == 123
    assert stats["allocated_bytes.all.current"] == 1024
    assert "Allocated memory" in pm.memory_summary(device)
    del x


def test_peaks_of_a_region():
    device = own()
    kept = pm.zeros(256, device=device)
    with pm.peak_scope(device) as peak:
        pm.zeros(1024, device=device)
        pm.reset_peak_memory_stats(device)
        assert peak.allocated_bytes == 1024 + 4096
    assert peak.allocated_bytes == 1024 + 4096
    assert pm.max_memory_allocated(device) == 1024
    del kept


def line_of(marker):
    with open(__file__, encoding="utf-8") as source:
        return next(n for n, text in enumerate(source, 1) if text.rstrip().endswith("# " + marker))


def make_some(device):
    return pm.ones(512, device=device)  # the ones


def test_origins_are_python_lines():
    device = own()
    x = make_some(device)
    y = x.exp()  # the exponential
    rows = {row["operation"]: row for row in pm.memory_by_line(device)}
    assert rows["exp"]["file"] == __file__
    assert rows["exp"]["line"] == line_of("the exponential")
    assert rows["exp"]["function"] == "test_origins_are_python_lines"
    assert rows["ones"]["line"] == line_of("the ones")
    assert rows["ones"]["function"] == "make_some"
    assert rows["exp"]["bytes"] == 2048
    del x, y


def test_a_line_of_this_package_is_no_origin():
    device = own()
    # As if a module of the package were written in Python.
    inside = str(pathlib.Path(pm.__file__).with_name("made_up.py"))
    scope = {"pm": pm}
    source = "def make(device):\n    return twice(device)\n\ndef twice(device):\n    return pm.ones(512, device=device)\n"
    exec(compile(source, inside, "exec"), scope)
    for _ in range(2):
        x = scope["make"](device)  # the user's line
        (row,) = pm.memory_by_line(device)
        assert (row["file"], row["line"]) == (__file__, line_of("the user's line"))
        assert row["function"] == "test_a_line_of_this_package_is_no_origin"
        del x


def test_backward_keeps_the_forward_lines():
    device = own()
    x = pm.ones(512, device=device, requires_grad=True)
    y = x.tanh().sum()  # the forward line
    y.backward()
    lines = {row["line"] for row in pm.memory_by_line(device, peak=True) if row["phase"] == "backward"}
    assert line_of("the forward line") in lines


def test_kinds():
    device = own()
    w = pm.ones(256, device=device, requires_grad=True).mark_parameter()
    x = pm.ones(512, device=device).mark_input()
    state = pm.zeros(128, device=device).mark_optimizer_state()
    (w * w).sum().backward()
    kinds = pm.memory_by_kind(device)
    assert kinds["parameter"] == 1024
    assert kinds["input"] == 2048
    assert kinds["optimizer state"] == 512
    assert kinds["gradient"] == 1024
    del w, x, state


def test_out_of_memory_is_survived_and_explained():
    device = pm.private_cpu("memory_limit:64MiB")
    kept = pm.zeros(4 << 20, device=device)  # the big one
    with pytest.raises(pm.OutOfMemoryError) as caught:
        pm.zeros(32 << 20, device=device)
    assert isinstance(caught.value, RuntimeError)
    report = caught.value.report
    assert report["requested_bytes"] == 128 << 20
    assert report["allocated_bytes"] == 16 << 20
    assert report["limit_bytes"] == 64 << 20
    assert report["top_origins"][0]["line"] == line_of("the big one")
    assert pm.memory_allocated(device) == 16 << 20
    del kept
    assert pm.set_memory_limit(None, device) == 64 << 20
    assert pm.zeros(32 << 20, device=device).numel() == 32 << 20


def test_snapshots(tmp_path):
    device = own()
    pm.record_memory_history("all", device=device)
    x = pm.zeros(256, device=device)  # the recorded line
    snapshot = pm.memory_snapshot(device)
    traces = [event for trace in snapshot["device_traces"] for event in trace]
    event = next(event for event in traces if event["action"] == "alloc")
    assert event["size"] == 1024
    lines = [frame["line"] for frame in event["frames"] if frame["filename"] == __file__]
    assert lines == [line_of("the recorded line")]
    pm.dump_snapshot(tmp_path / "snapshot.pickle", device)
    assert pickle.loads((tmp_path / "snapshot.pickle").read_bytes())["segments"]
    pm.dump_snapshot(tmp_path / "snapshot.json", device)
    assert json.loads((tmp_path / "snapshot.json").read_text())["segments"]
    pm.record_memory_history(None, device=device)
    del x


def test_a_dry_run_counts_without_memory():
    dry = pm.dry(own())
    x = pm.zeros(1 << 30, dtype=pm.uint8, device=dry)
    assert pm.memory_allocated(dry) == 1 << 30
    with pytest.raises(RuntimeError):
        x.tolist()


def test_threads_work_while_others_do():
    device = own()

    def work():
        for _ in range(200):
            x = pm.ones(1000, device=device)
            assert (x + x).sum().item() == 2000

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        pm.memory_by_line(device)
    for thread in threads:
        thread.join()
    assert pm.memory_allocated(device) == 0


def test_wrong_settings():
    with pytest.raises(ValueError):
        pm.private_cpu("no_such_key:1")
    with pytest.raises(ValueError):
        pm.record_memory_history("everything")
    with pytest.raises(ValueError):
        pm.set_per_process_memory_fraction(1.5)


def test_pools():
    device = pm.private_cpu()
    pool, other = pm.MemPool(device), pm.MemPool(device)
    assert pool.device == device and pool.id != other.id
    with pm.use_mem_pool(pool):
        x = pm.zeros(256, device=device)
        with pm.use_mem_pool(other):
            y = pm.zeros(512, device=device)
    z = pm.zeros(256, device=device)
    assert (pool.active_bytes, other.active_bytes) == (1024, 2048)
    assert pool.reserved_bytes == other.reserved_bytes == 2 << 20
    assert pm.memory_reserved(device) == 3 * (2 << 20)
    del x, y, pool, other
    assert pm.memory_reserved(device) == 2 << 20 and z.tolist() == [0.0] * 256
