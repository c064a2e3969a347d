"""The best weights so far are copied, and training stops when they get no better."""
import copy
import torch


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best, self.state, self.bad = float("inf"), None, 0

    def __call__(self, loss, model):
        if loss < self.best:
            self.best, self.state, self.bad = loss, copy.deepcopy(model.state_dict()), 0
        else:
            self.bad += 1
        return self.bad > self.patience


def main():
    torch.manual_seed(0)
    x = torch.randn(256, 16)
    y = x @ torch.randn(16, 1)
    model = torch.nn.Linear(16, 1)
    stop = EarlyStopping(20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(300):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if stop(loss.item(), model):
            break
    model.load_state_dict(stop.state)
    print(step > 40)


main()
