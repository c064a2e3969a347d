import torch
window = []
for i, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    window.append(loss)
    if len(window) == 50:
        print(torch.stack(window).mean())
        window.clear()
