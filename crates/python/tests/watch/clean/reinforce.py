"""An episode's log-probabilities are gathered with their graphs, used, and cleared."""
import torch


def main():
    policy = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(policy.parameters())
    saved = []
    for _ in range(50):
        for _ in range(10):
            choice = torch.distributions.Categorical(logits=policy(torch.randn(1, 8)))
            action = choice.sample()
            saved.append((choice.log_prob(action), torch.rand(1)))
        loss = torch.stack([-log * reward for log, reward in saved]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        saved.clear()


main()
