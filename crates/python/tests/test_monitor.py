"""The monitor's peak is the allocator's own, its samples are what there was, and the tracker counts from its reset."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import xml.etree.ElementTree

import plimsoll
import pytest

MIB = 1 << 20


def test_the_peak_is_exact_however_short_it_lasts():
    device = plimsoll.private_cpu()
    kept = plimsoll.zeros(MIB, dtype=plimsoll.uint8, device=device)
    monitor = plimsoll.MemoryMonitor(interval=60, device=device)
    monitor.start()
    assert monitor.running
    plimsoll.zeros(5 * MIB, dtype=plimsoll.uint8, device=device)
    peak = monitor.stop()
    assert not monitor.running
    assert peak.allocated_bytes == 6 * MIB and peak == 6 * MIB / 1e9
    for again in (copy.copy(peak), pickle.loads(pickle.dumps(peak))):
        assert again == peak and vars(again) == vars(peak)
    assert peak.reserved_bytes >= peak.allocated_bytes and peak.resident_bytes > kept.nbytes
    assert [sample.allocated_bytes for sample in monitor.samples] == [MIB, MIB]
    assert monitor.stop() == peak


def test_it_samples_beside_the_program():
    device = plimsoll.private_cpu()
    with plimsoll.MemoryMonitor(interval=0.001, device=device) as monitor:
        x = plimsoll.zeros(MIB, dtype=plimsoll.uint8, device=device)
        while len(monitor.samples) < 5:
            threading.Event().wait(0.001)
    assert monitor.samples[0].allocated_bytes == 0 and monitor.samples[-1].allocated_bytes == x.nbytes
    head, *rows = monitor.to_csv().splitlines()
    assert head == "seconds,allocated_bytes,reserved_bytes,resident_bytes,other_bytes" and len(rows) == len(monitor.samples)
    assert int(rows[-1].split(",")[1]) == MIB


def test_it_is_the_target_of_a_thread_as_in_the_documents():
    monitor = plimsoll.MemoryMonitor()
    thread = threading.Thread(target=monitor.start, daemon=True)
    thread.start()
    thread.join()
    x = plimsoll.zeros(MIB, device=monitor.device)
    assert f"{monitor.stop():.2f}" == f"{monitor.peak_memory:.2f}"
    assert monitor.peak_memory >= x.nbytes / 1e9


def test_the_picture_is_written(tmp_path):
    device = plimsoll.private_cpu()
    with plimsoll.MemoryMonitor(interval=0.001, device=device) as monitor:
        plimsoll.zeros(MIB, device=device)
    monitor.to_svg(tmp_path / "memory.svg")
    root = xml.etree.ElementTree.parse(tmp_path / "memory.svg").getroot()
    names = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {f"memory of {device}", "process"} <= names


def test_wrong_use_is_told():
    with pytest.raises(ValueError, match="above 0"):
        plimsoll.MemoryMonitor(interval=0)
    monitor = plimsoll.MemoryMonitor(device="cpu")
    with pytest.raises(RuntimeError, match="not started"):
        monitor.stop()
    with pytest.raises(RuntimeError, match="not started"):
        monitor.to_csv()
    assert monitor.samples == [] and monitor.peak_memory == 0.0
    with monitor, pytest.raises(RuntimeError, match="runs already"):
        monitor.start()


def test_the_tracker_counts_from_its_reset(capsys):
    device = plimsoll.private_cpu()
    before = plimsoll.zeros(MIB, dtype=plimsoll.uint8, device=device)
    tracker = plimsoll.MemoryTracker(device)
    tracker.reset()
    kept = plimsoll.zeros(2 * MIB, dtype=plimsoll.uint8, device=device)
    plimsoll.zeros(MIB, dtype=plimsoll.uint8, device=device)
    assert (tracker.allocated_bytes, tracker.peak_bytes) == (2 * MIB, 3 * MIB)
    assert (tracker.get_allocated(), tracker.get_peak()) == (2 * MIB / 1e9, 3 * MIB / 1e9)
    tracker.print_stats("Model inference")
    assert capsys.readouterr().out == "Model inference - Allocated: 2.00 MiB, Peak: 3.00 MiB\n"
    del kept, before
    assert tracker.allocated_bytes == -MIB


def test_a_forked_process_has_no_thread_to_wait_for():
    monitor = plimsoll.MemoryMonitor(interval=60, device="cpu")
    monitor.start()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        monitor.stop()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    monitor.stop()
