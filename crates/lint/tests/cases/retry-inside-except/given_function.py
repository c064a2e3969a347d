import torch


def with_retry(function, *arguments):
    try:
        return function(*arguments)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return function(*arguments)  # expect: retry-inside-except
