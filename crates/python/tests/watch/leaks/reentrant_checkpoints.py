"""Results of a checkpoint that runs backward within backward are kept; there is no optimizer, so backward tells the steps."""
# kind: activation kept by a graph | input that takes gradients | value
# holder: local `kept` of main()
import torch
from torch.utils.checkpoint import checkpoint


def main():
    layer = torch.nn.Linear(64, 64)
    kept = []
    for _ in range(40):
        x = torch.randn(32, 64, requires_grad=True)  # made
        out = checkpoint(layer, x, use_reentrant=True)  # made
        out.square().mean().backward()
        kept.append(out)


main()
