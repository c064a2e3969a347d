import torch


def run(model, x):
    try:
        return model(x)
    except torch.cuda.OutOfMemoryError:
        model.cpu()
        return model(x.cpu())
