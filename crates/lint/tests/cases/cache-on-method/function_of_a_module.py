import functools

from torch import nn


@functools.lru_cache()  # expect: cache-on-method
def adapter_parameters(model: nn.Module):
    return {name: p for name, p in model.named_parameters() if "lora" in name}


@functools.lru_cache()
def size_of(name: str) -> int:
    return len(name)
