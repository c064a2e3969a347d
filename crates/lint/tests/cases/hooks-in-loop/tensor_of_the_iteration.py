import torch
for x, y in loader:
    out = model(x)
    out.register_hook(print)
