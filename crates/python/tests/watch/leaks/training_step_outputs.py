"""A module in the manner of Lightning gathers its outputs for the end of an epoch, which forgets to clear them."""
# kind: value
# holder: .training_step_outputs
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class LitClassifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        self.training_step_outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)  # made
        loss = F.cross_entropy(logits, y)
        self.training_step_outputs.append(logits.detach())
        return loss

    def on_train_epoch_end(self):
        every = torch.cat(self.training_step_outputs)
        print(tuple(every.shape))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, loader):
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            for batch_idx, batch in enumerate(loader):
                loss = module.training_step(batch, batch_idx)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            module.on_train_epoch_end()


if __name__ == "__main__":
    data = TensorDataset(torch.randn(480, 20), torch.randint(0, 10, (480,)))
    Trainer(max_epochs=5).fit(LitClassifier(), DataLoader(data, batch_size=48))
