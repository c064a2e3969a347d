import torch
a = torch.zeros(3, device="cuda")
b = torch.ones(3, device="cuda:0")
c = a * b
