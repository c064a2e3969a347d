import torch
from collections import deque
recent = deque(maxlen=100)
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    recent.append(loss)
