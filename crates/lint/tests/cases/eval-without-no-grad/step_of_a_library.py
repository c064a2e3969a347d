import torch
from agents import TorchAgent


class Agent(TorchAgent):
    def train_step(self, batch):
        self.optimizer.zero_grad()
        self.model(batch.text).mean().backward()
        self.optimizer.step()

    def eval_step(self, batch):
        # The library calls this under `no_grad`.
        self.model.eval()
        return self.model(batch.text).argmax(1)

    def _val_step(self, batch):
        self.model.eval()
        return self.model(batch.text).argmax(1).tolist()  # expect: eval-without-no-grad
