import torch

losses = []
for x, y in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if (value := loss.item()) < 10:
        losses.append(value)
print(sum(losses) / len(losses))
