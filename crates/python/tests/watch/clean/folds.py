"""A model and an optimizer anew for each fold, and nothing kept but a number."""
import torch


def run():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(15):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).pow(2).mean().backward()
        optimizer.step()
    return model(torch.randn(8, 64)).mean().item()


print(len([run() for _ in range(6)]))
