"""The same with a list from which the oldest is taken."""
import torch


def main():
    buffer = []
    model = torch.nn.Linear(64, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(120):
        buffer.append(torch.randn(16, 64))
        if len(buffer) > 20:
            buffer.pop(0)
        optimizer.zero_grad()
        model(torch.cat(buffer[-4:])).pow(2).mean().backward()
        optimizer.step()


main()
