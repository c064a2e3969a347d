"""A rollout is used for several epochs of learning, then replaced."""
import torch
from torch.distributions import Categorical


def main():
    policy = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(6):
        rollout = []
        with torch.no_grad():
            for _ in range(16):
                state = torch.randn(32, 8)
                choice = Categorical(logits=policy(state))
                action = choice.sample()
                rollout.append((state, action, choice.log_prob(action), torch.randn(32)))
        for _ in range(3):
            for state, action, before, advantage in rollout:
                ratio = (Categorical(logits=policy(state)).log_prob(action) - before).exp()
                optimizer.zero_grad()
                (-torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()).backward()
                optimizer.step()


main()
