"""Right: a replay memory with a bound; it fills up in the first third, then every new transition pushes an old one out."""
import random
from collections import deque
import torch
from torch import nn
import torch.nn.functional as F

def make_qnet():
    return nn.Sequential(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 81, 6)).cuda()

def learn(qnet, target, opt, memory):
    states, actions, rewards, following = (torch.cat(part) for part in zip(*random.sample(memory, 4)))
    with torch.no_grad():
        goal = rewards + 0.99 * target(following).max(dim=1).values
    q = qnet(states).gather(1, actions[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()

def main():
    qnet, target = make_qnet(), make_qnet()
    opt = torch.optim.RMSprop(qnet.parameters(), lr=2.5e-4)
    memory = deque(maxlen=40)
    state = torch.rand(16, 4, 84, 84, device="cuda")  # 16 games side by side
    for step in range(100):
        with torch.no_grad():
            actions = qnet(state).argmax(dim=1)
        following, rewards = torch.rand(16, 4, 84, 84, device="cuda"), torch.rand(16, device="cuda")
        memory.append((state, actions, rewards, following))
        state = following
        if len(memory) == 40 and step % 8 == 0:
            learn(qnet, target, opt, memory)
    return qnet, target, opt, memory
