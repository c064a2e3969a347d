"""What test files of modules import from `torch.testing._internal.common_nn`, but for its database of modules, which the
samples of training cover."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from stand_in.test_case import TestCase


class NNTestCase(TestCase):
    """A test case that runs modules forward and backward."""

    def _forward(self, module: Any, given: Any) -> Any:
        with torch.random.fork_rng():
            return module(*given) if isinstance(given, tuple) else module(given)

    def _backward(self, module: Any, given: Any, output: Any, gradient: Any, create_graph: bool = False) -> Any:
        output.backward(gradient, retain_graph=True, create_graph=create_graph)
        if isinstance(given, tuple):
            return tuple(None if each.grad is None else each.grad.data for each in given)
        return None if given.grad is None else given.grad.data

    def _get_parameters(self, module: Any) -> tuple[list[Any], list[Any]]:
        found = list(module.parameters())
        for each in found:
            if each.grad is None:
                each.grad = torch.zeros_like(each)
        return found, [each.grad for each in found]

    def _zero_grad_parameters(self, module: Any) -> None:
        for each in module.parameters():
            if each.grad is not None:
                each.grad = each.grad.detach().zero_()


class Holder(nn.Module):
    """A parameter and a buffer under the names that the tests ask for, and perhaps another module."""

    def __init__(self, prefix: str, shape: tuple[int, ...], inner: nn.Module | None = None) -> None:
        super().__init__()
        if inner is not None:
            self.l1 = inner
        self.register_parameter(f"{prefix}dummy_param", nn.Parameter(torch.empty(3, 5)))
        self.register_buffer(f"{prefix}dummy_buf", torch.zeros(shape))


def _create_basic_net() -> tuple[nn.Module, nn.Module, nn.Module]:
    layer = Holder("layer_", (1, 3, 3, 7))
    net = Holder("", (7, 3, 3, 1), Holder("layer_", (1, 3, 3, 7)))
    return layer, net, nn.Sequential(net, net)


def _test_module_empty_input(case: Any, module: Any, given: Any, check_size: bool = True, inference: bool = False) -> None:
    """A module takes an empty batch, and so does its backward."""
    if not inference:
        given.requires_grad_(True)
    made = module(given)
    if not inference:
        made.backward(torch.rand_like(made))
    if check_size:
        case.assertEqual(made.size(), given.size())
    if inference:
        return
    for each in [*module.parameters(), given]:
        if each.requires_grad:
            case.assertEqual(each.grad, torch.zeros_like(each.grad))


NN: dict[str, Any] = {
    "NNTestCase": NNTestCase,
    "_create_basic_net": _create_basic_net,
    "_test_module_empty_input": _test_module_empty_input,
    "module_tests": [],
    "criterion_tests": [],
    "get_new_module_tests": list,
}
