import torch
model.eval()
for x, y in test_loader:
    x.requires_grad = True
    loss = criterion(model(x), y)
    loss.backward()
    attacked = fgsm(x, 0.1, x.grad.data)
