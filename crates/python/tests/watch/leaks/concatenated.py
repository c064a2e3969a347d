"""All predictions so far are one tensor, which every step makes anew and longer."""
# kind: value
# holder: `everything`
import torch


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    everything = torch.empty(0, 32)
    for _ in range(60):
        x = torch.randn(16, 32)
        out = model(x)
        optimizer.zero_grad()
        (out - x).pow(2).mean().backward()
        optimizer.step()
        everything = torch.cat([everything, out.detach()])  # made


main()
