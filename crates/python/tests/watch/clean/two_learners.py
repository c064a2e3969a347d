"""Two threads train a model each."""
import threading
import torch


class Learner(threading.Thread):
    def __init__(self, seed):
        super().__init__()
        self.model = torch.nn.Linear(16, 16)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.generator = torch.Generator().manual_seed(seed)
        self.losses = []

    def run(self):
        for _ in range(60):
            x = torch.randn(8, 16, generator=self.generator)
            self.optimizer.zero_grad()
            loss = self.model(x).abs().mean()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())


learners = [Learner(seed) for seed in range(2)]
for learner in learners:
    learner.start()
for learner in learners:
    learner.join()
print([len(learner.losses) for learner in learners])
