import torch
history = {"loss": []}
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    history["loss"].append(loss)  # expect: graph-kept
