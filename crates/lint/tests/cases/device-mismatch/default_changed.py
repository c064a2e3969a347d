import torch
torch.set_default_device("cuda")
a = torch.zeros(3, device="cuda")
b = torch.zeros(3)
c = a + b
