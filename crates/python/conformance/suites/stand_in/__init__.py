"""What PyTorch's test files import from `torch.testing._internal`, written anew from how those names behave: test cases,
variants by device, dtype and parameter, skips. Only the CPU's variants are made. `modules.py` puts each where imports look for it."""
