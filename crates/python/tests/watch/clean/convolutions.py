"""Running statistics and a schedule."""
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
for _ in range(50):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(4, 3, 16, 16)), torch.randint(0, 4, (4,))).backward()
    optimizer.step()
    schedule.step()
