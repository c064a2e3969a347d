import torch
x = noise
for t in reversed(range(1000)):
    x = model(x, t)
