import torch
for x, ys in loader:
    optimizer.zero_grad()
    total = 0
    for head, y in zip(heads, ys):
        loss = criterion(head(x), y)
        total += loss
    total.backward()
    optimizer.step()
