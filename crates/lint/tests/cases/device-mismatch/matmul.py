import torch
a = torch.randn(3, 3, device="cpu")
b = torch.randn(3, 3).to("cuda")
c = torch.matmul(a, b)  # expect: device-mismatch
