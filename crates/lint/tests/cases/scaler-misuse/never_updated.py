import torch
from torch.cuda.amp import GradScaler
scaler = GradScaler()
for x, y in loader:
    optimizer.zero_grad()
    scaler.scale(criterion(model(x), y)).backward()
    scaler.step(optimizer)  # expect: scaler-misuse
