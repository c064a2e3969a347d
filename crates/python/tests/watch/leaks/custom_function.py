"""Outputs of a custom function are kept; its context holds what it saved."""
# kind: activation kept by a graph
# holder: global `results`
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


results = []
weight = torch.randn(64, 64, requires_grad=True)
for _ in range(40):
    module = torch.nn.Linear(64, 64) if not results else module
    hidden = module(weight)  # made
    results.append(Cube.apply(hidden).mean())
