import torch
weights = torch.randn(1000, 1000)
torch.save(weights[:10].clone(), "some.pt")
