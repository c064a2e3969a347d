import torch
class Trainer:
    def __init__(self, model):
        self.model = model
    def best(self, batches):
        return max(batches, key=lambda b: self.model(b).sum().item())
