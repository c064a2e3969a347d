"""One call of a module in PyTorch and here, and what it gave: results, buffers, and gradients of parameters and arguments; with
PyTorch's own in float64 on the same values, which is asked for only where both have rounded apart."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pairs
import plimsoll
import torch
import translate
from nearness import Wrong


class Given(NamedTuple):
    """A tensor of PyTorch, ours, and a function that gives the truth."""

    name: str
    theirs: torch.Tensor
    here: Any
    truth: Callable[[], torch.Tensor]


def flat(value: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value] if isinstance(value, (torch.Tensor, plimsoll.Tensor)) else []


class Call:
    """The same call twice. PyTorch's runs at once, and raises what PyTorch refuses."""

    def __init__(self, sample: Any, theirs: Any, here: Any) -> None:
        self._theirs, self._here = theirs, here
        self._truth = Truth(theirs, sample)
        self._given = pairs.arguments(sample)
        self._expected = flat(theirs(*self._given.theirs[1], **self._given.theirs[2]))
        self.found: list[Any] = []

    def outputs(self) -> Iterator[Given]:
        """Calls ours. Results, then buffers, which a call may change."""
        self.found = flat(self._here(*self._given.ours[1], **self._given.ours[2]))
        if len(self._expected) != len(self.found):
            raise Wrong(f"{len(self.found)} tensors of output, in PyTorch {len(self._expected)}")
        for at, (left, right) in enumerate(zip(self._expected, self.found, strict=True)):
            yield Given(f"output {at}", left.detach(), right, lambda at=at: self._truth.results()[at].detach())
        buffers = zip(self._theirs.named_buffers(), self._here.buffers(), strict=True)
        for at, ((name, left), right) in enumerate(buffers):
            yield Given(f"buffer {name}", left, right, lambda at=at: self._truth.buffers()[at].detach())

    def gradients(self) -> Iterator[Given]:
        """Those of a sum of all results, each element with a weight of its own. `outputs` comes first."""
        results = [pair for pair in zip(self._expected, self.found, strict=True) if pair[0].is_floating_point()]
        if [left.requires_grad for left, _ in results] != [right.requires_grad for _, right in results]:
            raise Wrong("other results require gradients")
        results = [pair for pair in results if pair[0].requires_grad]
        if not results:
            return
        weights = [torch.randn_like(left) for left, _ in results]
        torch.autograd.backward([left for left, _ in results], weights)
        plimsoll.autograd.backward([right for _, right in results], [translate.to_ours(weight) for weight in weights])
        own = dict(self._here.named_parameters())
        leaves = [(name, param, own[name]) for name, param in self._theirs.named_parameters()]
        leaves += [(f"argument {at}", *pair) for at, pair in enumerate(self._given.leaves)]
        for at, (name, left, right) in enumerate(leaves):
            if (left.grad is None) != (right.grad is None):
                raise Wrong(f"{name} has {'no' if right.grad is None else 'a'} gradient")
            if left.grad is not None:
                exact = functools.partial(self._truth.gradient, weights, at)
                yield Given(f"gradient of {name}", left.grad, right.grad, exact)


class Truth:
    """PyTorch's module in float64, as it was before the call: what both round."""

    def __init__(self, theirs: Any, sample: Any) -> None:
        self._module, self._sample = copy.deepcopy(theirs), sample
        self._run: tuple[Any, list[Any], list[torch.Tensor]] | None = None
        self._gradients: list[Any] | None = None

    def _ran(self) -> tuple[Any, list[Any], list[torch.Tensor]]:
        """The module, its results, and its arguments that want gradients."""
        if self._run is None:
            wide = self._module.double()
            given = pairs.arguments(self._sample)
            made: dict[int, torch.Tensor] = {}

            def widened(leaf: Any) -> Any:
                if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
                    return leaf
                made[id(leaf)] = leaf.detach().double().requires_grad_(leaf.requires_grad)
                return made[id(leaf)]

            args, kwargs = translate.tree((given.theirs[1], given.theirs[2]), widened)
            results = flat(wide(*args, **kwargs))
            self._run = wide, results, [made[id(leaf)] for leaf, _ in given.leaves]
        return self._run

    def results(self) -> list[torch.Tensor]:
        return self._ran()[1]

    def buffers(self) -> list[torch.Tensor]:
        return list(self._ran()[0].buffers())

    def gradient(self, weights: list[torch.Tensor], at: int) -> torch.Tensor:
        """That of a parameter, or of an argument after them."""
        if self._gradients is None:
            wide, results, leaves = self._ran()
            results = [one for one in results if one.is_floating_point() and one.requires_grad]
            torch.autograd.backward(results, [weight.double() for weight in weights])
            self._gradients = [param.grad for param in wide.parameters()] + [leaf.grad for leaf in leaves]
        return self._gradients[at]
