"""Each batch is a list of as many tensors as its document has sentences, which the loop's variable holds at the end of a step."""
import random

import torch


def main():
    random.seed(0)
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0
    for _ in range(150):
        sentences = [torch.randn(16, 64) for _ in range(random.randint(1, 30))]
        total += len(sentences)
        optimizer.zero_grad()
        torch.stack([model(one).mean() for one in sentences]).mean().backward()
        optimizer.step()
    print(total)


main()
