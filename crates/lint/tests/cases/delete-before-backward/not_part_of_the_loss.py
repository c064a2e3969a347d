import torch
extra = model(other)
outputs = model(inputs)
loss = criterion(outputs, targets)
del extra
loss.backward()
