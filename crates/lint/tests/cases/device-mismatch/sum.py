import torch
a = torch.zeros(3, device="cuda")
b = torch.zeros(3)
c = a + b  # expect: device-mismatch
