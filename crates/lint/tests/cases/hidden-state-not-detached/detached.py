import torch
def train(lstm, loader, criterion, optimizer):
    hidden = None
    for x, y in loader:
        optimizer.zero_grad()
        output, hidden = lstm(x, hidden)
        hidden = tuple(h.detach() for h in hidden)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
