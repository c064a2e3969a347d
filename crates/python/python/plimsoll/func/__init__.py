"""PyTorch's `func`, as far as it is about modules. Derivatives of functions are in `autograd.functional`."""

from ..nn.utils._functional_call import functional_call as functional_call
