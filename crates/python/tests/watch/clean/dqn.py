"""A replay memory of its own, a target network, and updates of it."""
import copy
import random
import torch


def main():
    network = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    target = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters())
    memory, most, at = [], 30, 0
    for step in range(150):
        item = (torch.randn(128, 4), torch.randn(128))
        if len(memory) < most:
            memory.append(item)
        else:
            memory[at] = item
            at = (at + 1) % most
        state, reward = random.choice(memory)
        wanted = reward + 0.9 * target(state).max(1).values.detach()
        optimizer.zero_grad()
        (network(state).max(1).values - wanted).pow(2).mean().backward()
        optimizer.step()
        if step % 10 == 0:
            target.load_state_dict(network.state_dict())


main()
