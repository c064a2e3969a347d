"""Experts that are trained one after the other, while a thread reads a gradient now and then."""

import threading
import time

import torch

experts = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(60))
is_over = False


def read_now_and_then():
    while not is_over:
        time.sleep(0.05)
        gradient = experts[0].weight.grad  # noqa: F841


def main():
    optimizer = torch.optim.SGD(experts.parameters(), lr=0.01)
    for expert in experts:
        optimizer.zero_grad(set_to_none=False)
        expert(torch.randn(8, 32)).mean().backward()
        optimizer.step()


reader = threading.Thread(target=read_now_and_then, daemon=True)
reader.start()
main()
is_over = True
reader.join()
print("done")
