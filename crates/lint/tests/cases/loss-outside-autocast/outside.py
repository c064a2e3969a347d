import torch
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        output = model(x)
    loss = criterion(output, y)  # expect: loss-outside-autocast
    loss.backward()
    optimizer.step()
