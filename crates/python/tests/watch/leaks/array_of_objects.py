"""An array of NumPy whose entries are tensors."""
# kind: value
# holder: local `slots` of main() -> ndarray of 400
import numpy
import torch


def main():
    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    slots = numpy.empty((20, 20), dtype=object)
    for step in range(45):
        out = net(torch.randn(32, 64))  # made
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()
        slots[step // 20, step % 20] = out.detach()


main()
