"""A hook is registered in every step and never removed; each holds its batch."""
# kind: value
# holder: local `model`._forward_hooks
import torch


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        batch = torch.randn(32, 32)  # made

        def check(module, inputs, output, batch=batch):
            assert output.shape == batch.shape

        model.register_forward_hook(check)
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()


main()
