"""PyTorch's side of `cargo xtask bench cpu` and `bench operations`: the same work under the same names as the test kit's
`bench_worker`. `--cuda` does the work of the operations on a GPU, for `gpu_rows.py`."""

import sys
import time

import torch
import torch.nn.functional as F

import torch_operations

torch.set_num_threads(2)
ON_GPU = "--cuda" in sys.argv
if ON_GPU:
    torch.set_default_device("cuda")


def normal(*sizes):
    return torch.randn(*sizes)


def square():
    return normal(4096, 4096)


def product(a, b, dtype=torch.float32):
    a, b = normal(*a).to(dtype), normal(*b).to(dtype)
    return lambda: a @ b


def one(x, function):
    return lambda: function(x)


def broadcast():
    x, y = normal(1000, 1000, 100), normal(100)
    return lambda: x + y


def gather():
    x, index = square(), torch.randint(0, 4096, (4096, 4096))
    return lambda: x.gather(1, index)


def cat():
    x, y = normal(2048, 4096), normal(2048, 4096)
    return lambda: torch.cat([x, y], 0)


def add_of_4():
    x = normal(4)
    return lambda: x + x


WORK = {
    "add_400mb": lambda: one(normal(100_000_000), lambda x: x + 1),
    "broadcast_400mb": broadcast,
    "relu_64mb": lambda: one(square(), torch.relu),
    "exp_64mb": lambda: one(square(), torch.exp),
    "tanh_64mb": lambda: one(square(), torch.tanh),
    "gelu_64mb": lambda: one(square(), F.gelu),
    "softmax_64mb": lambda: one(square(), lambda x: x.softmax(-1)),
    "layer_norm_64mb": lambda: one(square(), lambda x: F.layer_norm(x, (4096,))),
    "batch_norm_channels_last_64mb": lambda: torch_operations.batch_norm(normal(64, 64, 64, 64).permute(0, 3, 1, 2)),
    "batch_norm_features_64mb": lambda: torch_operations.batch_norm(normal(65_536, 256)),
    "add_in_place_400mb": lambda: one(normal(100_000_000), lambda x: x.add_(1)),
    "sum_64mb": lambda: one(square(), torch.sum),
    "add_4mb": lambda: one(normal(1024, 1024), lambda x: x + 1),
    "transposed_add_64mb": lambda: one(square(), lambda x: x.t() + 1),
    "transposed_contiguous_64mb": lambda: one(square(), lambda x: x.t().contiguous()),
    "sort_64mb": lambda: one(square(), lambda x: x.sort(-1)),
    "gather_64mb": gather,
    "cat_64mb": cat,
    "matmul_f32_256": lambda: product((256, 256), (256, 256)),
    "matmul_f32_1024": lambda: product((1024, 1024), (1024, 1024)),
    "matmul_f32_2048": lambda: product((2048, 2048), (2048, 2048)),
    "matmul_f32_1x4096x4096": lambda: product((1, 4096), (4096, 4096)),
    "matmul_f32_32x4096x4096": lambda: product((32, 4096), (4096, 4096)),
    "matmul_f32_64_batches_of_128": lambda: product((64, 128, 128), (64, 128, 128)),
    "matmul_f64_1024": lambda: product((1024, 1024), (1024, 1024), torch.float64),
    "matmul_bf16_2048": lambda: product((2048, 2048), (2048, 2048), torch.bfloat16),
    "add_of_4": add_of_4,
    **torch_operations.WORK,
}



def resident_bytes(name):
    """A line of /proc/self/status."""
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(name))


def tell_peak(name):
    """The most bytes that work took: what the process grew by, or what the caching allocator had allocated."""
    before = resident_bytes("VmRSS")
    WORK[name]()()
    if ON_GPU:
        torch.cuda.synchronize()
        print(torch.cuda.max_memory_allocated())
    else:
        print(resident_bytes("VmHWM") - before)


if sys.argv[1:2] == ["peak"]:
    for name in sys.argv[2:]:
        if name != "--cuda":
            tell_peak(name)
    sys.exit()

current, work = None, None
for line in sys.stdin:
    name, _, count = line.strip().rpartition(" ")
    if name != current:
        work = None
        current, work = name, WORK[name]()
    finish = torch.cuda.synchronize if ON_GPU else lambda: None
    finish()
    start = time.perf_counter()
    for _ in range(int(count)):
        work()
    finish()
    print((time.perf_counter() - start) * 1e6, flush=True)
