import torch
def f(device):
    a = torch.zeros(3, device=device)
    b = torch.zeros(3)
    return a + b
