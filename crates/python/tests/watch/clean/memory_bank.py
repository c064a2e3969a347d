"""Keys of the last batches in one tensor, written in place, and a slow copy of the encoder."""
import torch

bank, at = torch.randn(128, 512), 0
encoder, slow = torch.nn.Linear(64, 128), torch.nn.Linear(64, 128)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for _ in range(60):
    x = torch.randn(32, 64)
    with torch.no_grad():
        for ours, theirs in zip(slow.parameters(), encoder.parameters()):
            ours.mul_(0.99).add_(theirs, alpha=0.01)
        keys = slow(x)
    optimizer.zero_grad()
    (encoder(x) @ bank).logsumexp(1).mean().backward()
    optimizer.step()
    bank[:, at : at + 32] = keys.t()
    at = (at + 32) % 512
