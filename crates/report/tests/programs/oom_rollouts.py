"""Out of memory because of a leak: the rollout buffer is never cleared, so the frames of all rollouts stay until the limit."""
import torch
from torch import nn
import torch.nn.functional as F

class RolloutBuffer:
    def __init__(self):
        self.frames, self.actions, self.returns = [], [], []

    def add(self, frames, actions, returns):
        self.frames.append(frames)
        self.actions.append(actions)
        self.returns.append(returns)

    def clear(self):
        self.__init__()

def collect(policy, buffer, envs=512):
    frames = torch.rand(envs, 4, 84, 84, device="cuda")
    with torch.no_grad():
        actions = policy(frames).argmax(dim=1)
    buffer.add(frames, actions, torch.rand(envs, device="cuda"))

def update(policy, opt, buffer):
    logp = F.log_softmax(policy(buffer.frames[-1]), dim=1)
    chosen = logp.gather(1, buffer.actions[-1][:, None]).squeeze(1)
    opt.zero_grad()
    (-chosen * buffer.returns[-1]).mean().backward()
    opt.step()

def main():
    torch.cuda.set_per_process_memory_fraction(1.5 * (1 << 30) / torch.cuda.get_device_properties(0).total_memory)
    policy = nn.Sequential(nn.Conv2d(4, 16, 8, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(6400, 6)).cuda()
    opt = torch.optim.SGD(policy.parameters(), lr=1e-3)
    buffer, failure = RolloutBuffer(), None
    try:
        for iteration in range(40):
            collect(policy, buffer)
            update(policy, opt, buffer)
    except torch.OutOfMemoryError as error:
        failure = f"iteration {iteration}: {error}"
    return policy, opt, buffer, failure
