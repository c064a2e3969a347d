"""One stream of random draws for all runs of a program: PyTorch's first run writes down what it draws, and the others get the same
numbers in the same order. A run that replays calls its own function all the same, and the name, shape and dtype of each draw must be
those that were written down; only the values are replaced.

Orders of samplers and parts of `random_split` are draws; the seed that a loader draws for its workers is none. PyTorch's own state is
looked at between draws: a program whose numbers come from a place that is not watched here (the dropout inside a recurrent layer, say)
cannot be compared and says so."""

from __future__ import annotations

import contextlib
import functools
import math
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FUNCTIONS = ["rand", "randn", "randint", "randperm", "normal", "multinomial", "bernoulli", "poisson"]
FUNCTIONS += ["rand_like", "randn_like", "randint_like"]
METHODS = ["normal_", "uniform_", "random_", "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_"]
METHODS += ["bernoulli", "multinomial"]
# Those of `nn.init` that do not only draw: what they leave in the tensor counts.
INIT = ["orthogonal_", "trunc_normal_", "sparse_"]
DROPOUT = ["dropout", "dropout1d", "dropout2d", "dropout3d"]
SAMPLERS = ["RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler"]
SEEDS = ["manual_seed", "seed", "set_rng_state"]


class Differs(Exception):
    """The program drew something else than PyTorch's first run did."""


class Draws:
    """Puts itself in place of the random functions of a `torch`. Writes to the file, or replays what it holds."""

    def __init__(self, torch: Any, path: Path, replay: bool) -> None:
        self.torch, self.replay, self.count, self.unseen = torch, replay, 0, ""
        self._file = path.open("rb" if replay else "wb")
        # Draws inside another draw are part of it.
        self._inside = 0
        self._install()
        self._watches = not replay
        self._state = self._now()

    # ---- the stream ----

    def _draw(self, name: str, dtype: str, shape: tuple[int, ...], values: Any) -> Any:
        """Writes a draw down, or gives the recorded one of this place."""
        self.count += 1
        if not self.replay:
            pickle.dump((name, dtype, shape, values), self._file)
            return values
        try:
            there = pickle.load(self._file)
        except EOFError:
            raise Differs(f"draw {self.count} is {name}, and PyTorch's run drew no more") from None
        if there[:3] != (name, dtype, shape):
            was = "{}: {}{}".format(*there[:2], list(there[2]))
            raise Differs(f"draw {self.count} is {name}: {dtype}{list(shape)}, and in PyTorch's run it is {was}")
        return there[3]

    def _tensor(self, name: str, tensor: Any) -> None:
        """Writes a tensor's values down, or replaces them by the recorded ones."""
        torch = self.torch
        values = None if self.replay else tensor.detach().cpu().numpy().copy()
        values = self._draw(name, str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), values)
        if self.replay:
            with torch.no_grad():
                tensor.detach().copy_(torch.from_numpy(values))

    def close(self) -> None:
        self._file.close()

    # ---- what is not watched ----

    def _now(self) -> bytes:
        return bytes(self.torch.get_rng_state().numpy()) if not self.replay else b""

    def look(self, at: str) -> None:
        """Notes if PyTorch's state has moved since the last draw that was written down."""
        if self._watches and not self._inside and self._now() != self._state:
            self.unseen = self.unseen or f"PyTorch drew numbers that are not recorded, before {at}"
            self._state = self._now()

    @contextlib.contextmanager
    def _one(self, name: str) -> Iterator[None]:
        self.look(name)
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._state = self._now()

    # ---- in place of the functions ----

    def _plain(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """For what gives its draw back, new or in place."""

        @functools.wraps(original)
        def drawn(*args: Any, **named: Any) -> Any:
            if self._inside:
                return original(*args, **named)
            with self._one(name):
                result = original(*args, **named)
                self._tensor(name, result)
            return result

        return drawn

    def _dropout(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """What is kept, and how it is scaled, is the draw: what the function makes of ones. A replay multiplies by it."""
        torch = self.torch

        @functools.wraps(original)
        def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if self._inside or not training or p == 0.0:
                return original(input, p, training, inplace)
            with self._one(name):
                before = None if self.replay else torch.get_rng_state()
                with torch.no_grad():
                    kept = original(torch.ones_like(input), p, True, False)
                self._tensor(name, kept)
                if self.replay:
                    return input.mul_(kept) if inplace else input * kept
                torch.set_rng_state(before)
                expected = input.detach() * kept
                result = original(input, p, training, inplace)
                if not torch.allclose(result.detach(), expected, rtol=1e-5, atol=1e-6, equal_nan=True):
                    raise Differs(f"{name} of the input is not what {name} of ones says")
                return result

        return dropout

    def _attention(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Attention with dropout, by its definition, so that the dropout is one that is watched."""
        torch, functional = self.torch, self.torch.nn.functional

        @functools.wraps(original)
        def attention(
            query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **named: Any
        ) -> Any:
            if dropout_p == 0.0:
                return original(query, key, value, attn_mask, dropout_p, is_causal, **named)
            if any(named.values()):
                raise Differs(f"attention with dropout and {', '.join(named)} is not watched")
            scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
            if is_causal:
                attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            if attn_mask is not None:
                is_bool = attn_mask.dtype == torch.bool
                scores = scores.masked_fill(attn_mask.logical_not(), -math.inf) if is_bool else scores + attn_mask
            return functional.dropout(scores.softmax(-1), dropout_p) @ value

        return attention

    def _sampler(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Each index is a draw when a loader asks for it, as a sampler may never end."""

        @functools.wraps(original)
        def indices(sampler: Any) -> Iterator[int]:
            order = original(sampler)
            while True:
                with self._one(name):
                    index = next(order, None)
                    if index is None:
                        return
                    index = self._draw(name, "index", (), int(index))
                yield index

        return indices

    def _split(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def split(*args: Any, **named: Any) -> Any:
            with self._one("random_split"):
                parts = original(*args, **named)
                for part in parts:
                    part.indices = self._draw("random_split", "indices", (len(part.indices),), list(part.indices))
            return parts

        return split

    def _quiet(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """What it draws, or how it sets the generator, is not part of the stream."""

        @functools.wraps(original)
        def quiet(*args: Any, **named: Any) -> Any:
            with self._one(name):
                return original(*args, **named)

        return quiet

    def _install(self) -> None:
        torch = self.torch
        data, functional, init = torch.utils.data, torch.nn.functional, torch.nn.init
        replaced: dict[int, Any] = {}

        def replace(owner: Any, name: str, made: Any) -> None:
            replaced[id(getattr(owner, name))] = (getattr(owner, name), made)
            setattr(owner, name, made)

        # What a `torch` does not have, a program does not draw from.
        for name in filter(functools.partial(hasattr, torch), FUNCTIONS):
            replace(torch, name, self._plain(name, getattr(torch, name)))
        for name in METHODS:
            setattr(torch.Tensor, name, self._plain(f"Tensor.{name}", getattr(torch.Tensor, name)))
        for name in INIT:
            replace(init, name, self._plain(f"init.{name}", getattr(init, name)))
        for name in DROPOUT:
            replace(functional, name, self._dropout(name, getattr(functional, name)))
        replace(functional, "scaled_dot_product_attention", self._attention(functional.scaled_dot_product_attention))
        for name in SEEDS:
            replace(torch, name, self._quiet(name, getattr(torch, name)))
        replace(data, "random_split", self._split(data.random_split))
        for name in SAMPLERS:
            sampler = getattr(data, name)
            sampler.__iter__ = self._sampler(name, sampler.__iter__)
        data.DataLoader.__iter__ = self._quiet("DataLoader", data.DataLoader.__iter__)
        # Modules of the package that have a function under a name of their own.
        for module in list(sys.modules.values()):
            if not getattr(module, "__name__", "").startswith(("torch", "plimsoll")):
                continue
            for name, value in list(vars(module).items()):
                original, made = replaced.get(id(value), (None, None))
                if original is value and value is not None:
                    setattr(module, name, made)
