import torch
running_loss = 0.0
for i, (x, y) in enumerate(trainloader):
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    running_loss += loss.item()
