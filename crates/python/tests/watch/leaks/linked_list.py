"""Each state remembers the one before."""
# kind: value
# holder: local `state`.before of main()
import torch


class State:
    def __init__(self, value, before):
        self.value, self.before = value, before


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = None
    for _ in range(40):
        out = model(torch.randn(32, 32))  # made
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        state = State(out.detach(), state)


main()
