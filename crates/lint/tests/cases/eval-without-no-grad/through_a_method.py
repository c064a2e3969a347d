import torch


class Trainer:
    def train_step(self, batch):
        self.optimizer.zero_grad()
        self.model["generator"](batch).mean().backward()
        self.optimizer.step()

    def eval_step(self, batch):
        self.total += self.model["generator"](batch).mean().item()

    @torch.no_grad()
    def quiet_step(self, batch):
        self.total += self.model["generator"](batch).mean().item()

    def eval_epoch(self):
        for key in self.model.keys():
            self.model[key].eval()
        for batch in self.dev_loader:
            self.eval_step(batch)  # expect: eval-without-no-grad

    def quiet_epoch(self):
        for key in self.model.keys():
            self.model[key].eval()
        for batch in self.dev_loader:
            self.quiet_step(batch)
