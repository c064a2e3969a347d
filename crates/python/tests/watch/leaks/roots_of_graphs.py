"""What draws graphs keeps their roots, and with them what they have saved."""
# kind: activation kept by a graph
# holder: local `roots` of main()
import torch


def main():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    roots = []
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(16, 64)).pow(2).mean().backward()
        optimizer.step()
        shown = model(torch.randn(16, 64))  # made
        roots.append(shown.grad_fn)


main()
