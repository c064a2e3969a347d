import torch
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        output = model(x)
    output = output.float()
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()
