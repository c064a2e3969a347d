"""An exponential average of the loss keeps every step's graph behind it."""
# kind: graph nodes on the host
# holder: .smoothed
import dataclasses
import torch


@dataclasses.dataclass
class Progress:
    beta: float = 0.98
    smoothed: object = None
    seen: int = 0

    def push(self, loss):
        self.seen += 1
        if self.smoothed is None:
            self.smoothed = loss
        else:
            self.smoothed = self.beta * self.smoothed + (1 - self.beta) * loss  # made


def fit():
    net = torch.nn.Sequential(torch.nn.Linear(10, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1))
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    progress = Progress()
    for _ in range(70):
        x = torch.rand(64, 10)
        loss = (net(x).squeeze() - x.sum(1)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        progress.push(loss)
    print(progress.seen)


fit()
