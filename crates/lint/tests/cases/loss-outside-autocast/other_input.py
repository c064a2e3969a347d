import torch
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        features = model(x)
    other = head(x)
    loss = criterion(other, y)
    loss.backward()
    optimizer.step()
