import torch


class Trainer:
    def forward_backward(self, batch):
        loss = self.loss_fn(self.model(batch["x"]), batch["y"])
        loss.backward()
        return loss

    def train_step(self, batch):
        loss = self.forward_backward(batch)
        self.optimizer.step()  # expect: missing-zero-grad
        self.scheduler.step()
        return loss.item()

    def train(self):
        batches = iter(self.batches)
        self.optimizer.zero_grad()
        while self.step < self.steps:
            self.train_step(next(batches))
            self.step += 1


class Clearing(Trainer):
    def train_step(self, batch):
        self.optimizer.zero_grad()
        loss = self.forward_backward(batch)
        self.optimizer.step()
        return loss.item()

    def train(self):
        for batch in self.batches:
            self.train_step(batch)
