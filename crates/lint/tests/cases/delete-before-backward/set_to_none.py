import torch
for x, y in loader:
    optimizer.zero_grad()
    outputs = model(x)
    loss = criterion(outputs, y)
    outputs = None  # expect: delete-before-backward
    loss.backward()
    optimizer.step()
