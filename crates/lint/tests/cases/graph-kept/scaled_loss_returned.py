import torch


class Trainer:
    def backward(self, loss, weight):
        if loss is None:
            return 0
        loss = loss * weight
        loss.backward()
        return loss * self.world_size

    def train(self, batches):
        total = 0
        for batch in batches:
            total += self.backward(self.model(batch), 0.5)  # expect: graph-kept
        return total
