import torch
for x, y in loader:
    optimizer.zero_grad()
    out = model(x)
    loss_a = criterion(out, y)
    loss_b = out.pow(2).mean()
    loss_a.backward(retain_graph=True)
    loss_b.backward()
    optimizer.step()
