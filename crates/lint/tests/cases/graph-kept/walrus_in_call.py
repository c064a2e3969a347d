import torch

losses = []
for x, y in train_loader:
    optimizer.zero_grad()
    (loss := criterion(model(x), y)).backward()
    optimizer.step()
    losses.append(loss)  # expect: graph-kept
