import torch
import lightning as L
class Lit(L.LightningModule):
    def validation_step(self, batch, i):
        self.model.eval()
        for x in self.extra_loader:
            self.model(x)
