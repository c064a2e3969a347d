"""Activations are captured by hooks that are removed after each look."""
import contextlib
import torch


@contextlib.contextmanager
def captured(model):
    found, handles = {}, []
    for name, module in model.named_children():
        handles.append(
            module.register_forward_hook(lambda module, args, output, name=name: found.__setitem__(name, output))
        )
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def main():
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    saturated = []
    for step in range(80):
        x = torch.randn(64, 16)
        with captured(model) if step % 4 == 0 else contextlib.nullcontext() as found:
            loss = model(x).square().mean()
        if found is not None:
            saturated.append((found["1"].abs() > 0.97).float().mean().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(len(saturated))


main()
