import torch
outputs = model(inputs)
loss = criterion(outputs, targets)
del outputs  # expect: delete-before-backward
loss.backward()
