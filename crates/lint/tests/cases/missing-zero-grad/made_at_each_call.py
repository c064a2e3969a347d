import torch


def run_once(size):
    model = torch.nn.Linear(size, size)
    optim = torch.optim.Adam(model.parameters())
    model(torch.randn(4, size)).sum().backward()
    optim.step()


for size in [8, 16]:
    run_once(size)
