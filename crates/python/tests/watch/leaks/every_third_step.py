"""Only every third step leaves something behind."""
# kind: value
# holder: local `samples` of main()
import torch


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    samples = []
    for step in range(90):
        out = model(torch.randn(64, 64))
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        if step % 3 == 0:
            samples.append(out.detach() * 2)  # made


main()
