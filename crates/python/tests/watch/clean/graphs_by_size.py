"""A graph network keeps the normalised adjacency of every size it has met; there are twelve."""
import functools
import torch


@functools.lru_cache(maxsize=None)
def ring(nodes):
    adjacency = torch.eye(nodes) + torch.eye(nodes).roll(1, 0) + torch.eye(nodes).roll(-1, 0)
    return adjacency / adjacency.sum(1, keepdim=True)


class GraphNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(ring(x.shape[0]) @ x))
        return x.mean()


net = GraphNet()
optimizer = torch.optim.Adam(net.parameters())
for step in range(90):
    optimizer.zero_grad()
    net(torch.randn(30 + step % 12, 8)).backward()
    optimizer.step()
