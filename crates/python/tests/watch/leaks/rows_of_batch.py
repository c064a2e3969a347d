"""A vectorised environment's observations are pushed into a memory row by row, and all rows stay."""
# kind: value
# holder: local `memory`.rows of main()
import torch


class Memory:
    def __init__(self):
        self.rows = []

    def push(self, batch):
        for row in batch:
            self.rows.append(row)


def main():
    policy = torch.nn.Linear(64, 4)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    memory = Memory()
    for _ in range(40):
        observed = torch.randn(8, 64)  # made
        memory.push(observed)
        optimizer.zero_grad()
        policy(observed).pow(2).mean().backward()
        optimizer.step()


main()
