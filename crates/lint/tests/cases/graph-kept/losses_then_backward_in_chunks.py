import torch

pending = []
for i, (x, y) in enumerate(train_loader):
    pending.append(criterion(model(x), y))
    if len(pending) == 8:
        torch.stack(pending).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        pending = []
