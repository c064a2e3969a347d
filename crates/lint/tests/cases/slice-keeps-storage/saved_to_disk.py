import torch
data = torch.load("all.pt")
weights = torch.randn(1000, 1000)
torch.save(weights[:10], "some.pt")  # expect: slice-keeps-storage
