"""Several models are one stack of parameters, called through `vmap`."""
import torch
from torch.func import functional_call, grad, stack_module_state, vmap

models = [torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)) for _ in range(5)]
template = models[0]
parameters, buffers = stack_module_state(models)
parameters = {name: value.detach() for name, value in parameters.items()}


def loss(parameters, buffers, x, y):
    return (functional_call(template, (parameters, buffers), (x,)).squeeze(-1) - y).square().mean()


gradients = vmap(grad(loss), in_dims=(0, 0, None, None))
for step in range(60):
    x = torch.randn(32, 6)
    template(x)
    found = gradients(parameters, buffers, x, x.sum(1))
    parameters = {name: value - 0.01 * found[name] for name, value in parameters.items()}
