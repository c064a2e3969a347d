import torch
import torch.nn.functional as F

for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        output = model(x)
    F.nll_loss(output, y).backward()
    optimizer.step()
