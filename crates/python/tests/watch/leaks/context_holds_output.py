"""A custom function puts its output on its context as an attribute, which makes a cycle; the collector is off."""
# kind: value in a reference cycle
# holder: cycle
import gc
import torch

gc.disable()


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.gate = torch.sigmoid(x)  # made
        ctx.out = x * ctx.gate  # made
        return ctx.out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (ctx.gate + ctx.out * (1 - ctx.gate))


def main():
    model = torch.nn.Linear(32, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        Swish.apply(model(torch.randn(16, 32))).mean().backward()
        optimizer.step()


main()
