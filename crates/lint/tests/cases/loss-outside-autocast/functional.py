import torch
import torch.nn.functional as F
from torch.cuda.amp import autocast
for x, y in loader:
    optimizer.zero_grad()
    with autocast():
        logits = model(x)
    loss = F.cross_entropy(logits, y)  # expect: loss-outside-autocast
    loss.backward()
    optimizer.step()
