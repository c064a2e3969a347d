"""A trainer gets a callback in every step and drops none; each closes over its step's logits."""
# kind: value
# holder: .callbacks
import torch


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.callbacks = []

    def on_end(self, callback):
        self.callbacks.append(callback)

    def step(self, batch, labels):
        logits = self.model(batch)  # made
        loss = torch.nn.functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        kept = logits.detach()

        def report():
            return kept.argmax(1)

        self.on_end(report)


def main():
    model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Flatten(), torch.nn.Linear(64, 20))
    trainer = Trainer(model, torch.optim.Adagrad(model.parameters()))
    for _ in range(40):
        trainer.step(torch.randint(0, 50, (32, 4)), torch.randint(0, 20, (32,)))


main()
