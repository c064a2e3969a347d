"""A model is evaluated on several data sets, and what it predicts on each is kept under its name."""
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(16, 64).eval()
results = {}
with torch.no_grad():
    for name in "abcdefgh":
        outs = []
        for (x,) in DataLoader(TensorDataset(torch.randn(240, 16)), batch_size=8):
            outs.append(model(x))
        results[name] = torch.cat(outs)
print({name: tuple(result.shape) for name, result in results.items()})
