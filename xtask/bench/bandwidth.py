"""Operations whose time is that of reading and writing memory, on `cuda`: microseconds, and the share that the bytes need
at 4.2 TB/s, each operand counted once.

`python bandwidth.py plimsoll` or `torch`; both have the same names. Each figure is a captured graph of eight calls on
operands of their own, so that nothing is launched from Python and little is in the cache; backward is forward and
backward less forward."""

from __future__ import annotations

import importlib
import sys
import time

torch = importlib.import_module(sys.argv[1])
F = importlib.import_module(sys.argv[1] + ".nn.functional")

CALLS, BYTES_PER_MICROSECOND = 8, 4.2e6


def timed(run):
    """Microseconds of one call of `run`'s."""
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(2):
            kept = run()
    torch.cuda.synchronize()
    del kept
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()
    rounds = []
    for _ in range(6):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / 10 / CALLS * 1e6)
    return sorted(rounds)[2]


def measure(rows, columns, dtype):
    """The operations on a matrix."""

    def drawn():
        return [torch.randn(rows, columns, device="cuda").to(dtype) for _ in range(CALLS)]

    xs, residuals, grads = drawn(), drawn(), drawn()
    weight = torch.ones(columns, device="cuda", dtype=dtype, requires_grad=True)
    bias = torch.zeros(columns, device="cuda", dtype=dtype, requires_grad=True)
    targets = [torch.randint(0, columns, (rows,), device="cuda") for _ in range(CALLS)]
    # What is read and written, in matrices: forward, backward.
    operations = {
        "layer_norm": (lambda i: F.layer_norm(xs[i], (columns,), weight, bias), 2, 3),
        "add and layer_norm": (lambda i: F.layer_norm(xs[i] + residuals[i], (columns,), weight, bias), 4, 3),
        "softmax": (lambda i: F.softmax(xs[i], -1), 2, 3),
        "cross_entropy": (lambda i: F.cross_entropy(xs[i], targets[i]), 1, 2),
        "gelu": (lambda i: F.gelu(xs[i]), 2, 3),
    }
    for name, (operation, forward_matrices, backward_matrices) in operations.items():

        def forward():
            with torch.no_grad():
                return [operation(i) for i in range(CALLS)]

        def both():
            found = []
            for i in range(CALLS):
                y = operation(i)
                leaves = [xs[i], weight, bias] if "layer_norm" in name else [xs[i]]
                found.append(torch.autograd.grad(y, leaves, grads[i] if y.dim() else None))
            return found

        for x in xs:
            x.requires_grad_(True)
        times = timed(forward), timed(both)
        for x in xs:
            x.requires_grad_(False)
        told = []
        for microseconds, matrices in ((times[0], forward_matrices), (times[1] - times[0], backward_matrices)):
            needed = matrices * rows * columns * xs[0].element_size() / BYTES_PER_MICROSECOND
            told.append(f"{microseconds:7.1f} us {needed / microseconds:4.0%}")
        print(f"{name:20} {rows} x {columns} {str(dtype).rpartition('.')[2]:9} forward {told[0]}, backward {told[1]}", flush=True)


for shape in ((16384, 768), (8192, 8192)):
    for dtype in (torch.bfloat16, torch.float32):
        measure(*shape, dtype)
