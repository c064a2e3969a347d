"""Gradients made with `create_graph` are kept, and their graphs with them."""
# kind: activation kept by a graph
# holder: local `penalties` of main()
import torch


def main():
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    penalties = []
    for _ in range(40):
        x = torch.randn(32, 32, requires_grad=True)
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)  # made
        penalties.append(gradient.pow(2).sum())


main()
