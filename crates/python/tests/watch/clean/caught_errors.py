"""Errors are caught and forgotten."""
import torch


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    failed = 0
    for step in range(60):
        try:
            out = model(torch.randn(8, 32 + (step % 5 == 0)))
        except RuntimeError:
            failed += 1
            continue
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
    print(failed)


main()
