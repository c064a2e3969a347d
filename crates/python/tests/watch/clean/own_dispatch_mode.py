"""The program has a dispatch mode of its own on for a while."""
import torch
from torch.utils.flop_counter import FlopCounterMode

model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    model(torch.randn(8, 32)).pow(2).mean().backward()
    optimizer.step()


for _ in range(5):
    step()
with FlopCounterMode(display=False) as counter:
    for _ in range(10):
        step()
for _ in range(30):
    step()
print(counter.get_total_flops())
