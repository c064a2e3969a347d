import torch
hidden = None
for x, y in loader:
    optimizer.zero_grad()
    output, hidden = gru(x, hidden)
    criterion(output, y).backward()
    optimizer.step()
    hidden.detach_()
