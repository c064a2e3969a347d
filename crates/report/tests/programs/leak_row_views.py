"""Leak: one row of each batch is kept as an example."""
import torch


def main():
    examples = []
    for index in range(16):
        batch = torch.randn(256, 4096, device="cuda")
        scores = batch.square().sum(dim=1)
        examples.append(batch[scores.argmax().item()])
    return examples
