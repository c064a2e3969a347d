"""The sparse adjacency matrix of each batch of graphs is kept."""
# kind: value
# holder: local `adjacencies` of main()
import torch


def main():
    model = torch.nn.Linear(32, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    adjacencies = []
    for _ in range(40):
        edges = torch.randint(0, 32, (2, 200))
        adjacency = torch.sparse_coo_tensor(edges, torch.rand(200), (32, 32)).coalesce()  # made
        optimizer.zero_grad()
        model(torch.sparse.mm(adjacency, torch.randn(32, 32))).pow(2).mean().backward()
        optimizer.step()
        adjacencies.append(adjacency)


main()
