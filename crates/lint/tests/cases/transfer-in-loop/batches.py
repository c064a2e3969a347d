import torch
for x, y in loader:
    x, y = x.cuda(), y.to("cuda")
    loss = criterion(model(x), y)
