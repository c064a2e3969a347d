import traceback

import torch


def run(model, x):
    try:
        return model(x)
    except torch.cuda.OutOfMemoryError as error:
        error.__traceback__ = None
        return model(x[:1])


def cleared(model, x):
    try:
        return model(x)
    except torch.cuda.OutOfMemoryError as error:
        traceback.clear_frames(error.__traceback__)
        return model(x[:1])
