from torch.cuda import empty_cache
import torch
for x, y in train_loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
    empty_cache()  # expect: empty-cache-in-loop
