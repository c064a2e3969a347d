"""Holds gradients of tensors that are used through parts of them to PyTorch's: queries, keys and values of one product above all. With
PyTorch at hand:

    PYTHONPATH=crates/python/python python crates/python/conformance/packed_gradients.py

Every way to cut a product is put through every program with both packages, on the same numbers; compared are the gradients of the product
and of what it is made of, in the dtypes that attention takes. Fails if something differs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import plimsoll
import torch

B, T, H, D = 2, 9, 3, 4
C = H * D

# How a product of (B, T, 3 C) becomes queries, keys and values of (B, H, T, D).
WAYS: dict[str, Callable[[Any], Any]] = {
    "split": lambda x: [part.view(B, T, H, D).transpose(1, 2) for part in x.split(C, dim=2)],
    "chunk": lambda x: [part.view(B, T, H, D).transpose(1, 2) for part in x.chunk(3, -1)],
    "slices": lambda x: [x[..., at : at + C].reshape(B, T, H, D).transpose(1, 2) for at in (0, C, 2 * C)],
    "unbind": lambda x: x.view(B, T, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0),
    "index": lambda x: [x.view(B, T, 3, H, D)[:, :, at].transpose(1, 2) for at in range(3)],
    "heads of three": lambda x: [part.transpose(1, 2) for part in x.view(B, T, H, 3 * D).chunk(3, dim=-1)],
    "first dimension": lambda x: x.view(B, T, 3, H, D).permute(2, 0, 3, 1, 4).contiguous().unbind(0),
}


def attend(module: Any, q: Any, k: Any, v: Any) -> Any:
    return module.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def hooked(module: Any, q: Any, k: Any, v: Any) -> Any:
    k.register_hook(lambda grad: grad * 2)
    v.register_hook(lambda grad: None)
    return attend(module, q, k, v)


def written(module: Any, q: Any, k: Any, v: Any) -> Any:
    def triple(grad: Any) -> None:
        grad.mul_(3)

    q.register_hook(triple)
    return attend(module, q, k, v)


def retained(module: Any, q: Any, k: Any, v: Any) -> Any:
    q.retain_grad()
    return attend(module, q, k, v) + q


PROGRAMS: dict[str, Callable[..., Any]] = {
    "attention": attend,
    "a key twice": lambda m, q, k, v: attend(m, q, k, v) + k * 0.5,
    "no query": lambda m, q, k, v: attend(m, k.tanh(), k, v),
    "only values": lambda m, q, k, v: v * v,
    "keys are values": lambda m, q, k, v: attend(m, q, k, k) + v.sin(),
    "two of them": lambda m, q, k, v: attend(m, q, k, v) + attend(m, v, q, k),
    "turned queries": lambda m, q, k, v: attend(m, q.sin(), k.cos(), v),
    "a hook that gives another": hooked,
    "a hook that writes": written,
    "a retained gradient": retained,
    "joined again": lambda m, q, k, v: m.cat([q, k, v], -1).tanh(),
}


def run(module: Any, numbers: list[Any], way: str, program: str, dtype: str, whole: bool) -> list[Any]:
    """Gradients of input, weight, bias and product."""
    made = [module.tensor(values, dtype=module.float64).to(getattr(module, dtype)) for values in numbers]
    x, weight, bias, given = made
    leaves = [t.requires_grad_(True) for t in (x, weight, bias)]
    product = module.nn.functional.linear(x, weight, bias)
    product.retain_grad()
    result = PROGRAMS[program](module, *WAYS[way](product))
    loss = (result * given.repeat(1, 1, 1, result.shape[-1] // D)).sum()
    if whole:
        loss = loss + (product * product).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return [t.grad.double().tolist() for t in (*leaves, product)]


def largest(a: Any, b: Any) -> tuple[float, float]:
    """The largest difference of two nested lists, and the largest number."""
    if isinstance(a, list):
        pairs = [largest(one, other) for one, other in zip(a, b, strict=True)]
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
    return abs(a - b), max(abs(a), abs(b))


def main() -> None:
    torch.manual_seed(0)
    shapes = [(B, T, C), (3 * C, C), (3 * C,), (B, H, T, D)]
    numbers = [torch.randn(*shape, dtype=torch.float64).mul(0.5).tolist() for shape in shapes]
    same, different = 0, 0
    limits = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 0.03}
    for way, program, dtype, whole in itertools.product(WAYS, PROGRAMS, limits, (False, True)):
        theirs = run(torch, numbers, way, program, dtype, whole)
        ours = run(plimsoll, numbers, way, program, dtype, whole)
        for name, a, b in zip(("input", "weight", "bias", "product"), theirs, ours, strict=True):
            difference, size = largest(a, b)
            if difference <= limits[dtype] * max(1.0, size):
                same += 1
            else:
                different += 1
                print(f"{way}, {program}, {dtype}, whole too: {whole}: the {name}'s gradient differs by {difference} of {size}")
    print(f"{same} the same, {different} different")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
