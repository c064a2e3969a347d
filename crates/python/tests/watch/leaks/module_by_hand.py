"""Settings are a module without a file, and something is recorded in them."""
# kind: value
# holder: global `trace` of settings -> list of
import sys
import types
import torch

made = types.ModuleType("settings")
made.trace = []
sys.modules["settings"] = made
del made


def main():
    import settings

    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(45):
        out = net(torch.randn(32, 64))  # made
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()
        settings.trace.append(out.detach())


main()
