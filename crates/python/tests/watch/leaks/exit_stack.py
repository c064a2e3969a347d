"""Work for the end is pushed on one exit stack in each step."""
# kind: value
# holder: `stack`
import contextlib
import torch


def release(buffer):
    buffer.zero_()


def main():
    model = torch.nn.Linear(24, 24)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            scratch = torch.zeros(24, 24)  # made
            stack.callback(release, scratch)
            optimizer.zero_grad()
            model(torch.randn(8, 24) @ scratch).sum().backward()
            optimizer.step()


main()
