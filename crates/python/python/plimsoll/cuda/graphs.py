"""Graphs: work of a GPU that is captured once and replayed as one launch, under PyTorch's names.

While it is captured nothing runs, and what is allocated comes from a part of a pool that only captures allocate from.
Unlike PyTorch's, a graph keeps the tensors from before its capture that it uses. `_graphed.py` has functions and
modules whose passes are graphs."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .. import _plimsoll
from .._plimsoll import Generator, MemPool, Stream
from . import streams
from ._place import is_there

# What a pool is known by: a token that only says which one it is.
_Handle = tuple[int, int]

# The pools of handles that were given out, as long as a graph holds them.
_pools: weakref.WeakValueDictionary[_Handle, MemPool] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_MODES = ("global", "thread_local", "relaxed")


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured on this thread's stream.

    >>> import plimsoll as pm
    >>> pm.cuda.is_current_stream_capturing()
    False
    """
    return is_there() and streams.current_stream()._is_capturing


def graph_pool_handle() -> _Handle:
    """A token for a pool that several captures share. The pool goes when the last of their graphs goes."""
    # No pool of its own has a number below 0.
    return (0, -next(_numbers))


def _pool_of(pool: Any, device: _plimsoll.device) -> tuple[_Handle, MemPool]:
    """The pool that a capture is given, by its token or as an object; a new one if it is given none."""
    if isinstance(pool, MemPool):
        return pool.id, pool
    known = None if pool is None else _pools.get(tuple(pool))
    if known is None:
        known = MemPool._for_graph(device)
    handle = known.id if pool is None else tuple(pool)
    _pools[handle] = known
    return handle, known


class CUDAGraph:
    """Work that was captured, to be replayed; `graph` captures it.

    >>> import plimsoll as pm
    >>> pm.cuda.CUDAGraph().replay()
    Traceback (most recent call last):
        ...
    RuntimeError: replay: this graph has not been captured
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._graph = _plimsoll._Graph()
        self._pool: MemPool | None = None
        self._handle: _Handle | None = None
        self._generators: list[Generator] = []
        # Graphs are ready when they are captured; there is no second form to keep.
        self._keep_graph = keep_graph

    def register_generator_state(self, generator: Generator) -> None:
        """Lets the capture draw from a generator other than the device's own, before it begins."""
        self._generators.append(generator)

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global", check_input_liveness: bool = False
    ) -> None:
        """Begins to capture on this thread's stream, which is not the default one.

        What other threads do does not disturb a capture, whatever `capture_error_mode` is; and inputs cannot die, so
        `check_input_liveness` finds nothing."""
        self._begin(streams.current_stream(), pool, capture_error_mode)

    def _begin(self, stream: Stream, pool: Any, capture_error_mode: str) -> None:
        if capture_error_mode not in _MODES:
            modes = ", ".join(_MODES)
            raise RuntimeError(f"capture_begin: the mode of errors is one of {modes}, not {capture_error_mode!r}")
        if self._graph.is_ready:
            raise RuntimeError("capture_begin: this graph was captured already; reset it first, or make another")
        handle, own = _pool_of(pool, stream.device)
        self._graph.begin(stream, own, self._generators)
        self._handle, self._pool = handle, own

    def capture_end(self) -> None:
        """Ends the capture; what was captured can be replayed, unless something went wrong meanwhile."""
        self._graph.end()

    def instantiate(self) -> None:
        """Makes the graph ready, which the end of its capture has done."""
        if not self._graph.is_ready:
            raise RuntimeError("instantiate: this graph has not been captured")

    def replay(self) -> None:
        """Does all of it again, on this thread's stream. Random numbers are drawn anew."""
        self._graph.replay()

    def reset(self) -> None:
        """Forgets what was captured, and lets go of its memory."""
        self._graph.reset()
        self._pool = self._handle = None

    def pool(self) -> _Handle:
        """A token for its pool, for another capture that shares it."""
        if self._handle is None:
            raise RuntimeError("pool: this graph has not been captured")
        return self._handle

    def pools(self) -> list[_Handle]:
        """The tokens of all its pools: one."""
        return [self.pool()]

    def enable_debug_mode(self) -> None:
        """Changes nothing: there is no second form of a graph to keep."""

    def debug_dump(self, debug_path: str, *, verbose: bool = True) -> None:
        """Graphs are not written to files here."""
        raise NotImplementedError("CUDAGraph.debug_dump: graphs are not written to files; the profiler shows what runs")


class graph:
    """A block whose work is captured, on `stream` or one of the GPU's own.

    >>> import plimsoll as pm
    >>> gpu = pm.stand_in()  # or "cuda", which needs no stream to be named
    >>> x = pm.ones(3, device=gpu)
    >>> g = pm.cuda.CUDAGraph()
    >>> with pm.cuda.graph(g, stream=pm.cuda.Stream(gpu)):
    ...     y = x * 2
    >>> _ = x.fill_(5)
    >>> g.replay()
    >>> y.tolist()
    [10.0, 10.0, 10.0]
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        annotation_config: dict[str, Any] | None = None,
        check_input_liveness: bool = False,
    ) -> None:
        if enable_annotations or annotation_config:
            raise NotImplementedError("graph: annotations of kernels are not here; the profiler names every operation")
        if stream is None:
            stream = type(self).default_capture_stream or Stream()
            type(self).default_capture_stream = stream
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_stream = stream
        self.capture_error_mode = capture_error_mode
        self.stream_ctx = streams.stream(stream)

    def __enter__(self) -> None:
        device = self.capture_stream.device
        _plimsoll.synchronize(device)
        _plimsoll.empty_cache(device)
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph._begin(self.capture_stream, self.pool, self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, *failure: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__(*failure)
