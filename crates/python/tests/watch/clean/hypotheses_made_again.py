"""Decoding keeps the steps of a sentence in a list that is made again for each token, and begins anew with each sentence."""
import torch


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hidden = []
    for step in range(120):
        if step % 15 == 0:
            hidden = []
        hidden = [one.clone() for one in hidden] + [torch.randn(8, 64)]
        optimizer.zero_grad()
        model(torch.stack(hidden)).pow(2).mean().backward()
        optimizer.step()
    print(len(hidden))


main()
