"""What a thread has of its own is a class of the program's, which begins it by itself."""
# kind: value
# holder: global `context`.seen -> list of
import threading
import torch


class Context(threading.local):
    def __init__(self):
        self.seen = []


context = Context()


def main():
    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(45):
        out = net(torch.randn(32, 64))  # made
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()
        context.seen.append(out.detach())


main()
