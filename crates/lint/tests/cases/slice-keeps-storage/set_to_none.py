import torch
big = torch.zeros(1000, 1000)
row = big[:10]  # expect: slice-keeps-storage
big = None
