"""An agent clears its log-probabilities and rewards after each episode, and forgets its entropies."""
# kind: value
# holder: .entropies
import torch
from torch.distributions import Categorical


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = torch.nn.Linear(4, 64)
        self.head = torch.nn.Linear(64, 2)
        self.saved_log_probs = []
        self.rewards = []
        self.entropies = []

    def forward(self, x):
        return self.head(torch.relu(self.affine(x)))


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    distribution = Categorical(logits=policy(state))
    action = distribution.sample()
    policy.saved_log_probs.append(distribution.log_prob(action))
    policy.entropies.append(distribution.entropy().detach())  # made
    return action


def finish_episode():
    returns = torch.stack(policy.rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(policy.saved_log_probs) * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


for episode in range(45):
    state = torch.zeros(256, 4)
    for t in range(5):
        action = select_action(state)
        state = state + torch.randn(256, 4) * (action.float() - 0.5)[:, None]
        policy.rewards.append(1.0 - state.abs().mean(1))
    finish_episode()
