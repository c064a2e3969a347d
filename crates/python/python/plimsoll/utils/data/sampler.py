"""In which order samples are taken: the same orders as PyTorch's for the same generators (`_draws.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from ... import _plimsoll
from ...functional import as_tensor
from . import _draws

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """An order of keys, or of lists of keys. A subclass has `__iter__`, and `__len__` if a loader is asked for its length."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class SequentialSampler(Sampler[int]):
    """From the first sample to the last."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples in random order: each once, or each draw independent of the others (`replacement`)."""

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many are drawn; by default as many as the dataset has at the moment."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        samples = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = _plimsoll.Generator().manual_seed(_draws.seed())
        if self.replacement:
            # In pieces, as draws are on demand.
            for begin in range(0, self.num_samples, 32):
                yield from _draws.randint(samples, min(32, self.num_samples - begin), generator)
            return
        rounds, rest = divmod(self.num_samples, samples)
        for _ in range(rounds):
            yield from _draws.randperm(samples, generator)
        # Drawn even if nothing of it is used: the generator ends where PyTorch's does.
        yield from _draws.randperm(samples, generator)[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Chosen samples in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for at in _draws.randperm(len(self.indices), self.generator):
            yield self.indices[at]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Samples drawn as often as their weights say. With replacement the draws are PyTorch's; without, they have the same
    probabilities and are others."""

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not _is_count(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=_plimsoll.float64)
        if self.weights.dim() != 1:
            shape = tuple(self.weights.shape)
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {shape}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        if not self.replacement:
            drawn = _plimsoll.multinomial(self.weights, self.num_samples, False, generator=self.generator)
            yield from drawn.tolist()
            return
        weights = self.weights.tolist()
        # The operation says what is wrong with weights that cannot be drawn from.
        if not all(0 <= weight < float("inf") for weight in weights) or not sum(weights) > 0:
            _plimsoll.multinomial(self.weights, self.num_samples, True)
        yield from _draws.multinomial(weights, self.num_samples, self.generator)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Another sampler's keys in lists of one length; the last may be shorter, or is left out (`drop_last`)."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not _is_count(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        keys = iter(self.sampler)
        while batch := list(islice(keys, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        samples = len(self.sampler)  # type: ignore[arg-type]
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)
