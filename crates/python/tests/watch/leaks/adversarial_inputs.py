"""Inputs that require gradients are kept, and keep them."""
# kind: input that takes gradients | gradient of an input that is kept
# holder: local `examples` of main()
import torch


def main():
    model = torch.nn.Linear(64, 1)
    examples = []
    for _ in range(40):
        x = torch.randn(32, 64, requires_grad=True)  # made
        model(x).sum().backward()  # made
        examples.append(x)


main()
