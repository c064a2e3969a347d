"""Hard examples of each batch are put aside for later, and later never comes."""
# kind: value | slice that keeps its whole storage
# holder: .hard
import torch


class Miner:
    def __init__(self, share):
        self.share = share
        self.hard = []

    def look(self, x, losses):
        worst = losses.topk(int(len(losses) * self.share)).indices
        self.hard.extend(x[worst])  # made


def main():
    torch.manual_seed(3)
    model = torch.nn.Linear(48, 6)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    miner = Miner(0.25)
    for _ in range(40):
        x, y = torch.randn(64, 48), torch.randint(0, 6, (64,))
        losses = criterion(model(x), y)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        miner.look(x, losses.detach())


main()
