"""Fragmentation: small tables that stay are made between shards that go; afterwards every segment is held by a table and has holes."""
import torch
from torch import nn

def load_shards(count):
    shards, tables = [], []
    for i in range(count):
        shard = torch.randn(8192, 256, device="cuda")
        shards.append(shard)
        tables.append(shard[:2048].clone())  # the shard's codebook, first entries
    return shards, tables

def refine(shards, tables):
    for shard, table in zip(shards, tables):
        for start in range(0, 8192, 2048):
            table.lerp_(shard[start:start + 2048], 0.1)

def main():
    shards, tables = load_shards(30)
    refine(shards, tables)
    del shards
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(20):
        batch = torch.cat([tables[(step + k) % len(tables)] for k in range(8)])
        loss = (net(batch) - batch).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return tables, net, opt
