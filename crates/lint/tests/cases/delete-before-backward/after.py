import torch
outputs = model(inputs)
loss = criterion(outputs, targets)
loss.backward()
del outputs, loss
