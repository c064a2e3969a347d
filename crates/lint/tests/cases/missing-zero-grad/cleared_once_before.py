import torch
optimizer.zero_grad()
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()  # expect: missing-zero-grad
    optimizer.step()
