import torch

history = {}
for step, (x, y) in enumerate(train_loader):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    history.setdefault("loss", []).append(loss)  # expect: graph-kept
