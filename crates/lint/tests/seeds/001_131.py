x = torch.randn(3, requires_grad=True)
y = x ** 2
y.add_(1)  # RuntimeError: in-place operation on leaf variable
