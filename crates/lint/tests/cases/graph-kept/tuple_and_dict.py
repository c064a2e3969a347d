import torch
history, rows = [], []
for step, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    history.append((step, loss))  # expect: graph-kept
    rows.append({"step": step, "loss": loss})  # expect: graph-kept
