"""Leak: predictions of validation are gathered in a list that no epoch clears."""
import torch
from torch import nn


class Validator:
    def __init__(self, net):
        self.net = net
        self.outputs = []

    @torch.no_grad()
    def run(self, batches):
        for x in batches:
            self.outputs.append(self.net(x.cuda()))
        return torch.cat(self.outputs).argmax(dim=1).float().mean().item()


def main():
    net = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1000)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    validator = Validator(net)
    batches = [torch.randn(128, 128) for _ in range(3)]
    for _ in range(6):
        for x in batches:
            loss = net(x.cuda()).logsumexp(dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        validator.run(batches)
    return net, optimizer, validator
