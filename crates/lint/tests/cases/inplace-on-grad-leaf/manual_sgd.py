import torch

x = torch.linspace(-1, 1, 100)
y = 3 * x + 2
w = torch.zeros(1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)

for step in range(100):
    loss = ((w * x + b - y) ** 2).mean()
    loss.backward()
    w -= 0.1 * w.grad  # expect: inplace-on-grad-leaf
    with torch.no_grad():
        b -= 0.1 * b.grad
    w.grad.zero_()
    b.grad.zero_()
