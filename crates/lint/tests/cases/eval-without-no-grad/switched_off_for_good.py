import torch
torch.set_grad_enabled(False)
model.eval()
for x in test_loader:
    out = model(x)
