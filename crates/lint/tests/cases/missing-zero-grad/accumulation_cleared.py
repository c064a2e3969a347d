import torch
for i, (x, y) in enumerate(loader):
    (criterion(model(x), y) / 8).backward()
    if i % 8 == 7:
        optimizer.step()
        optimizer.zero_grad()
