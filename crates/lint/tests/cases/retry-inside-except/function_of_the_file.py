import torch


def forward_pass(model, batch):
    return model(batch).mean()


def evaluate(model, batches):
    for batch in batches:
        try:
            value = forward_pass(model, batch)
        except (torch.OutOfMemoryError, MemoryError):
            value = forward_pass(model, batch[:8])  # expect: retry-inside-except
        print(value.item())
