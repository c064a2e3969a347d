"""Leak: one wide output is cut with torch.chunk; the piece of the first head is kept each step and holds the output of all heads."""
import torch
from torch import nn
import torch.nn.functional as F

def loader(steps):
    for _ in range(steps):
        yield torch.randn(4096, 128, device="cuda"), torch.randint(0, 64, (8, 4096), device="cuda")

class MultiTask(nn.Module):
    def __init__(self, tasks=8, classes=64):
        super().__init__()
        self.tasks = tasks
        self.body = nn.Linear(128, 256)
        self.heads = nn.Linear(256, tasks * classes)

    def forward(self, x):
        wide = self.heads(F.gelu(self.body(x)))
        return torch.chunk(wide, self.tasks, dim=1)

def main():
    net = MultiTask().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    main_task = []
    for x, labels in loader(20):
        pieces = net(x)
        loss = sum(F.cross_entropy(piece, label) for piece, label in zip(pieces[:3], labels))
        opt.zero_grad()
        loss.backward()
        opt.step()
        main_task.append((pieces[0].detach(), labels[0].cpu()))  # for the confusion matrix
    return net, opt, main_task
