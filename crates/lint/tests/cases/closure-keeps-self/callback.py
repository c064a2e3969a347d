import torch
class Trainer:
    def __init__(self, model):
        self.model = model
        self.callbacks = []
    def add(self):
        self.callbacks.append(lambda: self.model.train())  # expect: closure-keeps-self
