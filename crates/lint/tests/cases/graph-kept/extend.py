import torch

all_losses = []
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        all_losses.extend([epoch, loss])  # expect: graph-kept
