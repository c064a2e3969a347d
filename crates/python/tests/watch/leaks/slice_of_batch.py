"""One row of each output is kept, and with it the whole storage."""
# kind: slice that keeps its whole storage
# holder: local `first` of main()
import torch


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = []
    for _ in range(40):
        out = model(torch.randn(64, 64))  # made
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()
        first.append(out.detach()[0])


main()
