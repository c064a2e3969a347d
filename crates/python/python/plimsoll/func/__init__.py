"""PyTorch's `func`, as far as it is about modules. Derivatives of functions are in `autograd.functional`."""

from ..nn.utils.stateless import functional_call as functional_call
