import torch
import torch.nn.functional as F
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        output = model(x)
    loss = F.cross_entropy(output.float(), y)
    loss.backward()
    optimizer.step()
