"""Scaling a gradient by a hook after its accumulation, registered again in each step."""
# kind: value
# holder: hook
import torch


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        scale = torch.rand(32, 32)  # made

        def rescale(parameter, scale=scale):
            parameter.grad.mul_(scale)

        model.weight.register_post_accumulate_grad_hook(rescale)
        optimizer.zero_grad()
        model(torch.randn(8, 32)).square().sum().backward()
        optimizer.step()


main()
