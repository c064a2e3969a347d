import torch
from torch import nn


class Experiment:
    def __init__(self, cfg):
        self.model = nn.Sequential(nn.Linear(cfg.dim, cfg.dim), nn.ReLU())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr)
        self.callbacks = {}
        self.callbacks["end"] = lambda: torch.save(self.model.state_dict(), cfg.path)  # expect: closure-keeps-self

    def run(self):
        self.callbacks["end"]()
