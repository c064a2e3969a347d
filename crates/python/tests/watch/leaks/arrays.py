"""NumPy arrays of outputs are kept; they are the tensors' own memory."""
# kind: value
# holder: `predictions`
import torch


@torch.no_grad()
def predict(model, batches):
    predictions = []
    for _ in range(batches):
        out = model(torch.randn(32, 20))  # made
        predictions.append(out.numpy())
        train_a_little(model)
    return predictions


@torch.enable_grad()
def train_a_little(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model(torch.randn(4, 20)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


predict(torch.nn.Linear(20, 20), 45)
