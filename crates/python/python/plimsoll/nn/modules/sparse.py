"""Tables of vectors, looked up by index."""

from __future__ import annotations

from typing import Any, TypeVar

from ..._modes import no_grad
from ..._plimsoll import Tensor, empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

_Table = TypeVar("_Table", bound="Embedding")
_Bags = TypeVar("_Bags", bound="EmbeddingBag")


def _row(padding_idx: int | None, rows: int) -> int | None:
    """The row that is not trained, counted from the first."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def _checked(weight: Tensor, rows: int, columns: int) -> Tensor:
    if tuple(weight.shape) != (rows, columns):
        raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
    return weight


class Embedding(Module):
    """A row of a trained table for each index."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            data = empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(data, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_checked(_weight, num_embeddings, embedding_dim), requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws the first values; the row of `padding_idx` is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        told = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            told += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            told += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            told += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            told += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if self.sparse is not False:
            told += ", sparse=True"
        return told

    @classmethod
    def from_pretrained(
        cls: type[_Table],
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> _Table:
        """A table that exists already; with `freeze` it is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            num_embeddings=rows, embedding_dim=columns, _weight=embeddings, _freeze=freeze, padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(Module):
    """The sum, mean or maximum of the rows of a trained table, for each bag of indices."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        if _weight is None:
            self.weight = Parameter(empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        else:
            self.weight = Parameter(_checked(_weight, num_embeddings, embedding_dim))

    def reset_parameters(self) -> None:
        """Draws the first values; the row of `padding_idx` is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        told = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            told += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            told += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            told += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        told += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            told += f", padding_idx={self.padding_idx}"
        return told

    @classmethod
    def from_pretrained(
        cls: type[_Bags],
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> _Bags:
        """A table that exists already; with `freeze` it is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(
            num_embeddings=rows, embedding_dim=columns, _weight=embeddings, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse, include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
