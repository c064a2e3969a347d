import torch
total_loss = 0
for x, y in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    total_loss = total_loss + loss  # expect: graph-kept
