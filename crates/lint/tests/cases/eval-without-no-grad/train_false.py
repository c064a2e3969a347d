import torch
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()
    net.train(False)
    for x, y in validation_loader:
        total += criterion(net(x), y).item()  # expect: eval-without-no-grad
    net.train(True)
