"""Leak: a metrics dict holds tensors; the entropy is not part of the loss, so backward never frees its branch of the graph."""
from collections import defaultdict
import torch
from torch import nn
import torch.nn.functional as F

def train_step(net, opt, x, y, metrics):
    logits = net(x)
    loss = F.cross_entropy(logits, y)
    log_probs = F.log_softmax(logits, dim=-1)
    probs = log_probs.exp()
    entropy = -(probs * log_probs).sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    metrics["loss"].append(loss.item())
    metrics["entropy"].append(entropy)

def main():
    net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 8000)).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
    metrics = defaultdict(list)
    for step in range(25):
        x = torch.randn(256, 512, device="cuda")
        y = torch.randint(0, 8000, (256,), device="cuda")
        train_step(net, opt, x, y, metrics)
    return net, opt, metrics
