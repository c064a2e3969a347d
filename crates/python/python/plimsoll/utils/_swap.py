"""Two tensors that change places: what one object stood for, the other stands for."""

from __future__ import annotations

import weakref

from .._modes import no_grad
from .._plimsoll import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swaps the contents of two leaves, which stay the objects that they are: values, dtypes, shapes, whether they
    require gradients, gradients, classes and attributes. Optimizers and modules that hold one of them hold its new
    content. No memory is taken.

    What a weak reference leads to is refused, as in PyTorch, and so are results of operations. Hooks stay with their
    objects, and graphs that were recorded before give their gradients to them, where PyTorch refuses to run such a graph.

    >>> import plimsoll
    >>> a, b = plimsoll.ones(2), plimsoll.nn.Parameter(plimsoll.zeros(3))
    >>> plimsoll.utils.swap_tensors(a, b)
    >>> a, b
    (Parameter containing:
    tensor([0., 0., 0.], requires_grad=True), tensor([1., 1.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"swap_tensors: {name} is a {type(tensor).__name__}, not a tensor")
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        if tensor.grad_fn is not None:
            made = tensor.grad_fn.name()
            raise RuntimeError(f"swap_tensors: {name} is the result of {made}; only leaves are swapped: detach() it")
    if t1 is t2:
        return
    first, second = t1.detach(), t2.detach()
    flags, grads = (t1.requires_grad, t2.requires_grad), (t1.grad, t2.grad)
    with no_grad():
        for tensor, content, flag, grad in ((t1, second, flags[1], grads[1]), (t2, first, flags[0], grads[0])):
            # Integers require no gradient, so the flag goes first where it falls and last where it rises.
            tensor.grad = None
            tensor.requires_grad_(False)
            tensor.data = content
            tensor.requires_grad_(flag)
            tensor.grad = grad
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
