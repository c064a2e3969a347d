"""Writes tables.txt: PyTorch's own tables of rows with given figures, which `tests/table.rs` writes again.

    python make_golden.py > tables.txt
"""

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEventAvg

FIGURES = ("count", "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")
BYTES = ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage")


def row(key, figures, nbytes=(0, 0, 0, 0), *, device=DeviceType.CPU, use_device=None, shapes="", stack=(), flops=0):
    made = FunctionEventAvg()
    made.key, made.device_type, made.use_device = key, device, use_device
    made.input_shapes, made.stack, made.flops = shapes, list(stack), flops
    made.node_id, made.overload_name, made.is_user_annotation = -1, "", False
    for name, value in zip(FIGURES + BYTES, (*figures, *nbytes), strict=True):
        setattr(made, name, value)
    return made


def host():
    rows = [
        row("aten::mm", (3, 1500.0, 1200.5, 0, 0), (4096, 4096, 0, 0), flops=60000),
        row("aten::add", (10, 250.25, 250.25, 0, 0), (-512, -512, 0, 0), flops=3000),
        row(
            "a_range_with_a_name_that_is_much_longer_than_the_column_may_be",
            (1, 2500000.0, 12.125, 0, 0),
            (3 << 20, 0, 0, 0),
        ),
    ]
    events = EventList(rows, use_device=None, profile_memory=True, with_flops=True)
    return events.table(sort_by="cpu_time_total", header="a header")


def device():
    cuda = {"use_device": "cuda"}
    kernel = {"device": DeviceType.CUDA, "shapes": [], **cuda}
    copy = "Memcpy HtoD (Pageable -> Device)"
    rows = [
        row("aten::mm", (3, 1500.0, 1200.5, 800.0, 800.0), (0, 0, 4096, 4096), shapes=[[2, 3], [3, 5]], **cuda),
        row("mm_kernel", (3, 0, 0, 800.0, 800.0), **kernel),
        row("aten::to", (2, 99.0, 99.0, 200.0, 200.0), shapes=[[4]], **cuda),
        row(copy, (2, 0, 0, 200.0, 200.0), **kernel),
    ]
    events = EventList(rows, use_device="cuda", profile_memory=True)
    return events.table(sort_by="self_cuda_time_total", row_limit=3, time_unit="ms")


def stacks():
    long = "/a/very/long/path/of/a/program/that/does/not/fit/into/the/column/train_the_model.py(12): forward"
    rows = [
        row("aten::exp", (1, 10.0, 10.0, 0, 0), stack=["train.py(3): step", "train.py(9): main"]),
        row("aten::neg", (1, 5.0, 5.0, 0, 0), stack=[long]),
    ]
    return EventList(rows).table()


print("\f\n".join([host(), device(), stacks()]), end="")
