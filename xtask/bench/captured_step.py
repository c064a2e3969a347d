"""A training step of a small network on `cuda`, one operation after the other and captured, in microseconds.

`python captured_step.py plimsoll` or `torch`; both have the same names."""

from __future__ import annotations

import importlib
import sys
import time

pm = importlib.import_module(sys.argv[1])
nn = importlib.import_module(sys.argv[1] + ".nn")


def least(run, count):
    """The least mean of five rounds, until the device is done."""
    rounds = []
    for _ in range(5):
        pm.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        pm.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / count * 1e6)
    return min(rounds)


pm.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("cuda")
optimizer = pm.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x, target = pm.randn(4, 8).to("cuda"), pm.randn(4, 1).to("cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    return loss


side = pm.cuda.Stream()
side.wait_stream(pm.cuda.current_stream())
with pm.cuda.stream(side):
    for _ in range(3):
        step()
pm.cuda.current_stream().wait_stream(side)
print(f"{sys.argv[1]} step: {least(step, 300):.1f} us")
graph = pm.cuda.CUDAGraph()
with pm.cuda.graph(graph):
    loss = step()
print(f"{sys.argv[1]} captured: {least(graph.replay, 2000):.1f} us, loss {loss.item():.1e}")
