import torch
for x in loader:
    output = model(x)
    metrics.collect()
