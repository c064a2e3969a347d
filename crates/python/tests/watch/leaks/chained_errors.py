"""Each failure is raised from the one before, whose frames keep their batches."""
# kind: value
# holder: local `failure` of main()
import torch


class StepFailed(RuntimeError):
    pass


def attempt(model, optimizer, previous):
    batch = torch.randn(16, 32)  # made
    optimizer.zero_grad()
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    if batch.numel() > 0:
        raise StepFailed("not finite") from previous


def main():
    model = torch.nn.Linear(32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    failure = None
    for _ in range(40):
        try:
            attempt(model, optimizer, failure)
        except StepFailed as error:
            failure = error


main()
