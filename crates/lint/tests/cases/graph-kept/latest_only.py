import torch
logs = {}
best = None
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    logs["loss"] = loss
    best = loss
