# WRONG: Slice keeps reference to original
x = torch.randn(10000, 10000)
y = x[0, :]  # y shares storage with x
del x        # Storage not freed!

# CORRECT: Clone if you need only the slice
y = x[0, :].clone()
del x  # Now storage can be freed
