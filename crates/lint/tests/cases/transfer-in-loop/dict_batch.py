import torch
for batch in loader:
    x = batch["x"].to(device)
    out = model(x)
