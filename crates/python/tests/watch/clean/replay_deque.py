"""A replay buffer that is bounded."""
import collections
import random
import torch


def main():
    buffer = collections.deque(maxlen=200)
    model = torch.nn.Linear(64, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(80):
        state = torch.randn(16, 64)
        buffer.append(state)
        sample = torch.cat(random.sample(list(buffer), min(4, len(buffer))))
        optimizer.zero_grad()
        model(sample).pow(2).mean().backward()
        optimizer.step()


main()
