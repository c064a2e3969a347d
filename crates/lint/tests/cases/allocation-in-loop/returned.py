import torch
def first(loader):
    for x in loader:
        out = torch.zeros(512, 512, device="cuda")
        return out
