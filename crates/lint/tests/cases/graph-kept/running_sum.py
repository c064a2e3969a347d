import torch
running_loss = 0.0
for i, (x, y) in enumerate(trainloader):
    optimizer.zero_grad()
    outputs = net(x)
    loss = criterion(outputs, y)
    loss.backward()
    optimizer.step()
    running_loss += loss  # expect: graph-kept
    if i % 2000 == 1999:
        print(running_loss / 2000)
        running_loss = 0.0
