import torch
outputs = model(inputs)
loss = criterion(outputs, targets)
del outputs
