"""Views that are made without gradients, of a tensor that is written to with them: PyTorch refuses to tell their nodes."""

import torch

model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def main():
    for _ in range(60):
        hidden = torch.zeros(4, 16)
        with torch.no_grad():
            row, folded = hidden[0], hidden.view(2, 32)
        hidden += model(torch.randn(4, 16))
        optimizer.zero_grad()
        hidden.mean().backward()
        optimizer.step()
    print(row.shape, folded.shape)


main()
