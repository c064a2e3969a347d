"""Every step adds a prompt to the optimizer's groups, as if each batch were a new task."""
# kind: parameter | gradient that is kept
# holder: param_groups
import torch


def main():
    backbone = torch.nn.Linear(64, 8)
    optimizer = torch.optim.SGD(backbone.parameters(), lr=0.1)
    for _ in range(40):
        prompt = torch.nn.Parameter(torch.randn(16, 64))  # made
        optimizer.add_param_group({"params": [prompt], "lr": 0.01})
        optimizer.zero_grad(set_to_none=True)
        backbone(prompt).pow(2).sum().backward()
        optimizer.step()


main()
