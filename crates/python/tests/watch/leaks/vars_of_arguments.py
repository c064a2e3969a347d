"""Outputs in a list of a function that asks for `vars` of its arguments, and has a method called eval."""
# kind: value
# holder: local `outputs` of main() -> list of

import argparse

import torch


def main():
    arguments = argparse.Namespace(width=32, steps=60)
    settings = vars(arguments)
    model = torch.nn.Linear(settings["width"], 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    outputs = []
    for _ in range(settings["steps"]):
        model.train()
        optimizer.zero_grad()
        model(torch.randn(32, 32)).square().mean().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            outputs.append(model(torch.randn(32, 32)))  # made


main()
