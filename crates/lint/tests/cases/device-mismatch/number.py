import torch
a = torch.zeros(3, device="cuda")
scale = torch.tensor(2.0)
c = a * scale
