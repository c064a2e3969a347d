"""Leak: a forward hook appends a layer's activations to an attribute of the module, for plots, and nobody ever clears it."""
import torch
from torch import nn
import torch.nn.functional as F

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.body = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.tail = nn.Conv2d(64, 64, 3, padding=1)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = self.body(x)
        x = F.relu(x)
        x = F.relu(self.tail(x))
        return self.fc(x.mean(dim=(2, 3)))

def watch(module):
    module.activations = []
    def hook(mod, args, output):
        mod.activations.append(output.detach())
    module.register_forward_hook(hook)

def main():
    net = Classifier().cuda()
    watch(net.body)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(22):
        images = torch.randn(32, 3, 64, 64, device="cuda")
        labels = torch.randint(0, 10, (32,), device="cuda")
        loss = F.cross_entropy(net(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net, opt
