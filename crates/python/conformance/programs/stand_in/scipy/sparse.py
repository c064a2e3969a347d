"""Sparse matrices, held dense: those of programs here are small."""

from __future__ import annotations

from typing import Any

import numpy


class _Matrix:
    """An array, or values with their rows and columns."""

    def __init__(self, values: Any, shape: tuple[int, int] | None = None, dtype: Any = None) -> None:
        if isinstance(values, tuple):
            numbers, (rows, columns) = values
            self.dense = numpy.zeros(shape, dtype)
            numpy.add.at(self.dense, (rows, columns), numbers)
        else:
            self.dense = numpy.asarray(values).astype(dtype) if dtype is not None else numpy.asarray(values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.dense.shape

    @property
    def T(self) -> _Matrix:
        return _Matrix(self.dense.T)

    def transpose(self) -> _Matrix:
        return self.T

    def multiply(self, other: _Matrix) -> _Matrix:
        return _Matrix(self.dense * other.dense)

    def dot(self, other: _Matrix) -> _Matrix:
        return _Matrix(self.dense @ other.dense)

    def sum(self, axis: int) -> numpy.ndarray:
        return self.dense.sum(axis, keepdims=True)

    def todense(self) -> numpy.ndarray:
        return self.dense

    def __add__(self, other: _Matrix) -> _Matrix:
        return _Matrix(self.dense + other.dense)

    def __sub__(self, other: _Matrix) -> _Matrix:
        return _Matrix(self.dense - other.dense)

    def __gt__(self, other: _Matrix) -> _Matrix:
        return _Matrix(self.dense > other.dense)


csr_matrix = coo_matrix = _Matrix


def eye(size: int) -> _Matrix:
    return _Matrix(numpy.eye(size))


def diags(values: Any) -> _Matrix:
    return _Matrix(numpy.diag(values))
