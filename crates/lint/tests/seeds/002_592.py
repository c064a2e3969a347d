# WRONG: In-place modification in autograd context
x = torch.randn(10, requires_grad=True)
y = x + 1
x.add_(2)  # ERROR: x used in y's computation graph

# CORRECT: Create new tensor or use no_grad
with torch.no_grad():
    x.add_(2)  # OK: outside autograd
