import torch
step = 0
while step < 1000:
    loss = criterion(model(x), y)
    loss.backward()  # expect: missing-zero-grad
    optimizer.step()
    step += 1
