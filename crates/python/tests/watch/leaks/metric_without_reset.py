"""A metric class gathers probabilities in `update`; `compute` is called, `reset` is not."""
# kind: value
# holder: .probabilities
import torch


class AreaUnderCurve:
    def __init__(self):
        self.reset()

    def reset(self):
        self.probabilities = []
        self.positives = 0

    def update(self, logits, labels):
        self.probabilities.append(torch.sigmoid(logits.detach()))  # made
        self.positives += int(labels.sum())

    def compute(self):
        return float(torch.cat(self.probabilities).mean())


def run_epoch(model, optimizer, metric, batches):
    for _ in range(batches):
        x = torch.randn(400, 12)
        y = (x[:, 0] > 0).float()
        logits = model(x).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        metric.update(logits, y)
    return metric.compute()


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(12, 1)
    optimizer = torch.optim.RMSprop(model.parameters())
    auc = AreaUnderCurve()
    for epoch in range(4):
        print(epoch, run_epoch(model, optimizer, auc, 15) >= 0)


main()
