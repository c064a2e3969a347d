import torch
x = torch.randn(3, requires_grad=True)
y = torch.sigmoid(x)
y += 1  # expect: inplace-on-saved
loss = y.sum()
loss.backward()
