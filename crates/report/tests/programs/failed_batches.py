"""Leak: exceptions of bad batches are kept for a report; each traceback holds the frame, and with it the batch and its graph."""
import torch
from torch import nn
import torch.nn.functional as F

def make_batch(i):
    x = torch.randn(512, 400, device="cuda")
    if i % 3 == 2:
        x[0, 0] = float("inf")  # a broken record in the data
    return x, torch.randint(0, 20, (512,), device="cuda")

def train_step(net, opt, i):
    x, y = make_batch(i)
    logits = net(x)
    loss = F.cross_entropy(logits, y)
    if not torch.isfinite(loss):
        raise FloatingPointError(f"batch {i}: loss is {loss.item()}")
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()

def main():
    net = nn.Sequential(nn.Linear(400, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 20)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    losses, errors = [], []
    for i in range(45):
        try:
            losses.append(train_step(net, opt, i))
        except FloatingPointError as error:
            errors.append(error)
    return net, opt, losses, errors
