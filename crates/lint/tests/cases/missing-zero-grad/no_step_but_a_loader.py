import torch
for batch in train_loader:
    outputs = model(batch)
    loss = criterion(outputs, targets)
    loss.backward()  # expect: missing-zero-grad
