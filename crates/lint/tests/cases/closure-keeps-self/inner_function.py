import torch
class Trainer:
    def __init__(self, model):
        self.model = model
        self.hooks = []
    def watch(self):
        def hook():
            return self.model.training
        self.hooks.append(hook)  # expect: closure-keeps-self
