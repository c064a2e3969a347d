"""An optimizer is made for every step, and a list keeps them all."""
# kind: optimizer state
# holder: local `used` of main()
import torch


def main():
    model = torch.nn.Linear(64, 64)
    used = []
    for step in range(40):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1 / (step + 1))
        used.append(optimizer)
        optimizer.zero_grad()
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()  # made


main()
