"""All embeddings of a dataset are collected on the device with their graph, in a helper function."""
import torch
from torch import nn

def encode(net, batch):
    return net(batch)

def collect(net):
    store = {}
    for i in range(18):
        batch = torch.randn(256, 300, device="cuda")
        store[i] = encode(net, batch)
    return store

def main():
    net = nn.Sequential(nn.Linear(300, 1200), nn.ReLU(), nn.Linear(1200, 128)).cuda()
    return net, collect(net)
