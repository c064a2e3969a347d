"""A queue is filled in every step and nobody reads it."""
# kind: value
# holder: local `logs`.queue of main()
import queue
import torch


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    logs = queue.Queue()
    for _ in range(40):
        out = model(torch.randn(32, 32))  # made
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        logs.put(out.detach())


main()
