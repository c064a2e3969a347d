import torch
optimizer.zero_grad(set_to_none=True)  # expect: set-to-none-default
model.zero_grad(set_to_none=True)  # expect: set-to-none-default
