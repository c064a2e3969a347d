"""Nothing grows for eighty steps, then a list does."""
# kind: value
# holder: local `kept` of main()
import torch


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for step in range(240):
        out = model(torch.randn(32, 32))  # made
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        if step > 80:
            kept.append(out.detach())


main()
