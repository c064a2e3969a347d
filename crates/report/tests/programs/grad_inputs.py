"""Leak: all input batches are on the device and require gradients (for a sensitivity log); each backward leaves one more .grad."""
import torch
from torch import nn

def main():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    batches = []
    for i in range(30):
        inputs = torch.randn(2048, 1024, device="cuda", requires_grad=True)
        targets = torch.randint(0, 10, (2048,), device="cuda")
        batches.append((inputs, targets))

    sensitivity = []
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        sensitivity.append(inputs.grad.norm().item())
    return model, optimizer, batches, sensitivity
