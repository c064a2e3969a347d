import torch
for x, y in loader:
    model.layer.register_forward_hook(save)  # expect: hooks-in-loop
    model(x)
