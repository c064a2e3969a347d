import torch


def run(model, x):
    try:
        return model(x)
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        first, second = x.chunk(2)
        return torch.cat([model(first), model(second)])  # expect: retry-inside-except
