"""The worst of four learners is replaced by a copy of the best, with its optimizer."""
import copy
import random
import torch


class Member:
    def __init__(self, lr):
        self.model = torch.nn.Linear(24, 24)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.score = 0.0

    def train(self):
        self.optimizer.zero_grad()
        loss = self.model(torch.randn(16, 24)).square().mean()
        loss.backward()
        self.optimizer.step()
        self.score = -loss.item()

    def child(self, rng):
        other = Member(self.optimizer.param_groups[0]["lr"] * rng.choice([0.8, 1.2]))
        other.model.load_state_dict(self.model.state_dict())
        other.optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        return other


def main():
    rng = random.Random(2)
    members = [Member(10 ** rng.uniform(-4, -2)) for _ in range(4)]
    for generation in range(40):
        for member in members:
            member.train()
        if generation % 5 == 4:
            members.sort(key=lambda member: member.score)
            members[0] = members[-1].child(rng)


main()
