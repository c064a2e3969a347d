import torch
for epoch in range(10):
    for x, y in loader:
        model.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
