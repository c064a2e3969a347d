import torch
model.eval()
for x, y in test_loader:
    with torch.no_grad():
        output = model(x)
