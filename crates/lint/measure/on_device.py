"""The figures on the rule pages that need a CUDA device: `python crates/lint/measure/on_device.py`.

Bytes come from PyTorch's own counters (live, peak and reserved bytes, requests to the driver) and, for copies, from the
profiler's record of what crossed the bus. Each part prints what it measured under the name of its rule.
"""

import json
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from parts import run_all, say

DEVICE = torch.device("cuda")
MIB4 = 4 * 1024 * 1024


def fresh():
    """An empty cache and counters at zero."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()


def driver_requests():
    return torch.cuda.memory_stats()["num_device_alloc"]


def milliseconds(work, times=50):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3 / times


def copied(work):
    """Bytes that crossed the bus, by direction and kind of host memory, while the work ran once."""
    work()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    found = {}
    for event in events:
        if event.get("cat") == "gpu_memcpy":
            found[event["name"]] = found.get(event["name"], 0) + int(event["args"]["bytes"])
    return found


def layers():
    return nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(1024, 1024), nn.ReLU())]).to(DEVICE)


def allocation_in_loop():
    x = torch.ones(1024, 1024, device=DEVICE)

    def each_time():
        buffer = torch.zeros(1024, 1024, device=DEVICE)
        return buffer.add_(x)

    kept = torch.zeros(1024, 1024, device=DEVICE)

    def once():
        return kept.zero_().add_(x)

    fresh()
    before, requests = torch.cuda.memory_allocated(), driver_requests()
    for _ in range(1000):
        each_time()
    say("allocation-in-loop", bytes_each=MIB4, live_growth=torch.cuda.memory_allocated() - before,
        peak=torch.cuda.max_memory_allocated() - before, driver_requests_in_1000=driver_requests() - requests)
    say("allocation-in-loop", ms_made_each_time=round(milliseconds(each_time, 1000), 4), ms_reset=round(milliseconds(once, 1000), 4))


def create_then_move():
    fresh()
    say("create-then-move", moved=copied(lambda: torch.zeros(1024, 1024).to(DEVICE)),
        made_there=copied(lambda: torch.zeros(1024, 1024, device=DEVICE)))
    say("create-then-move", ms_moved=round(milliseconds(lambda: torch.zeros(1024, 1024).to(DEVICE)), 3),
        ms_made_there=round(milliseconds(lambda: torch.zeros(1024, 1024, device=DEVICE)), 4))


def data_parallel_device():
    model = nn.DataParallel(nn.Linear(1024, 1024).to(DEVICE))
    batch, target = torch.randn(256, 1024), torch.randn(256, 1024)
    model(batch)
    fresh()
    before = torch.cuda.memory_allocated()
    with torch.no_grad():
        output = model(batch)
    say("data-parallel-device", output_device=str(output.device), output_bytes=output.nbytes,
        live_on_first=torch.cuda.memory_allocated() - before, devices=torch.cuda.device_count())
    try:
        F.mse_loss(output, target)
    except RuntimeError as error:
        say("data-parallel-device", raises=str(error).splitlines()[0])


def device_mismatch():
    a, b = torch.randn(1024, 1024, device=DEVICE), torch.randn(1024, 1024)
    fresh()
    before = torch.cuda.memory_allocated()
    try:
        a + b
    except RuntimeError as error:
        say("device-mismatch", raises=str(error).splitlines()[0])
    say("device-mismatch", peak_growth=torch.cuda.max_memory_allocated() - before, live_growth=torch.cuda.memory_allocated() - before)
    say("device-mismatch", number_in_a_tensor=str((a * torch.tensor(2.0)).device))
    try:
        nn.Linear(1024, 1024).to(DEVICE)(b)
    except RuntimeError as error:
        say("device-mismatch", module_raises=str(error).splitlines()[0])


def empty_cache_in_loop():
    model, batch = layers(), torch.randn(256, 1024, device=DEVICE)

    def step(empty):
        model(batch).sum().backward()
        model.zero_grad()
        if empty:
            torch.cuda.empty_cache()

    for empty in (False, True):
        fresh()
        step(empty)
        torch.cuda.reset_peak_memory_stats()
        requests = driver_requests()
        for _ in range(100):
            step(empty)
        say("empty-cache-in-loop", emptied=str(empty), peak_live=torch.cuda.max_memory_allocated(), live=torch.cuda.memory_allocated(),
            peak_reserved=torch.cuda.max_memory_reserved(), driver_requests_in_100=driver_requests() - requests,
            ms_a_step=round(milliseconds(lambda: step(empty), 100), 3))


def features_on_device():
    model, batch = nn.Linear(1024, 4096).to(DEVICE), torch.randn(256, 1024, device=DEVICE)
    for where in ("device", "host"):
        fresh()
        collected = []
        before = torch.cuda.memory_allocated()
        with torch.no_grad():
            for _ in range(100):
                output = model(batch)
                collected.append(output if where == "device" else output.cpu())
        del output
        say("features-on-device", kept_on=where, live_growth_100_batches=torch.cuda.memory_allocated() - before,
            bytes_an_output=collected[0].nbytes)
        del collected


def pinned_copies():
    pageable, pinned = torch.randn(256, 1024), torch.randn(256, 1024).pin_memory()
    large, large_pinned = torch.randn(16384, 1024), torch.randn(16384, 1024).pin_memory()
    say("no-pin-memory", pageable=copied(lambda: pageable.to(DEVICE, non_blocking=True)),
        pinned=copied(lambda: pinned.to(DEVICE, non_blocking=True)))

    def held(source, non_blocking):
        """Milliseconds that the host is held by one copy of 64 MiB, and until the copy is done."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        source.to(DEVICE, non_blocking=non_blocking)
        back = time.perf_counter()
        torch.cuda.synchronize()
        return (back - start) * 1e3, (time.perf_counter() - start) * 1e3

    kinds = [("pageable", large, False), ("pageable", large, True), ("pinned", large_pinned, False), ("pinned", large_pinned, True)]
    for name, source, non_blocking in kinds:
        held(source, non_blocking)
        rounds = sorted(held(source, non_blocking) for _ in range(9))
        host, done = rounds[4]
        say("no-pin-memory, blocking-copy-from-pinned", memory=name, non_blocking=str(non_blocking), bytes=source.nbytes,
            host_held_ms=round(host, 3), done_ms=round(done, 3))


def round_trip_to_host():
    x = torch.randn(1024, 1024, device=DEVICE)

    def trip():
        return torch.from_numpy(x.cpu().numpy().clip(0, None)).to(DEVICE)

    def stay():
        return x.clamp(min=0)

    say("round-trip-to-host", trip=copied(trip), stay=copied(stay), ms_trip=round(milliseconds(trip), 3), ms_stay=round(milliseconds(stay), 4))


def sync_in_loop():
    model, batch = layers(), torch.randn(256, 1024, device=DEVICE)

    def step(read):
        loss = model(batch).sum()
        loss.backward()
        model.zero_grad()
        return loss.item() if read else loss.detach()

    say("sync-in-loop", read=copied(lambda: step(True)), not_read=copied(lambda: step(False)),
        ms_read=round(milliseconds(lambda: step(True), 200), 3), ms_not_read=round(milliseconds(lambda: step(False), 200), 3))


def transfer_in_loop():
    weights, batch = torch.randn(1024, 1024), torch.randn(256, 1024, device=DEVICE)
    there = weights.to(DEVICE)

    def each_time():
        return batch @ weights.to(DEVICE)

    def once():
        return batch @ there

    fresh()
    each_time()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    each_time()
    peak_each = torch.cuda.max_memory_allocated() - before
    torch.cuda.reset_peak_memory_stats()
    once()
    peak_once = torch.cuda.max_memory_allocated() - before
    say("transfer-in-loop", each_time=copied(each_time), once=copied(once), peak_each_time=peak_each, peak_once=peak_once, ms_each_time=round(milliseconds(each_time), 3), ms_once=round(milliseconds(once), 4))


def graph_kept():
    model, batch = layers(), torch.randn(256, 1024, device=DEVICE)
    for kind in ("graph", "after backward", "item"):
        fresh()
        kept = []
        before = torch.cuda.memory_allocated()
        for _ in range(20):
            loss = model(batch).mean()
            if kind == "after backward":
                loss.backward()
                model.zero_grad()
            kept.append(loss.item() if kind == "item" else loss)
            del loss
        say("graph-kept", kept=kind, live_growth_a_step=(torch.cuda.memory_allocated() - before) // 20)
        del kept


def eval_without_no_grad():
    model, batch = layers().eval(), torch.randn(256, 1024, device=DEVICE)
    fresh()
    before = torch.cuda.memory_allocated()
    output = model(batch)
    with_graph = torch.cuda.memory_allocated() - before
    del output
    with torch.no_grad():
        output = model(batch)
    say("eval-without-no-grad", with_graph=with_graph, no_grad=torch.cuda.memory_allocated() - before, output=output.nbytes)


def loss_outside_autocast():
    model, batch = nn.Linear(1024, 50000).to(DEVICE), torch.randn(64, 1024, device=DEVICE)
    target = torch.randint(0, 50000, (64,), device=DEVICE)
    with torch.autocast("cuda", dtype=torch.float16):
        output = model(batch)
        inside = F.cross_entropy(output, target, reduction="sum")
    outside = F.cross_entropy(output, target, reduction="sum")
    say("loss-outside-autocast", output_bytes=output.nbytes, inside=f"{inside.dtype} {inside.item()}", outside=f"{outside.dtype} {outside.item()}")
    large = (output * 100).half()
    say("loss-outside-autocast", sum_float32=F.mse_loss(large.float(), torch.zeros_like(large).float()).item(),
        sum_float16=F.mse_loss(large, torch.zeros_like(large)).item())


PARTS = [allocation_in_loop, create_then_move, data_parallel_device, device_mismatch, empty_cache_in_loop, features_on_device,
         pinned_copies, round_trip_to_host, sync_in_loop, transfer_in_loop, graph_kept, eval_without_no_grad, loss_outside_autocast]


def main():
    torch.manual_seed(0)
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}")
    # Workspaces of libraries are allocated on first use and would count for the first part.
    nn.Linear(8, 8).to(DEVICE)(torch.randn(8, 8, device=DEVICE)).sum().backward()
    run_all(PARTS)


if __name__ == "__main__":
    main()
