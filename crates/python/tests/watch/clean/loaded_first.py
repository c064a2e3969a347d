"""All batches are loaded into a list before the epochs begin."""
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    batches = list(DataLoader(TensorDataset(torch.randn(320, 20), torch.randn(320)), batch_size=16))
    model = torch.nn.Sequential(torch.nn.Linear(20, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1))
    optimizer = torch.optim.Adam(model.parameters())
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for _ in range(4):
        total = 0.0
        for x, y in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.huber_loss(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        plateau.step(total)


main()
