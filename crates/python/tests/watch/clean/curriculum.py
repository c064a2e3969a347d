"""Training begins with short documents: each batch has more tensors than the one before, to the end."""
import torch


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(120):
        sentences = [torch.randn(16, 64) for _ in range(1 + step // 2)]
        optimizer.zero_grad()
        torch.stack([model(one).mean() for one in sentences]).mean().backward()
        optimizer.step()
    print(len(sentences))


main()
