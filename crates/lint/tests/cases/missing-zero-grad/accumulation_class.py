import torch


class Trainer:
    def __init__(self, model, optimizer, accumulate=4):
        self.model, self.optimizer, self.accumulate = model, optimizer, accumulate

    def run(self, loader):
        for i, batch in enumerate(loader):
            loss = self.model(**batch).loss / self.accumulate
            loss.backward()
            if (i + 1) % self.accumulate != 0:
                continue
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
