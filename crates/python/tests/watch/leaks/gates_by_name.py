"""All four gates of each step are logged by name: together they are the whole output."""
# kind: value
# holder: local `gates` of main() -> dict of 4
import torch


def main():
    model = torch.nn.Linear(32, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gates = {"input": [], "forget": [], "cell": [], "output": []}
    for _ in range(40):
        out = model(torch.randn(16, 32))  # made
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        for name, part in zip(gates, out.detach().chunk(4, dim=1)):
            gates[name].append(part)


main()
