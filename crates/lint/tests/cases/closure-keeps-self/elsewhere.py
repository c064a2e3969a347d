import torch
class Trainer:
    def __init__(self, model, queue):
        self.model = model
        queue.append(lambda: self.model.train())
