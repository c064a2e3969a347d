import torch
weights = []
for x, y in loader:
    weight = schedule(step)
    optimizer.zero_grad()
    loss = weight * criterion(model(x), y)
    loss.backward()
    optimizer.step()
    weights.append(weight)
