"""Windows that overlap are cut from each series; together they are a small part of it, which all of them keep."""
# kind: slice that keeps its whole storage
# holder: local `windows` of main()
import torch


def main():
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    windows = []
    for _ in range(40):
        series = torch.randn(4096)  # made
        windows.append([series[at : at + 64] for at in range(33)])
        optimizer.zero_grad()
        model(torch.stack(windows[-1])).pow(2).mean().backward()
        optimizer.step()


main()
