"""Where steps and epochs end, found without a change to the program: optimizer steps, else batches of a loader, else
calls of backward, else calls of the outermost module; `watch.step()` wins over all. It only tells when; `_session.py`
does what is due then."""

from __future__ import annotations

import bisect
import collections
import contextlib
import functools
import importlib
import inspect
import sys
import threading
import types
import weakref
from typing import Any, Callable

from ._attributes import attributes_of, class_dicts, dispatches
from ._errors import is_programs_own
from ._passing import pass_by
from ._places import place_of_waiting
from ._step_hooks import put_in
from ._uncompiled import leave_alone

# Functions that heard of `backward` for watches that have ended.
_ended: weakref.WeakSet[Any] = weakref.WeakSet()

# What tells steps, from the weakest to the strongest.
NOTHING, MODULE, BACKWARD, LOADER, OPTIMIZER, EXPLICIT = range(6)
COUNTED_BY = (
    "nothing", "calls of a module", "calls of backward", "batches of a loader", "optimizer steps", "watch.step()",
)  # fmt: skip
# Passes whose ends are kept.
MOST_PASSES = 1000
# What PyTorch says of the backward that runs where none does.
OUTSIDE = -1
# As many ticks of others without one of the clock's own, and another takes over.
QUIET_TICKS = 4
# The same of another thread, which may have the interpreter for some time.
QUIET_ELSEWHERE = 64


class Steps:
    """Calls `on_step(is_new_clock)` at the end of each step, `on_epoch()` when a pass with steps is over, `on_pass_end()` when
    any loader has run out and `on_batch()` when one goes on. The framework is PyTorch, or a module with its names."""

    def __init__(
        self,
        on_step: Callable[[bool], None],
        on_epoch: Callable[[], None],
        on_pass_end: Callable[[], None],
        on_batch: Callable[[], None],
        framework: Any = None,
    ):
        self._framework = framework if framework is not None else importlib.import_module("torch")
        # PyTorch's answer to whether it records a graph, and None.
        self._is_tracing = getattr(getattr(self._framework, "_C", None), "_get_tracing_state", lambda: None)
        self.on_step, self.on_epoch = on_step, on_epoch
        self.on_pass_end, self.on_batch = on_pass_end, on_batch
        # Told before calls of modules, while they are counted.
        self.on_call: Callable[[], None] = lambda: None
        # Told in threads that learn beside the one whose steps count.
        self.on_step_elsewhere: Callable[[], None] = lambda: None
        # Ends a step of the clock's optimizer in place of `on_step` where it is set, and answers whether `on_due` is to be told:
        # for who must know of each one, at the least cost. The first step of a new clock is told to `on_step` all the same.
        self.end_step: Callable[[], bool] | None = None
        self.on_due: Callable[[], None] = lambda: None
        # Is told what goes wrong here; without it that is raised.
        self.on_trouble: Callable[[Exception], None] | None = None
        # Whether gradients have been computed: values are gathered beside learning then, not by a
        # pass that only predicts.
        self.has_learnt = False
        # Steps since the beginning, by whatever told them; `on_step` is not called before this one.
        self.count = 0
        self.quiet_until = 0
        self.epochs = 0
        self.rank = NOTHING
        self._clock: Any = None
        # The optimizer that is the clock, weakly: its next step needs no look at the line it is on.
        self._optimizer: Callable[[], Any] = lambda: None
        self._others = 0
        # Whether there are steps within steps of the same optimizer.
        self._are_within = False
        # Steps of other optimizers like the clock since its own last one, and between its last two.
        self._alike = 0
        self._alike_between = 0
        # The thread of the clock, and the steps of optimizers like it in other threads since its
        # step of that count.
        self._thread = 0
        self._elsewhere = self._elsewhere_at = 0
        # Whether `on_step` runs: the clock waits for its end, and is not quiet.
        self._is_in_watch = False
        # Of calls of modules within each other, in each thread.
        self._depths = threading.local()
        self._loaders = collections.deque([lambda: None], maxlen=4)
        self._is_new = False
        # The counts at which the clock took over and the epoch began.
        self._clock_began = 0
        # What told steps before, and how many.
        self._told_before = (NOTHING, 0)
        # The counts at which passes ended; of very many the earliest are told as one.
        self._pass_ends: list[int] = []
        self._undo: list[Callable[[], None]] = []
        self._stop_counting_calls: Callable[[], None] | None = None
        # Whether a backward within no other one was counted.
        self._has_outermost = False
        self._stop_counting_backward: list[Callable[[], None]] = []

    @property
    def counted_by(self) -> str:
        return COUNTED_BY[self._telling()[0]]

    @property
    def told(self) -> int:
        """The steps of what tells them now."""
        return self._telling()[1]

    def _telling(self) -> tuple[int, int]:
        """What tells steps, and how many it has told: what came once, as a backward pass after all steps, does not yet."""
        now = self.rank, self.count - self._clock_began
        return self._told_before if now[1] == 1 < self._told_before[1] else now

    @property
    def learns_elsewhere(self) -> bool:
        """Whether optimizers like the clock step in other threads."""
        return self._elsewhere > 0

    def start(self) -> None:
        # Not as an attribute: PyTorch takes the module's name away from the package.
        optimizers = importlib.import_module(f"{self._framework.__name__}.optim.optimizer")
        for of_class in (Steps._optimizer_stepped, Steps._guarded):
            leave_alone(self._framework, of_class)
        self._undo.append(put_in(optimizers, "post", self._optimizer_stepped))
        self._follow_loaders()
        if self.rank <= MODULE:
            self._follow_calls()
        if self.rank <= BACKWARD:
            self._follow_backward()

    def stop(self) -> None:
        # The optimizers' hook may stay for some time, and counts no more.
        self._optimizer = lambda: None
        undo, self._undo = self._undo, []
        for one in undo:
            one()
        self._end_calls()
        self._end_backward()

    def rest(self) -> None:
        """Tells nothing any more. Its hook stays until `stop`: PyTorch fails if one is taken away while it calls them."""
        self.quiet_until = sys.maxsize
        self._end_calls()
        self._end_backward()

    def tick(self, rank: int, who: Any) -> None:
        """One of the things that may tell steps has happened. With several optimizers the first is the clock; one
        that ticks alone takes over."""
        if rank < self.rank or self._is_tracing() is not None:
            # What `torch.jit.trace` runs is no step of the program's.
            return
        if rank > self.rank > NOTHING:
            # Something better tells steps: this one has been counted already.
            self._told_before = self._telling()
            self._take_over(rank, who)
            self._clock_began = self.count - 1
            return
        if rank == self.rank and who != self._clock:
            self._others += 1
            if self._others <= QUIET_TICKS:
                return
        if who != self._clock:
            self._take_over(rank, who)
        self._others = 0
        self.count += 1
        is_new, self._is_new = self._is_new, False
        if is_new or self.count >= self.quiet_until:
            self._in_watch(self.on_step, is_new)

    def _in_watch(self, work: Callable[..., None], *arguments: Any) -> None:
        """Other threads' steps do not make them the clock meanwhile."""
        self._is_in_watch = True
        try:
            work(*arguments)
        finally:
            self._is_in_watch = False

    def _take_over(self, rank: int, who: Any) -> None:
        self._is_new = self.rank > NOTHING
        self.rank, self._clock, self._others = rank, who, 0
        self._optimizer = lambda: None
        self._alike = self._alike_between = 0
        if rank > MODULE:
            self._end_calls()
        if rank >= OPTIMIZER or (rank > BACKWARD and self.has_learnt):
            self._end_backward()

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        """The program goes on whatever happens here; only what it has raised itself, in a handler of a signal, is raised in
        it."""
        try:
            work(*arguments)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self.on_trouble is None or is_programs_own(error):
            raise error
        self.on_trouble(error)

    def loaders(self) -> list[Any]:
        """The loaders' iterators that have given batches lately and still live."""
        return [loader() for loader in self._loaders]  # type: ignore[no-untyped-call]

    @property
    def _epoch_began(self) -> int:
        return self._pass_ends[-1] if self._pass_ends else 0

    def pass_of(self, step: int) -> int:
        """Which pass a step belongs to, from 0; what is made after a pass is its own."""
        return bisect.bisect_left(self._pass_ends, step)

    def is_latest_pass(self, which: int) -> bool:
        """Whether it goes on, or is the last that is complete."""
        goes_on = self.count - self._epoch_began > 1
        return which >= len(self._pass_ends) - (not goes_on)

    def epoch(self) -> None:
        """A pass is complete. One without steps (a validation set) is none."""
        if self.count - self._epoch_began < 2:
            return
        self._pass_ends.append(self.count)
        del self._pass_ends[:-MOST_PASSES]
        self.epochs += 1
        self.on_epoch()

    def _optimizer_stepped(self, optimizer: Any, *_: Any) -> None:
        try:
            if self._optimizer() is optimizer:
                if self._are_within and _is_within_its_step(optimizer, sys._getframe(1)):
                    return
                # The way of nearly all steps: little code, as all of it comes cold from memory.
                if self._alike:
                    self._alike_between, self._alike = self._alike, 0
                if self.count + 1 < self.quiet_until:
                    self.count += 1
                    self._others = 0
                elif self.end_step is not None and not self._is_new:
                    self.count += 1
                    self._others = 0
                    if self.end_step():
                        self._in_watch(self.on_due)
                else:
                    self.tick(OPTIMIZER, self._clock)
            else:
                self._another_stepped(optimizer, place_of_waiting(sys._getframe(1)))
        except Exception as error:
            self._fail(error)

    def _another_stepped(self, optimizer: Any, place: Any) -> None:
        if not self._undo:
            return
        if _is_within_its_step(optimizer, sys._getframe(2)):
            self._are_within = True
            return
        # Not the optimizer's identity: one that is made anew in each step is the same clock.
        who = (place and place[:2], *self._parameters_of(optimizer))
        clock = self._optimizer()
        if clock is not None and who == self._clock and threading.get_ident() != self._thread:
            # Another thread learns the same: its steps are its own.
            self.on_step_elsewhere()
            if self._is_in_watch:
                return
            self._elsewhere = self._elsewhere + 1 if self._elsewhere_at == self.count else 1
            self._elsewhere_at = self.count
            if self._elsewhere <= QUIET_ELSEWHERE:
                return
            clock = None
        elif clock is not None and who == self._clock:
            # One of several that live and are alike, a parameter each: if the clock steps again it is one of them.
            self._alike += 1
            if 0 < self._alike_between and self._alike <= self._alike_between + QUIET_TICKS:
                return
            if self._alike > self._alike_between + QUIET_TICKS and self._alike_between:
                clock, self._alike, self._alike_between = None, 0, 0
        self.tick(OPTIMIZER, who)
        if self._clock == who and clock is None:
            self._optimizer = weakref.ref(optimizer)
            self._thread = threading.get_ident()

    def _parameters_of(self, optimizer: Any) -> tuple[int, tuple[int, ...]]:
        """How many its first group has, and the shape of the first; an optimizer of the program's own may have no group. A
        subclass of the program's is not asked for its shape."""
        groups = attributes_of(optimizer).get("param_groups")
        group = groups[0] if type(groups) is list and groups else None
        parameters = group.get("params") if type(group) is dict else None
        if type(parameters) is not list or not parameters:
            return 0, ()
        tensor, first = self._framework.Tensor, parameters[0]
        if not issubclass(type(first), tensor) or dispatches(type(first)):
            return len(parameters), ()
        disabled = getattr(getattr(self._framework, "_C", None), "DisableTorchFunction", contextlib.nullcontext)
        with disabled():
            return len(parameters), tuple(tensor.shape.__get__(first))

    def _follow_loaders(self) -> None:
        kind = self._framework.utils.data.dataloader._BaseDataLoaderIter
        following = kind.__next__

        @functools.wraps(following)
        def counted(loader: Any) -> Any:
            self._guarded(self.tick, LOADER, type(loader).__name__)
            self._guarded(self.on_batch)
            try:
                batch = following(loader)
            except StopIteration:
                self._guarded(self.epoch)
                self._guarded(self.on_pass_end)
                raise
            if self._loaders[-1]() is not loader:
                self._loaders.append(weakref.ref(loader))
            return batch

        pass_by(counted)
        leave_alone(self._framework, counted, and_calls=False)

        def undo() -> None:
            if kind.__next__ is counted:
                kind.__next__ = following

        kind.__next__ = counted
        self._undo.append(undo)

    def _follow_calls(self) -> None:
        kind = self._framework.nn.Module
        call = kind.__call__

        @functools.wraps(call)
        def counted(module: Any, *args: Any, **kwargs: Any) -> Any:
            depths = self._depths.__dict__
            depth = depths.get("depth", 0) + 1
            try:
                # Within the block: a handler of a signal may raise at any call.
                depths["depth"] = depth
                if depth == 1:
                    self._guarded(self.on_call)
                return call(module, *args, **kwargs)
            finally:
                depths["depth"] = depth - 1
                if depth == 1:
                    self._guarded(self.tick, MODULE, type(module).__qualname__)

        # The compiler sees the call itself, so that what it makes is the same as without a watch.
        counted._torchdynamo_inline = call  # type: ignore[attr-defined]
        pass_by(counted)
        leave_alone(self._framework, counted, and_calls=False)

        def undo() -> None:
            if kind.__call__ is counted:
                kind.__call__ = call

        kind.__call__ = counted
        self._stop_counting_calls = undo

    def _follow_backward(self) -> None:
        tensor = self._framework.Tensor
        # PyTorch's method calls the function; one that is native, as Plimsoll's, does not. Another watch may hear it already.
        is_native = type(inspect.unwrap(vars(tensor)["backward"])) is types.MethodDescriptorType
        places = (self._framework.autograd, tensor) if is_native else (self._framework.autograd,)
        self._stop_counting_backward = [self._count_backward(of) for of in places]

    def _count_backward(self, of: Any) -> Callable[[], None]:
        """Hears of calls of the function `backward` of a module or class; gives back what ends that."""
        backward = vars(of)["backward"]
        # Of PyTorch's: what is called within another one, as a reentrant checkpoint does, is a part of that.
        task = getattr(getattr(self._framework, "_C", None), "_current_graph_task_id", lambda: OUTSIDE)

        @functools.wraps(backward)
        def counted(*args: Any, **kwargs: Any) -> Any:
            is_outermost = task() == OUTSIDE
            result = backward(*args, **kwargs)
            if is_outermost or not self._has_outermost:
                # A loop may run wholly within another backward.
                self._has_outermost = self._has_outermost or is_outermost
                self._guarded(self._learnt, sys._getframe(1))
            return result

        counted._torchdynamo_inline = backward  # type: ignore[attr-defined]
        pass_by(counted)
        leave_alone(self._framework, counted, and_calls=False)

        def undo() -> None:
            # Another watch may have put its own over it, and take that off later.
            _ended.add(counted)
            top = now = vars(of)["backward"]
            while top in _ended:
                top = top.__wrapped__
            if top is not now:
                of.backward = top

        of.backward = counted
        return undo

    def _learnt(self, frame: Any) -> None:
        self.has_learnt = True
        if self.rank > BACKWARD:
            # Something better tells steps, and nothing else is to be learnt here.
            self._end_backward()
            return
        place = place_of_waiting(frame)
        self.tick(BACKWARD, place and place[:2])

    def _end_backward(self) -> None:
        undo, self._stop_counting_backward = self._stop_counting_backward, []
        for one in undo:
            one()

    def _end_calls(self) -> None:
        """Calls cost a little each, and something better tells steps now."""
        if self._stop_counting_calls is not None:
            self._stop_counting_calls()
            self._stop_counting_calls = None


def _is_within_its_step(optimizer: Any, calling: Any) -> bool:
    """Whether a step is a part of another one of the same optimizer: `super().step()` in a class of the program's own, of which
    PyTorch calls the hooks both times. `calling` is the frame that calls them."""
    steps = [names["step"] for names in class_dicts(type(optimizer)) if "step" in names]
    if sum(attributes_of(step).get("hooked") is True for step in steps) < 2:
        return False
    frame = calling.f_back
    while frame is not None and frame.f_code is not calling.f_code:
        frame = frame.f_back
    return frame is not None
