import torch
import torch.nn.functional as F
def epoch(model, loader, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss * x.size(0)  # expect: graph-kept
    return total
