"""Two critics with slow targets, a temperature that is learned, and a memory that is filled before learning begins."""
import copy
import random
import torch


def mlp(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 48), torch.nn.ReLU(), torch.nn.Linear(48, outputs))


class Agent:
    def __init__(self):
        self.actor = mlp(4, 4)
        self.critics = torch.nn.ModuleList([mlp(6, 1), mlp(6, 1)])
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.of_actor = torch.optim.Adam(self.actor.parameters())
        self.of_critics = torch.optim.Adam(self.critics.parameters())
        self.of_alpha = torch.optim.Adam([self.log_alpha])

    def act(self, x):
        mean, log_std = self.actor(x).chunk(2, -1)
        policy = torch.distributions.Normal(mean, log_std.clamp(-4, 1).exp())
        raw = policy.rsample()
        return raw.tanh(), (policy.log_prob(raw) - torch.log1p(-raw.tanh() ** 2 + 1e-6)).sum(-1, keepdim=True)

    def learn(self, s, a, r, s2):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            a2, log_p = self.act(s2)
            least = torch.min(*[q(torch.cat([s2, a2], -1)) for q in self.targets])
            wanted = r + 0.99 * (least - alpha * log_p)
        loss = sum((q(torch.cat([s, a], -1)) - wanted).square().mean() for q in self.critics)
        self.update(self.of_critics, loss)
        a1, log_p = self.act(s)
        self.update(self.of_actor, (alpha * log_p - self.critics[0](torch.cat([s, a1], -1))).mean())
        self.update(self.of_alpha, -(self.log_alpha.exp() * (log_p.detach() - 2)).mean())
        for slow, fast in zip(self.targets.parameters(), self.critics.parameters()):
            slow.lerp_(fast.detach(), 0.01)

    @staticmethod
    def update(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


agent, memory, state = Agent(), [], torch.zeros(32, 4)
for step in range(90):
    with torch.no_grad():
        action = agent.act(state)[0] if step > 40 else torch.rand(32, 2) * 2 - 1
        after = 0.9 * state + 0.1 * action.repeat(1, 2)
    memory.append((state, action, -after.norm(dim=1, keepdim=True), after))
    if len(memory) > 40:
        memory.pop(0)
        agent.learn(*random.choice(memory))
    state = after
