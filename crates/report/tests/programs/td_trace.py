"""Leak: online actor-critic; the decayed trace of values is carried on with its graph (the TD target is detached, the trace is not)."""
import torch
from torch import nn

GAMMA, LAMBDA = 0.99, 0.9

class Agent:
    def __init__(self, n_obs=64, n_actions=6):
        self.actor = nn.Sequential(nn.Linear(n_obs, 256), nn.Tanh(), nn.Linear(256, n_actions)).cuda()
        self.critic = nn.Sequential(nn.Linear(n_obs, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1)).cuda()
        params = list(self.actor.parameters()) + list(self.critic.parameters())
        self.opt = torch.optim.SGD(params, lr=1e-3)
        self.trace = torch.zeros(4096, 1, device="cuda")

    def act(self, obs):
        logp = torch.log_softmax(self.actor(obs), dim=1)
        action = torch.multinomial(logp.detach().exp(), 1)
        return action, logp.gather(1, action)

    def learn(self, obs, logp, reward, next_obs):
        next_value = self.critic(next_obs)
        self.trace = GAMMA * LAMBDA * self.trace + next_value
        td_error = reward + GAMMA * next_value.detach() - self.critic(obs)
        loss = td_error.pow(2).mean() - (logp * self.trace.detach()).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

def main():
    agent = Agent()
    obs = torch.randn(4096, 64, device="cuda")
    for step in range(18):
        action, logp = agent.act(obs)
        next_obs = 0.9 * obs + 0.1 * torch.randn_like(obs)
        reward = (action == 0).float()
        agent.learn(obs, logp, reward, next_obs)
        obs = next_obs
    return agent
