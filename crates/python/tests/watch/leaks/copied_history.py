"""A metric copies its lists at each call, so that no storage lives long, and there are more of them every time."""
# kind: value
# holder: local `metric`.seen of main()
import torch


class Metric:
    def __init__(self):
        self.seen = []

    def __call__(self, predicted):
        before = self.seen
        self.seen = [predicted.detach().clone()]
        self.seen = [one.clone() for one in before] + self.seen  # made


def main():
    model = torch.nn.Linear(64, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    metric = Metric()
    for _ in range(60):
        predicted = model(torch.randn(64, 64))
        optimizer.zero_grad()
        predicted.pow(2).mean().backward()
        optimizer.step()
        metric(predicted)


main()
