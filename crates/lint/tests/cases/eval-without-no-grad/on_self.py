import torch
class Trainer:
    def validate(self):
        self.model.eval()
        for x, y in self.val_loader:
            out = self.model(x.to(self.device))  # expect: eval-without-no-grad
