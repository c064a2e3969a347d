"""A subclass makes a network anew, and the parent class keeps the earlier ones."""
# kind: parameter
# holder: class attribute Agent.networks
import torch


class Agent:
    networks = []

    def __init__(self):
        self.networks.append(self.build())


class Policy(Agent):
    def build(self):
        return torch.nn.Linear(32, 32)  # made


def main():
    for _ in range(40):
        agent = Policy()
        network = agent.networks[-1]
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        network(torch.randn(8, 32)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
