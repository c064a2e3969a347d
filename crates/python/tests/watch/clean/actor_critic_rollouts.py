"""Rollouts of a fixed length in tensors that are made once and written in place."""
import torch
from torch.distributions import Normal


class ActorCritic(torch.nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(observations, 64), torch.nn.Tanh())
        self.mean = torch.nn.Linear(64, actions)
        self.value = torch.nn.Linear(64, 1)
        self.log_std = torch.nn.Parameter(torch.zeros(actions))

    def forward(self, x):
        h = self.body(x)
        return Normal(self.mean(h), self.log_std.exp()), self.value(h).squeeze(-1)


class Rollout:
    def __init__(self, length, environments, observations, actions):
        self.observations = torch.zeros(length, environments, observations)
        self.actions = torch.zeros(length, environments, actions)
        self.rewards = torch.zeros(length, environments)
        self.values = torch.zeros(length, environments)


def main():
    agent = ActorCritic(6, 2)
    optimizer = torch.optim.Adam(agent.parameters(), 7e-4)
    rollout = Rollout(8, 16, 6, 2)
    state = torch.zeros(16, 6)
    for _ in range(60):
        with torch.no_grad():
            for t in range(8):
                policy, value = agent(state)
                action = policy.sample()
                rollout.observations[t], rollout.actions[t], rollout.values[t] = state, action, value
                state = 0.9 * state + 0.1 * action.repeat(1, 3)
                rollout.rewards[t] = -state.square().sum(1)
        returns = rollout.rewards.flip(0).cumsum(0).flip(0)
        policy, value = agent(rollout.observations)
        advantage = returns - rollout.values
        loss = -(policy.log_prob(rollout.actions).sum(-1) * advantage).mean() + (returns - value).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()


main()
