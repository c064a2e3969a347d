"""Tasks that are learned one after the other with a head each, which the one optimizer takes in as a group of its own."""

import torch


def main():
    body, heads = torch.nn.Linear(32, 32), torch.nn.ModuleList()
    optimizer = torch.optim.Adam(body.parameters())
    for _ in range(8):
        head = torch.nn.Linear(32, 32)
        heads.append(head)
        optimizer.add_param_group({"params": head.parameters()})
        for _ in range(12):
            optimizer.zero_grad()
            head(body(torch.randn(8, 32))).mean().backward()
            optimizer.step()
    print(len(heads))


main()
