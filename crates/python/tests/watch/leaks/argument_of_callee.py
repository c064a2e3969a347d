"""Backward tells the steps, so that each look falls within a function whose argument is another name of the list."""
# kind: input that takes gradients | value
# holder: local `history` of main()
import torch


def remember(into, batch):
    into.append(batch * 2)  # made
    batch.sum().backward()


def main():
    history = []
    for _ in range(40):
        remember(history, torch.ones(1024, requires_grad=True))  # made


main()
